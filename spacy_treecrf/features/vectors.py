"""Columns from the word vectors of the pipeline: one for each dimension, cut into bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.strings import get_string_id
from spacy.vocab import Vocab

from spacy_treecrf.engine.sequences import MISSING_BIN
from spacy_treecrf.features.batch import LOWER, NORM, ORTH, Batch
from spacy_treecrf.features.source import Reading, Texts, Window
from spacy_treecrf.storage.state_reader import StateReader

KINDS = ("numeric", "indicators")
MAX_SAMPLE = 2**17  # tokens that quantiles are taken from


class KeyedVectors(NamedTuple):
    """Vectors and where those of words are, by the words' keys, which rise."""

    keys: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.float32]


class Vectors:
    """Columns vector0, vector1, ...; a word without a vector has that of its lower-case form.

    bins: The number of bins of each dimension, cut at quantiles of the training tokens.
    kind: "numeric" columns, which trees split at thresholds and linear rounds give one slope;
        "indicators": each bin is a feature of its own.
    """

    def __init__(self, bins: int, window: Window, kind: str) -> None:
        self.bins = bins
        self.window = window
        self.kind = kind
        self.width = 0  # dimensions, known from training
        self.edges = np.empty((0, bins - 1))  # used by indicators; shape: (width, bins - 1)

    def window_of(self, column: str) -> Window | None:
        number = column.removeprefix("vector")
        own = number != column and number.isdecimal() and int(number) < self.width
        return self.window if own else None

    def check(self, vocab: Vocab) -> None:
        if vocab.vectors.size == 0:
            raise ValueError(
                "treecrf: setting 'vectors' needs word vectors, and the pipeline has none; set "
                "[initialize] vectors to a pipeline that has them (e.g. en_core_web_md), or "
                "vectors = 0"
            )
        found = int(vocab.vectors_length)
        if self.width and found != self.width:
            raise ValueError(
                f"treecrf: the pipeline's word vectors have {found} dimensions, those of training "
                f"had {self.width}; load the vectors of the training, or train again"
            )

    def prepare(self, batch: Batch) -> None:
        self.width = int(batch.vocab.vectors_length)
        if self.kind != "indicators":
            return
        step = -(-batch.n_tokens // MAX_SAMPLE)
        words, repeats = np.unique(batch.array(ORTH)[::step], return_counts=True)
        texts = batch.strings(words)
        values = self.values(batch.vocab, words, texts, [text.lower() for text in texts])
        values = np.repeat(values, repeats, axis=0)
        self.edges = np.zeros((self.width, self.bins - 1))
        shares = np.arange(1, self.bins) / self.bins
        for d in range(self.width):
            known = values[~np.isnan(values[:, d]), d]
            if len(known):
                self.edges[d] = np.quantile(known, shares)

    def read(
        self, vocab: Vocab, keys: npt.NDArray[np.uint64], texts: list[str], lowers: list[str]
    ) -> Reading:
        values = self.values(vocab, keys, texts, lowers)
        if self.kind == "numeric":
            return Reading(numbers={f"vector{d}": values[:, d] for d in range(self.width)})
        columns: dict[str, Texts] = {}
        names = [None, *(str(b) for b in range(self.bins))]
        for d in range(self.width):
            bins = 1 + np.searchsorted(self.edges[d], values[:, d], side="left")
            bins[np.isnan(values[:, d])] = MISSING_BIN
            columns[f"vector{d}"] = [names[b] for b in bins.tolist()]
        return Reading(texts=columns)

    def values(
        self, vocab: Vocab, keys: npt.NDArray[np.uint64], texts: list[str], lowers: list[str]
    ) -> npt.NDArray[np.float64]:
        """The vectors of words; NaN for a word without one. shape: (n_words, width)"""
        self.check(vocab)
        return self.checked_values(vocab, keys, texts, lowers)

    def checked_values(
        self, vocab: Vocab, keys: npt.NDArray[np.uint64], texts: list[str], lowers: list[str]
    ) -> npt.NDArray[np.float64]:
        """What `values` returns, of a vocab whose vectors are known to fit."""
        vectors = vocab.vectors
        if str(vectors.mode) == "floret" or not hasattr(vectors, "key2row"):
            if not texts:
                return np.empty((0, self.width))
            # The vocab may have lost the strings, so texts are passed.
            if vectors.attr == NORM:
                texts = [vocab[key].norm_ for key in keys.tolist()]
            return _finite(_on_cpu(vectors.get_batch(lowers if vectors.attr == LOWER else texts)))
        if vectors.attr == ORTH:
            wanted = keys.tolist()
        elif vectors.attr == LOWER:
            wanted = [get_string_id(lower) for lower in lowers]
        elif vectors.attr == NORM:
            wanted = [vocab[key].norm for key in keys.tolist()]
        else:
            raise ValueError(
                "treecrf: setting 'vectors' reads word vectors by ORTH, LOWER or NORM; these are "
                "by another attribute"
            )
        rows = _rows_of(vectors.key2row.get, wanted, lowers)
        values = _finite(_on_cpu(vectors.data[rows]))
        lacking = [i for i, row in enumerate(rows) if row < 0]
        if lacking:
            values[lacking] = np.nan
        return values

    def rows_of(
        self, vocab: Vocab, keys: npt.NDArray[np.uint64], lowers: list[str]
    ) -> tuple[npt.NDArray[np.float32], list[int]] | None:
        """The table of vectors and each word's row, -1 for none; None where it takes more steps.

        It is the quick way to what `checked_values` returns, for vectors as spaCy makes them.
        """
        vectors = vocab.vectors
        if not _are_usual(vectors):
            return None
        return vectors.data, _rows_of(vectors.key2row.get, keys.tolist(), lowers)

    def keyed(self, vocab: Vocab) -> KeyedVectors | None:
        """All vectors by the keys of words, which fit; None where `rows_of` returns None."""
        self.check(vocab)
        vectors = vocab.vectors
        if not _are_usual(vectors):
            return None
        row_of = vectors.key2row
        keys = np.fromiter(row_of.keys(), np.uint64, len(row_of))
        order = np.argsort(keys)
        rows = np.fromiter(row_of.values(), np.int32, len(row_of))
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(vectors.data):
            return None
        return KeyedVectors(keys[order], rows[order], vectors.data)

    def to_state(self) -> dict[str, Any]:
        return {"width": self.width, "edges": self.edges}

    def from_state(self, reader: StateReader) -> None:
        width = reader.integer("width", 0, 2**20)
        n_rows = width if self.kind == "indicators" else 0
        edges = reader.array("edges", np.float64, (n_rows, self.bins - 1))
        if (edges[:, 1:] < edges[:, :-1]).any():
            reader.fail("edges", "rising values in each row", "others")
        self.width, self.edges = width, edges


def _are_usual(vectors: Any) -> bool:
    """Whether vectors are a table in memory with a row for each word as it is written."""
    data = vectors.data
    return (
        vectors.attr == ORTH
        and isinstance(data, np.ndarray)
        and data.dtype == np.float32
        and data.flags.c_contiguous
        and str(vectors.mode) != "floret"
        and hasattr(vectors, "key2row")
    )


def _rows_of(row_of: Callable[[int, int], int], keys: list[int], lowers: list[str]) -> list[int]:
    """The rows of words, or of their lower-case forms; -1: neither has one."""
    rows = [row_of(key, -1) for key in keys]
    for i, row in enumerate(rows):
        if row < 0:
            rows[i] = row_of(get_string_id(lowers[i]), -1)
    return rows


def _on_cpu(values: Any) -> npt.NDArray[np.float64]:
    values = values.get() if hasattr(values, "get") else values  # from cupy to numpy
    return np.array(values, np.float64)


def _finite(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    finite = np.isfinite(values)
    if not np.logical_and.reduce(finite, axis=None):
        values[~finite] = np.nan
    return values
