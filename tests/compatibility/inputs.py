"""Every version must label these inputs as the version did that saved the models.

They are fixed for ever: the expectations of all versions are about them. A new kind of input gets
a new name; those that are here must not change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Token

Items = list[Any]

KIND = "compat_kind"  # the token extension that pipelines with the task ext:... set


def item(words: Sequence[int], t: int) -> dict[str, Any]:
    """An item has texts, a flag, a number, a list, a nested dict and perhaps a missing value."""
    word = words[t]
    return {
        "word": f"w{word}",
        "before": f"w{words[t - 1]}" if t else None,
        "odd": word % 2 == 1,
        "size": word + (3 * word + 7 * t) % 10 / 10,
        "bag": [f"b{word % 4}", "all"],
        "nested": {"mod": str(word % 3), "deep": {"half": word / 2}},
    }


def items(words: Sequence[int]) -> Items:
    return [item(words, t) for t in range(len(words))]


NOTHING: dict[str, Any] = dict.fromkeys(item([0], 0))
ITEMS: list[Items] = [
    items([3]),
    items([1, 4, 1, 5, 2]),
    items([6, 5, 3, 8, 0, 7]),
    items([2, 7]),
    [],
    [{}, {"word": "unseen", "size": -1e6, "unheard": "of"}, item([8, 2], 1)],
    [{**item([7, 1], 0), "word": None, "size": math.nan}, NOTHING, item([4, 4], 1)],
    [["word=w3", "odd", "bag:b3"], {"word=w6": True, "size": 1e6, "odd": 0.5}],
]

# a token per line: word, tag, label
WORD_COLUMNS = """\
Ann\tN\tB-PER
saw\tV\tO
Rome\tN\tB-LOC
.\t.\tO

Oslo\tN\tB-LOC
likes\tV\tO
Bob\tN\tB-PER
Lee\tN\tI-PER

Zoe\tN\tB-PER
slept\tX\tO
in\tP\tO
BERN\tN\tB-LOC

left\tV\tO
"""
# letter, number, what nobody needs, label
LETTER_COLUMNS = """\
t\t1\tx\ton
a\t2.5\tx\tcut
b\t_\ty\ton
l\t0\tx\ton
e\t-1\tx\ton

E\t3\tx\tcut
s\t1e9\tx\ton
t\t?\tz\ton
a\t2\tx\tcut
?\t2\tx\t?
"""
COLUMN_FILES = {"word columns": WORD_COLUMNS, "letter columns": LETTER_COLUMNS}

# docs of one sentence, or of several whose boundaries are known
SENTENCES: list[list[str]] = [
    ["Ann saw New York ."],
    ["in Paris Bob Lee slept"],
    ["Zoe Paris Lee met us in New Oslo on 5.12."],
    ["they left Rome .", "Ann LEE saw Rome with Bob .", "York slept ."],
    ["ANN AND BOB"],
    ["Lee"],
    [],
]
LETTERS = ["table", "Estate", "re-tell 7", "zebra", "a", ""]
LINES: list[list[str]] = [
    [
        "Subject: boats",
        "",
        "1. What is a boat?",
        "   A boat is a thing that floats.",
        "",
        "The end",
    ],
    ["Archive-name: http://boats", "[2] Why?", "\tBecause it is light | and wide."],
]
PICTURES = ["cab", "dad", "bx"]  # of these letters


def word_doc(nlp: Language, sentences: Sequence[str]) -> Doc:
    """Blanks separate the words; several sentences have boundaries."""
    words = [sentence.split() for sentence in sentences]
    starts = [i == 0 for sentence in words for i in range(len(sentence))]
    return Doc(
        nlp.vocab,
        words=[word for sentence in words for word in sentence],
        sent_starts=starts if len(words) > 1 else None,
    )


def letter_doc(nlp: Language, text: str) -> Doc:
    """The tokenizer of the pipeline makes the doc."""
    return nlp.make_doc(text)


def line_doc(nlp: Language, lines: Sequence[str]) -> Doc:
    """Tokens are lines; an empty line is a line feed."""
    return Doc(nlp.vocab, words=[line or "\n" for line in lines])


def picture_doc(nlp: Language, letters: str) -> Doc:
    """Tokens are question marks with pictures of 16 x 8 pixels; that of "x" is missing."""
    doc = Doc(nlp.vocab, words=["?"] * len(letters))
    for t, (token, letter) in enumerate(zip(doc, letters, strict=True)):
        number = ord(letter) - ord("a") + 2
        pixels = [int(i % (2 * number) < number) for i in range(128)]
        pixels[t] = 1 - pixels[t]
        token._.pixels = None if letter == "x" else pixels
    return doc


def set_extensions() -> None:
    """Features of stored pipelines read these extensions."""
    getters: dict[str, Callable[[Token], Any]] = {
        "compat_last": lambda token: token.text[-1],
        "compat_capital": lambda token: token.is_title,
        "compat_length": lambda token: len(token) if token.is_alpha else None,
        "compat_vector": lambda token: [ord(token.text[0]) / 7, math.nan if len(token) < 3 else 1],
    }
    for name, getter in getters.items():
        Token.set_extension(name, getter=getter, force=True)
    if not Token.has_extension("pixels"):
        Token.set_extension("pixels", default=None)


DocMaker = Callable[[Language, Any], Doc]
DOCS: dict[str, tuple[DocMaker, list[Any]]] = {
    "sentences": (word_doc, SENTENCES),
    "letters": (letter_doc, LETTERS),
    "lines": (line_doc, LINES),
    "pictures": (picture_doc, PICTURES),
    "nothing": (word_doc, []),
}


def docs(nlp: Language, name: str) -> list[Doc]:
    make, contents = DOCS[name]
    return [make(nlp, content) for content in contents]
