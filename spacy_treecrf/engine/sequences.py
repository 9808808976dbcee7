"""Sequences as flat arrays with offsets, and the fixed chunks that work is cut into."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.row_storage import IN_MEMORY, RowStorage
from spacy_treecrf.engine.soft_labels import SoftLabels, join_soft_labels
from spacy_treecrf.engine.wide_rows import join_tables, take_rows

ABSENT = -1
MISSING = -2
UNKNOWN_LABEL = -1
MISSING_BIN = 0

# Rows per chunk. A constant of the model's arithmetic, never derived from the number of threads:
# partial sums are added chunk by chunk, so the result is the same for any number of workers.
CHUNK_ROWS = 4096
FEW_ROWS = 64  # that many are not worth ordering
# Rows of a block: what exists for a block at a time never takes the memory of all rows.
BLOCK_ROWS = 16 * CHUNK_ROWS
DIGEST_BYTES = 16


@dataclass(frozen=True)
class Sequences:
    """The rows (positions) of all sequences; sequence s is rows offsets[s]:offsets[s+1].

    Rows of `feature_ids` behind those of the sequences are where wide rows go on; see `wide_rows`.
    """

    offsets: npt.NDArray[np.int64]  # shape: (n_sequences + 1,)
    feature_ids: npt.NDArray[np.int32]  # shape: (n_rows + n_more, n_slots), or ABSENT or MISSING
    numeric: npt.NDArray[np.uint8]  # shape: (n_rows, n_numeric), quantile bins, 0 is missing
    labels: npt.NDArray[np.int32]  # shape: (n_rows,), -1 where not annotated
    weights: npt.NDArray[np.float32]  # shape: (n_rows,)
    soft: SoftLabels | None = None  # what is known of labels otherwise; `labels` are -1 there

    @classmethod
    def unlabelled(
        cls,
        offsets: npt.NDArray[np.int64],
        feature_ids: npt.NDArray[np.int32],
        numeric: npt.NDArray[np.uint8],
    ) -> Sequences:
        """Sequences to predict: no row is annotated, and all weigh the same."""
        n = int(offsets[-1])
        unknown = np.full(n, UNKNOWN_LABEL, np.int32)
        return cls(offsets, feature_ids, numeric, unknown, np.ones(n, np.float32))

    @property
    def n_rows(self) -> int:
        return int(self.offsets[-1])

    @property
    def n_sequences(self) -> int:
        return len(self.offsets) - 1

    @cached
    def chunks(self) -> list[tuple[int, int]]:
        """Ranges of whole sequences of about CHUNK_ROWS rows: (first, past-the-last) sequence."""
        return cut_sequences(self.offsets, CHUNK_ROWS)

    @cached
    def rows_by_bins(self) -> list[npt.NDArray[np.int64]]:
        """All rows, ordered so that equal numeric bins are neighbours, in pieces of CHUNK_ROWS.

        FEW_ROWS stay as they are: few words of a sentence repeat.
        """
        rows = np.arange(self.n_rows)
        if self.numeric.shape[1] and len(rows) > FEW_ROWS:
            draw = np.random.default_rng(0)
            digests = np.zeros(self.n_rows, np.uint64)
            for column in range(self.numeric.shape[1]):
                digests += self.numeric[:, column] * draw.integers(1, 2**64, dtype=np.uint64)
            rows = np.argsort(digests, kind="stable")
        return [rows[i : i + CHUNK_ROWS] for i in range(0, len(rows), CHUNK_ROWS)]

    def rows_of(self, chunk: tuple[int, int]) -> slice:
        """The rows of a chunk."""
        return slice(int(self.offsets[chunk[0]]), int(self.offsets[chunk[1]]))

    def with_weight(self) -> Sequences:
        """The sequences to learn from: those that have a row of some weight."""
        weighty = np.add.reduceat(self.weights, self.offsets[:-1]) > 0
        if not weighty.any():
            raise ValueError("treecrf: every sequence has weight 0; give at least one a weight")
        return self if weighty.all() else self.subset(np.flatnonzero(weighty))

    @property
    def n_annotated(self) -> int:
        """How many rows are annotated; 1 if none is, so that sums can be divided by it."""
        known = self.labels != UNKNOWN_LABEL
        if self.soft is not None:
            known = known | self.soft.is_soft
        return max(1, int(known.sum()))

    @property
    def best_labels(self) -> npt.NDArray[np.int32]:
        """The labels, and where they are soft the one of the largest weight. shape: (n_rows,)"""
        return self.labels if self.soft is None else self.soft.best_labels(self.labels)

    def digest(self) -> npt.NDArray[np.uint8]:
        """A digest of everything that the sequences hold. shape: (DIGEST_BYTES,)"""
        found = hashlib.blake2b(digest_size=DIGEST_BYTES)
        own = [getattr(self, field.name) for field in fields(self) if field.name != "soft"]
        for array in [*own, *(self.soft.arrays() if self.soft else ())]:
            array = np.ascontiguousarray(array)
            found.update(f"{array.dtype.str}{array.shape}".encode())
            found.update(array.tobytes())
        return np.frombuffer(found.digest(), np.uint8)

    def part(self, first: int, last: int) -> Sequences:
        """The sequences from first to last - 1, as views of these where no row is wide."""
        if (first, last) == (0, self.n_sequences):
            return self
        rows = self.rows_of((first, last))
        return Sequences(
            offsets=self.offsets[first : last + 1] - self.offsets[first],
            feature_ids=take_rows(self.feature_ids, rows, self.n_rows),
            numeric=self.numeric[rows],
            labels=self.labels[rows],
            weights=self.weights[rows],
            soft=self.soft and self.soft.of_rows(rows),
        )

    def subset(self, sequences: npt.NDArray[np.int64]) -> Sequences:
        """The given sequences, in the given order, as Sequences of their own."""
        lengths = np.diff(self.offsets)[sequences]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.repeat(self.offsets[sequences] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Sequences(
            offsets=offsets,
            feature_ids=take_rows(self.feature_ids, rows, self.n_rows),
            numeric=self.numeric[rows],
            labels=self.labels[rows],
            weights=self.weights[rows],
            soft=self.soft and self.soft.of_rows(rows),
        )


def join_sequences(parts: list[Sequences], storage: RowStorage = IN_MEMORY) -> Sequences:
    """The sequences of all parts, in this order; their columns are in the storage."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    tables = [part.feature_ids for part in parts]
    n_rows = [part.n_rows for part in parts]
    return Sequences(
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        feature_ids=join_tables(tables, n_rows, ABSENT, storage),
        numeric=storage.joined([part.numeric for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        weights=np.concatenate([part.weights for part in parts]),
        soft=join_soft_labels([part.soft for part in parts], n_rows),
    )


def cut_sequences(offsets: npt.NDArray[np.int64], n_rows: int) -> list[tuple[int, int]]:
    """Ranges of whole sequences of about so many rows: (first, past-the-last) sequence."""
    n_sequences = len(offsets) - 1
    if n_sequences and offsets[-1] - offsets[0] < n_rows:
        return [(0, n_sequences)]
    ranges = []
    first = 0
    while first < n_sequences:
        last = int(np.searchsorted(offsets, offsets[first] + n_rows, side="left"))
        last = min(max(last, first + 1), n_sequences)
        ranges.append((first, last))
        first = last
    return ranges


def cut_rows(n_rows: int, size: int) -> list[slice]:
    """Ranges of so many rows each."""
    return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]
