"""Readers of corpora, their feature dicts, and their scores."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # readers serve other versions of the package as well
    from spacy_treecrf.engine.encoding.columns import Columns
    from spacy_treecrf.engine.sequences import Sequences

Item = dict[str, str]
Labelled = tuple[list[list[Item]], list[list[str]]]  # X, y

PAD = "<pad>"
NETTALK_HEADER = 10  # lines
NETTALK_HALF_WINDOW = 6  # letters at each side

# Keys of the columns, made once: a string for each of 4 million entries would cost 250 MB.
LOWER, TAG = ([f"{name}[{d}]" for d in range(-2, 3)] for name in ("lower", "tag"))
SHAPE = [f"shape[{d}]" for d in range(-1, 2)]
PREFIX = [(n, f"prefix{n}") for n in range(2, 5)]
SUFFIX = [(n, f"suffix{n}") for n in range(1, 5)]
LETTER = [f"letter[{d}]" for d in range(-NETTALK_HALF_WINDOW, NETTALK_HALF_WINDOW + 1)]


def corpus(*parts: str) -> Path:
    """A corpus file, below the folder that TREECRF_CORPORA names."""
    folder = os.environ.get("TREECRF_CORPORA")
    if not folder:
        raise SystemExit("set TREECRF_CORPORA to the corpora's folder")
    path = Path(folder).joinpath(*parts)
    if not path.exists():
        raise SystemExit(f"{path} does not exist; set TREECRF_CORPORA to the corpora's folder")
    return path


def read_conll2000(part: str, limit: int | None = None) -> Labelled:
    """The first `limit` sentences of "train" or "test" with 21 plain columns, and chunk labels."""
    blocks = corpus("conll2000", f"{part}.txt").read_text(encoding="utf-8").strip().split("\n\n")
    sentences = [[line.split() for line in block.splitlines()] for block in blocks[:limit]]
    X = [chunking_items([w for w, _, _ in s], [p for _, p, _ in s]) for s in sentences]
    return X, [[label for _, _, label in s] for s in sentences]


def chunking_items(words: Sequence[str], tags: Sequence[str]) -> list[Item]:
    """Feature dicts of words: words and tags at -2..2, shapes at -1..1, the word, its ends."""
    lower = [PAD, PAD, *(word.lower() for word in words), PAD, PAD]
    tags = [PAD, PAD, *tags, PAD, PAD]
    shapes = [PAD, *map(shape, words), PAD]
    return [
        dict(zip(LOWER, lower[t : t + 5], strict=True))
        | dict(zip(TAG, tags[t : t + 5], strict=True))
        | dict(zip(SHAPE, shapes[t : t + 3], strict=True))
        | {"word": word}
        | {key: word[:n] for n, key in PREFIX}
        | {key: word[-n:] for n, key in SUFFIX}
        for t, word in enumerate(words)
    ]


def shape(word: str) -> str:
    """The word's letters and digits as X, x and d, runs cut to four: "Dec." is "Xxx."."""
    for pattern, sign in (("[A-Z]", "X"), ("[a-z]", "x"), ("[0-9]", "d")):
        word = re.sub(pattern, sign, word)
    return re.sub(r"(.)\1{4,}", r"\1\1\1\1", word)


@dataclass
class Document:
    """The sentences of a document, laid end to end."""

    words: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)  # B-, I- and O labels
    starts: list[bool] = field(default_factory=list)  # does a sentence begin here


def read_conll2003(part: str, limit: int | None = None) -> list[Document]:
    """The first `limit` documents of "eng.train" or "eng.testa"; their IOB1 labels become BIO."""
    documents: list[Document] = []
    for block in corpus("conll2003", part).read_text(encoding="latin-1").split("\n\n"):
        lines = [line.split() for line in block.splitlines() if line.strip()]
        if lines and lines[0][0] == "-DOCSTART-":
            documents.append(Document())
            lines = lines[1:]
        previous = "O"
        for t, (word, *_, label) in enumerate(lines):
            begins = label[:2] == "I-" and previous[2:] != label[2:]
            documents[-1].words.append(word)
            documents[-1].entities.append(f"B-{label[2:]}" if begins else label)
            documents[-1].starts.append(t == 0)
            previous = label
    return [document for document in documents if document.words][:limit]


