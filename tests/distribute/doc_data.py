"""Small corpora for trainings of pipelines on a cluster."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import spacy
from spacy.tokens import Doc, DocBin, Span

FIRST = ("Ada", "Grace", "Alan", "Kurt", "Emmy", "Sofia", "Leonhard", "Carl")
LAST = ("Lovelace", "Hopper", "Turing", "Noether", "Euler", "Gauss", "Baker", "Young")
PLACES = ("Vienna", "Paris", "York", "Young", "Euler", "Basel", "Cambridge")
WORDS = ("the", "a", "meets", "goes", "to", "sees", "in", "from", "with", "letter", "old", "and")


def make_docs(n_docs: int, seed: int) -> list[Doc]:
    """Docs of several sentences with people and places in them; some are not annotated."""
    rng = random.Random(seed)
    nlp = spacy.blank("en")
    docs = []
    for i in range(n_docs):
        words: list[str] = []
        spans: list[tuple[int, int, str]] = []
        starts: list[int] = []
        for _ in range(rng.randint(1, 4)):
            starts.append(len(words))
            words += rng.choices(WORDS, k=rng.randint(1, 5))
            if rng.random() < 0.6:
                spans.append((len(words), len(words) + 2, "PERSON"))
                words += [rng.choice(FIRST), rng.choice(LAST)]
            words += rng.choices(WORDS, k=rng.randint(0, 4))
            if rng.random() < 0.6:
                words += ["in", rng.choice(PLACES)]
                spans.append((len(words) - 1, len(words), "PLACE"))
            words.append(".")
        doc = Doc(nlp.vocab, words=words, sent_starts=[i in starts for i in range(len(words))])
        if i % 17 == 3:  # nobody has annotated it
            doc.set_ents([], default="missing")
        else:
            doc.set_ents([Span(doc, *span) for span in spans])
        docs.append(doc)
    return docs


def write_corpus(folder: Path, docs: list[Doc], *cuts: int) -> None:
    """The docs as files of a folder, cut before these docs."""
    folder.mkdir()
    for i, (first, last) in enumerate(pairwise([0, *cuts, len(docs)])):
        DocBin(docs=docs[first:last]).to_disk(folder / f"part{i:02}.spacy")


def files_of(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by their path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
