"""A tokenizer for tasks on letters: hyphenation, letter-to-sound, segmentation."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import DummyTokenizer, registry
from spacy.vocab import Vocab

LETTERS = r"[^\W_]"  # and digits
# Between letters: apostrophes, as in "rock'n'roll", also the full-width and the Armenian one; the
# middle dot of Catalan "col·legi", the Greek dot that is its equal, and the hyphenation point;
# geresh and gershayim of Hebrew. "mother-in-law" is three words.
BETWEEN = "'’\uff07\u055a\u00b7\u0387\u2027\u05f3\u05f4"
# What belongs to a word as marks do: the soft hyphen, what shows how letters are joined, the vowel
# separator of Mongolian, and the signs of Armenian that stand behind a vowel of the word they ask.
JOINERS = "\u00ad\u200c\u200d\u2060\u180e\u055b\u055c\u055e"
# Marks are in the first two planes of Unicode, and variants of letters in the fourteenth.
PLANES_WITH_MARKS = (range(0x300, 0x20000), range(0xE0100, 0xE01F0))


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
        words = word_pattern().finditer(text)
        for place in (0, *(edge for word in words for edge in word.span())):
            if place < len(text):
                starts[place] = True
        return Doc(self.vocab, words=letters, spaces=spaces, sent_starts=starts)


@cache
def word_pattern() -> re.Pattern[str]:
    """What words are: letters and digits, the marks on them, joiners, and signs between letters."""
    return re.compile(f"{LETTERS}+(?:[{BETWEEN}]{LETTERS}+|[{_marks()}{JOINERS}]{LETTERS}*)*")


def _marks() -> str:
    """All combining marks, such as vowel signs and accents, as ranges of a regular expression.

    It takes 15 ms to find them, which is why nobody does it before there is a text.
    """
    planes = (i for plane in PLANES_WITH_MARKS for i in plane)
    marks = {i for i in planes if unicodedata.category(chr(i)).startswith("M")}
    firsts = sorted(i for i in marks if i - 1 not in marks)
    lasts = sorted(i for i in marks if i + 1 not in marks)
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(firsts, lasts, strict=True))
