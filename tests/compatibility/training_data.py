"""Stored models learn from these data, which may change, unlike the inputs."""

from __future__ import annotations

import random
from itertools import chain
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from tests.compatibility.inputs import KIND, items, letter_doc, line_doc, picture_doc

Labels = list[list[str]]

_RANDOM = random.Random(0)
_WORDS = [[_RANDOM.randrange(9) for _ in range(_RANDOM.randint(1, 7))] for _ in range(60)]
X: list[list[Any]] = [items(words) for words in _WORDS]
Y: Labels = [["ABC"[(word + t) % 3] for t, word in enumerate(words)] for words in _WORDS]
NOISE: Labels = [[_RANDOM.choice("ABC") for _ in labels] for labels in Y]
BIO: Labels = [
    ["B-X" if t == 0 or label == "A" else "I-X" for t, label in enumerate(labels)] for labels in Y
]
BIO[0] = ["O"] * len(BIO[0])
WITH_GAPS = [[None if t % 3 == 2 else label for t, label in enumerate(labels)] for labels in Y]
# does the word w1 follow within 2?
FUTURE: Labels = [
    ["B" if 1 in words[t + 1 : t + 3] else "A" for t in range(len(words))] for words in _WORDS
]
X_REVERSED = [sequence[::-1] for sequence in X]
FUTURE_REVERSED = [labels[::-1] for labels in FUTURE]


def word_columns(n: int = 30, seed: int = 0) -> str:
    """Each line has a word, a tag and a BIO label."""
    rng = random.Random(seed)
    blocks = []
    for _ in range(n):
        names = rng.sample(["Ann", "Bob", "Eve", "Lee", "Max"], rng.randint(1, 2))
        person = [f"{name}\tN\t{'I' if i else 'B'}-PER" for i, name in enumerate(names)]
        place = [f"{rng.choice(['Rome', 'Oslo', 'Bern'])}\tN\tB-LOC"]
        first, last = rng.sample([person, place], 2)
        verb = rng.choice(["saw", "left", "likes"])
        end = [".\t.\tO"] if rng.random() < 0.5 else []
        blocks.append("\n".join([*first, f"{verb}\tV\tO", *last, *end]))
    return "\n\n".join(blocks) + "\n"


def hyphenated(word: str) -> list[tuple[str, str]]:
    """Each letter has a label that tells whether the word may be cut behind it."""
    *parts, last = word.split("-")
    letters = [[*((letter, "on") for letter in part[:-1]), (part[-1], "cut")] for part in parts]
    return [*chain.from_iterable(letters), *((letter, "on") for letter in last)]


HYPHENATED = [
    hyphenated("ta-ble"),
    hyphenated("re-tell"),
    hyphenated("e-state"),
    hyphenated("ze-bra"),
    hyphenated("ma-ma"),
    hyphenated("pa-per"),
    hyphenated("ta-ble-land"),
    hyphenated("e-ven"),
    hyphenated("o-ver"),
    hyphenated("re-lease"),
    hyphenated("bas-ket"),
]


def letter_columns() -> str:
    """Each line has a letter, a number, a useless value and a label, perhaps an unknown one."""
    return "\n".join(
        "".join(
            f"{letter}\t{'_' if t == 4 else t % 3 + n / 10}\tx\t{'?' if t == 3 else label}\n"
            for t, (letter, label) in enumerate(word)
        )
        for n, word in enumerate(HYPHENATED)
    )


# word|tag|label of a span
SENTENCES = [
    "Ann|N|B-PERSON saw|V|O New|N|B-PLACE York|N|I-PLACE .|.|O",
    "Bob|N|B-PERSON Lee|N|I-PERSON left|V|O Paris|N|B-PLACE .|.|O",
    "in|P|O Rome|N|B-PLACE Ann|N|B-PERSON Lee|N|I-PERSON slept|V|O",
    "we|D|O left|V|O Rome|N|B-PLACE with|P|O Bob|N|B-PERSON .|.|O",
    "Paris|N|B-PERSON Lee|N|I-PERSON saw|V|O us|D|O in|P|O New|N|B-PLACE York|N|I-PLACE",
    "on|P|O 3.4.|M|O they|D|O slept|V|O .|.|O",
]
POS_OF_TAG = {"N": "PROPN", "V": "VERB", "P": "ADP", "D": "PRON", "M": "NUM", ".": "PUNCT"}
LINES = [
    "head|Subject: cars\nhead|\nquestion|1. What is a car?\nanswer|   It has wheels.\ntail|The end",
    "head|From: me\nquestion|[2] How fast?\nanswer|     Very | fast.\nanswer|   See http://x\ntail|Bye",
    "question|Why is that?\nanswer|   Because 2 is 2.\nquestion|3. Who?\nanswer|   You\ntail|-- ",
]
PICTURES = ["abcd", "dcba", "bad", "cad", "dab"]