def read_wnut17(name: str) -> list[Document]:
    """The sequences of a file of WNUT-17, each a document; lines with a tab alone end them."""
    documents = [Document()]
    for line in [*corpus("wnut17", name).read_text(encoding="utf-8").split("\n"), ""]:
        if not line.strip():
            if documents[-1].words:
                documents.append(Document())
            continue
        word, label = line.split("\t")[:2]
        documents[-1].starts.append(not documents[-1].words)
        documents[-1].words.append(word)
        documents[-1].entities.append(label.strip())
    return documents[:-1]


def read_nettalk_stress() -> dict[str, list[str]]:
    """The stress strings of each spelling, one mark for each letter; most have just one."""
    lines = corpus("nettalk", "nettalk.data").read_text(encoding="latin-1").splitlines()
    stresses: dict[str, list[str]] = {}
    for line in lines[NETTALK_HEADER:]:
        spelling, _phonemes, stress = (field.strip() for field in line.split("\t")[:3])
        if len(stress) == len(spelling):  # "gunpowder" has no stress field
            stresses.setdefault(spelling, []).append(stress)
    return stresses


def nettalk_split(
    stresses: dict[str, list[str]], seed: int, size: int = 1000
) -> tuple[Labelled, Labelled]:
    """Training and test words, `size` spellings each, no spelling in both."""
    spellings = np.random.default_rng(seed).permutation(sorted(stresses)).tolist()
    parts = spellings[:size], spellings[size : 2 * size]
    train, test = ([(w, stress) for w in part for stress in stresses[w]] for part in parts)
    return _stress_data(train), _stress_data(test)


def _stress_data(words: list[tuple[str, str]]) -> Labelled:
    return [letter_items(word) for word, _ in words], [list(stress) for _, stress in words]


def letter_items(word: str) -> list[Item]:
    """Feature dicts of letters: the letters in a window around each."""
    padding = "_" * NETTALK_HALF_WINDOW
    padded = padding + word + padding
    return [dict(zip(LETTER, padded[t : t + len(LETTER)], strict=True)) for t in range(len(word))]


def encode(
    columns: Columns, labels: Sequence[str], X: list[list[Item]], y: list[list[str]]
) -> Sequences:
    """X and y in a model's columns and label ids; a label that it does not have is unknown."""
    from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences

    offsets, feature_ids, numeric = columns.encode(X)
    ids = {label: i for i, label in enumerate(labels)}
    flat = [ids.get(label, UNKNOWN_LABEL) for sequence in y for label in sequence]
    weights = np.ones(len(flat), np.float32)
    return Sequences(offsets, feature_ids, numeric, np.array(flat, np.int32), weights)


def spans(labels: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """(first, past-the-last, type) of each chunk, as conlleval sees B-, I- and O labels."""
    start, open_type = 0, ""
    for t, label in enumerate([*labels, "O"]):
        prefix, _, type_ = label.partition("-")
        if open_type and (prefix != "I" or type_ != open_type):
            yield start, t, open_type
            open_type = ""
        if type_ and not open_type:
            start, open_type = t, type_


def span_f1(gold: list[list[str]], predicted: list[list[str]]) -> float:
    """F1 of the chunks, in percent."""
    right = n_gold = n_predicted = 0
    for g, p in zip(gold, predicted, strict=True):
        gold_spans, predicted_spans = set(spans(g)), set(spans(p))
        right += len(gold_spans & predicted_spans)
        n_gold += len(gold_spans)
        n_predicted += len(predicted_spans)
    return 200.0 * right / max(1, n_gold + n_predicted)
