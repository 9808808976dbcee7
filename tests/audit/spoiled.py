"""Small corpora whose labels follow from their words, but for a few errors."""

from __future__ import annotations

from pathlib import Path

from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from tests.columnar.tiny_columns import tiny_rows, write_columns

QUICK = {"rounds": 6, "linear_rounds": 3, "leaves": 8, "min_rows": 1, "min_count": 1, "threads": 1}


def spoiled_rows() -> tuple[list[list[list[str]]], dict[int, str]]:
    """Sentences of word, tag and BIO label, and which of them are spoiled, and how."""
    sentences = tiny_rows(120, seed=1)
    done: dict[int, str] = {}
    for s, kind in ((5, "type"), (25, "missing"), (45, "type"), (65, "missing")):
        rows = sentences[s]
        for row in rows:
            if kind == "type":
                row[2] = row[2].replace("LOC", "PER")
            elif row[2].endswith("LOC"):
                row[2] = "O"
        done[s] = kind
    return sentences, done


def spoiled_file(folder: Path, name: str = "spoiled.conll") -> tuple[Path, dict[int, str]]:
    """The sentences as documents of three sentences."""
    sentences, done = spoiled_rows()
    with_documents = []
    for s, rows in enumerate(sentences):
        if s % 3 == 0:
            with_documents.append([["-DOCSTART-", "-X-", "O"]])
        with_documents.append(rows)
    return write_columns(folder / name, with_documents), done


def spoiled_docs(folder: Path, name: str = "spoiled.spacy") -> tuple[Path, dict[int, str]]:
    """The same sentences, each a doc with tags and entities."""
    sentences, done = spoiled_rows()
    stored = DocBin()
    for rows in sentences:
        doc = Doc(Vocab(), words=[row[0] for row in rows], tags=[row[1] for row in rows])
        spans, start = [], None
        for t, row in enumerate([*rows, ["", "", "O"]]):
            if start is not None and not row[2].startswith("I-"):
                spans.append(Span(doc, start, t, label=rows[start][2][2:]))
                start = None
            if row[2].startswith("B-"):
                start = t
        doc.set_ents(spans, default="outside")
        stored.add(doc)
    stored.to_disk(folder / name)
    return folder / name, done