WORDS_WITH_VECTORS = [
    "Ann",
    "Bob",
    "Zoe",
    "Lee",
    "saw",
    "left",
    "met",
    "New",
    "York",
    "Rome",
    "Oslo",
]


def word_examples(nlp: Language) -> list[Example]:
    """References have the annotation of every task; docs to predict have tags and boundaries."""
    return [_word_example(nlp, sentence) for sentence in SENTENCES]


def _word_example(nlp: Language, sentence: str) -> Example:
    rows = [token.split("|") for token in sentence.split()]
    words, tags, labels = ([row[i] for row in rows] for i in range(3))
    pos = [POS_OF_TAG[tag] for tag in tags]
    gold = Doc(nlp.vocab, words=words, tags=tags, pos=pos, ents=labels)
    spans = [Span(gold, ent.start, ent.end, label=ent.label) for ent in gold.ents]
    gold.spans["sc"] = gold.spans["chunks"] = spans
    _set_kinds(gold, tags)
    starts = [t == 0 for t in range(len(words))]
    return Example(Doc(nlp.vocab, words=words, tags=tags, sent_starts=starts), gold)


def future_examples(nlp: Language) -> list[Example]:
    """Kinds tell whether Rome is one of the next two words."""
    rng = random.Random(0)
    examples = []
    for _ in range(60):
        words = rng.choices(["Ann", "saw", "Rome", "in", "Lee", "left", "."], k=rng.randint(2, 8))
        kinds = ["before" if "Rome" in words[t + 1 : t + 3] else "else" for t in range(len(words))]
        gold = _set_kinds(Doc(nlp.vocab, words=words), kinds)
        examples.append(Example(Doc(nlp.vocab, words=words), gold))
    return examples


def letter_examples(nlp: Language) -> list[Example]:
    texts = ["".join(letter for letter, _ in word) for word in HYPHENATED]
    labels = [[label for _, label in word] for word in HYPHENATED]
    return [
        Example(letter_doc(nlp, text), _set_kinds(letter_doc(nlp, text), own))
        for text, own in zip(texts, labels, strict=True)
    ]


def line_examples(nlp: Language) -> list[Example]:
    examples = []
    for text in LINES:
        pairs = [row.split("|", 1) for row in text.split("\n")]
        lines, labels = [line for _, line in pairs], [label for label, _ in pairs]
        examples.append(Example(line_doc(nlp, lines), _set_kinds(line_doc(nlp, lines), labels)))
    return examples


def picture_examples(nlp: Language) -> list[Example]:
    return [
        Example(picture_doc(nlp, letters), _set_kinds(picture_doc(nlp, letters), list(letters)))
        for letters in PICTURES
    ]


def _set_kinds(doc: Doc, labels: list[str]) -> Doc:
    for token, label in zip(doc, labels, strict=True):
        token._.set(KIND, label)
    return doc


def add_vectors(nlp: Language) -> None:
    """Vectors have four dimensions; some belong to words that no example has."""
    numbers = np.random.default_rng(0)
    for word in [*WORDS_WITH_VECTORS, ".", "in", "they", "us"]:
        nlp.vocab.set_vector(word, numbers.normal(size=4).astype(np.float32))


def add_clusters(nlp: Language) -> None:
    """Clusters are paths of bits, as in the table of spacy-lookups-data."""
    paths = {word.lower(): 8 + i * 5 % 23 for i, word in enumerate(WORDS_WITH_VECTORS)}
    nlp.vocab.lookups.add_table("lexeme_cluster", paths)
