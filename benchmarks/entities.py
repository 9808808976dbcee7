"""CoNLL-2003's sentences with plain columns, and entity spans that are spoiled at random."""

from __future__ import annotations

import random
from dataclasses import dataclass

from corpora import Item, chunking_items, corpus, spans

TYPES = ("LOC", "MISC", "ORG", "PER")
HELD_OUT = 5  # the last of so many parts of eng.train is where choices are made


@dataclass(frozen=True)
class Sentences:
    """Feature dicts, BIO labels, and the number of the document of each sentence."""

    X: list[list[Item]]
    y: list[list[str]]
    documents: list[int]

    @property
    def n_documents(self) -> int:
        return self.documents[-1] + 1

    def of(self, documents: set[int]) -> Sentences:
        """The sentences of some documents."""
        kept = [s for s, number in enumerate(self.documents) if number in documents]
        return Sentences(
            [self.X[s] for s in kept], [self.y[s] for s in kept], [self.documents[s] for s in kept]
        )


def read_sentences(part: str) -> Sentences:
    """All sentences of "eng.train" or "eng.testa"; columns are made of words and tags."""
    found = Sentences([], [], [])
    document = -1
    for block in corpus("conll2003", part).read_text(encoding="latin-1").split("\n\n"):
        rows = [line.split() for line in block.splitlines() if line.strip()]
        if rows and rows[0][0] == "-DOCSTART-":
            document += 1
            rows = rows[1:]
        if rows:
            found.X.append(chunking_items([row[0] for row in rows], [row[1] for row in rows]))
            found.y.append(bio([row[-1] for row in rows]))
            found.documents.append(document)
    return found


def training_and_test(choosing: bool) -> tuple[Sentences, Sentences]:
    """eng.train and eng.testa; while something is chosen, parts of eng.train instead of both."""
    train = read_sentences("eng.train")
    if not choosing:
        return train, read_sentences("eng.testa")
    first = train.n_documents - train.n_documents // HELD_OUT
    return train.of(set(range(first))), train.of(set(range(first, train.n_documents)))


def bio(labels: list[str]) -> list[str]:
    """IOB1 as BIO."""
    before = ["O", *labels]
    return [
        f"B-{label[2:]}" if label[:2] == "I-" and last[2:] != label[2:] else label
        for last, label in zip(before, labels, strict=False)
    ]


def spoiled(labels: list[str], share: float, rng: random.Random) -> list[str]:
    """The labels with a share of the spans of another type, with another boundary, or dropped."""
    new = list(labels)
    for first, last, type_ in spans(labels):
        if rng.random() >= share:
            continue
        kind = rng.choice(["type", "boundary", "dropped"])
        if kind == "type":
            _write(new, first, last, rng.choice([t for t in TYPES if t != type_]))
            continue
        new[first:last] = ["O"] * (last - first)
        moved = _moved(new, first, last)
        if kind == "boundary" and moved:
            _write(new, *rng.choice(moved), type_)
    return new


def _moved(labels: list[str], first: int, last: int) -> list[tuple[int, int]]:
    """Spans that have one boundary elsewhere, by a token."""
    found = [(first + 1, last), (first, last - 1)] if last - first > 1 else []
    if first > 0 and labels[first - 1] == "O":
        found.append((first - 1, last))
    if last < len(labels) and labels[last] == "O":
        found.append((first, last + 1))
    return found


def _write(labels: list[str], first: int, last: int, type_: str) -> None:
    labels[first:last] = [f"B-{type_}"] + [f"I-{type_}"] * (last - first - 1)
