"""A tokenizer for tasks on letters: hyphenation, letter-to-sound, segmentation."""

from collections.abc import Callable

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import DummyTokenizer, registry
from spacy.vocab import Vocab


@registry.tokenizers("spacy_treecrf.CharacterTokenizer.v1")  # type: ignore[untyped-decorator]
def create_character_tokenizer() -> Callable[[Language], "CharacterTokenizer"]:
    """A tokenizer that makes one token of each character, blanks included."""

    def create(nlp: Language) -> CharacterTokenizer:
        return CharacterTokenizer(nlp.vocab)

    return create


class CharacterTokenizer(DummyTokenizer):
    """A tokenizer that makes one token of each character, so that `doc.text` is the text."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab

    def __call__(self, text: str) -> Doc:
        return Doc(self.vocab, words=list(text), spaces=[False] * len(text))
