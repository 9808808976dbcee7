"""A tokenizer for tasks on letters: hyphenation, letter-to-sound, segmentation."""

import re
from collections.abc import Callable

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import DummyTokenizer, registry
from spacy.vocab import Vocab

# Letters and digits with apostrophes between: "rock'n'roll" is a word, "mother-in-law" three.
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@registry.tokenizers("spacy_treecrf.CharacterTokenizer.v1")  # type: ignore[untyped-decorator]
def create_character_tokenizer(words: bool = False) -> Callable[[Language], "CharacterTokenizer"]:
    """A tokenizer that makes one token of each character, blanks included.

    words: Whether each word is a sentence, and what stands between words too, so that a pipe labels
    each word of a text as if it were alone.
    """

    def create(nlp: Language) -> CharacterTokenizer:
        return CharacterTokenizer(nlp.vocab, words)

    return create


class CharacterTokenizer(DummyTokenizer):
    """A tokenizer that makes one token of each character, so that `doc.text` is the text."""

    def __init__(self, vocab: Vocab, words: bool = False) -> None:
        self.vocab = vocab
        self.words = words

    def __call__(self, text: str) -> Doc:
        letters, spaces = list(text), [False] * len(text)
        if not self.words:
            return Doc(self.vocab, words=letters, spaces=spaces)
        starts: list[bool | int | None] = [False] * len(text)
        for place in (0, *(edge for word in WORD.finditer(text) for edge in word.span())):
            if place < len(text):
                starts[place] = True
        return Doc(self.vocab, words=letters, spaces=spaces, sent_starts=starts)
