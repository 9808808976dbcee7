"""Column files of the CoNLL shared tasks, and others of that form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence
from spacy_treecrf.corpora.reading import CorpusFile, malformed, read_columns
from spacy_treecrf.labels.iob import iob1_to_bio

CONLL2000 = (
    CorpusFile(
        "conll2000/train.txt", "82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea"
    ),
    CorpusFile(
        "conll2000/test.txt", "73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628"
    ),
)
CONLL2003 = (
    CorpusFile(
        "conll2003/eng.train", "eac0822f501353f265383ddf1edb0dcd42a1b6eefd3e383d7074db98c38eb41c"
    ),
    CorpusFile(
        "conll2003/eng.testa", "aedc4ccbd1ae9795feaa0e86fe72d195b0258abed9d705b630d1c889276fac1e"
    ),
)
DOCUMENT_START = "-DOCSTART-"
LABEL = "label"


def read_conll2000(path: Path) -> list[LabelledSequence]:
    """Sentences with tags and chunks; two equal sentences stay on one side of a split."""
    sequences = []
    for rows in read_columns(path, columns=["word", "tag", "chunk"]):
        words, tags, chunks = _columns(rows)
        sequences.append(
            LabelledSequence(words, {"tag": tags, "chunk": chunks}, key=" ".join(words))
        )
    return sequences


def read_conll2003(path: Path) -> list[LabelledSequence]:
    """Sentences with tags, chunks and entities in BIO, and the numbers of their documents."""
    sequences: list[LabelledSequence] = []
    document = -1
    for rows in read_columns(path, encoding="latin-1", columns=["word", "tag", "chunk", "ner"]):
        if rows[0][0] == DOCUMENT_START:
            document += 1
            if len(rows) > 1:
                found = f"{rows[1][0]!r} right below {DOCUMENT_START} of document {document}"
                raise ValueError(f"treecrf: {path}: found {found}; expected a blank line between")
            continue
        if document < 0:
            raise malformed(path, 1, repr(" ".join(rows[0])), f"{DOCUMENT_START} -X- O O")
        words, tags, chunks, ner = _columns(rows)
        layers = {"tag": tags, "chunk": iob1_to_bio(chunks), "ner": iob1_to_bio(ner)}
        key = f"{path.name} {document}"
        sequences.append(LabelledSequence(words, layers, key=key, document=document))
    return sequences


def read_conll(path: Path, columns: Sequence[str] | None = None) -> list[LabelledSequence]:
    """Sequences of any column file: words come first, labels last, features between them."""
    sentences = read_columns(path, columns=columns)
    n_columns = len(sentences[0][0])
    if n_columns < 2:
        raise malformed(path, 1, "one column", "two or more: words first, labels last")
    names = list(columns or ["word", *(f"column{i}" for i in range(2, n_columns)), LABEL])
    if len(set(names)) < n_columns:
        raise ValueError(f"treecrf: columns are named {' '.join(names)}; name each differently")
    sequences = []
    for rows in sentences:
        words, *features, labels = _columns(rows)
        sequences.append(
            LabelledSequence(
                words,
                {names[-1]: labels},
                dict(zip(names[1:-1], features, strict=True)),
                key=" ".join(words),
            )
        )
    return sequences


def _columns(rows: list[list[str]]) -> list[list[str]]:
    return [list(column) for column in zip(*rows, strict=True)]
