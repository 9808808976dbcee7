"""Sequences as flat arrays plus offsets, and the fixed chunks that work is cut into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

ABSENT = -1
MISSING = -2
UNKNOWN_LABEL = -1
MISSING_BIN = 0

# Rows per chunk. A constant of the model's arithmetic, never derived from the number of threads:
# partial sums are added chunk by chunk, so the result is the same for any number of workers.
CHUNK_ROWS = 4096


@dataclass(frozen=True)
class Sequences:
    """The rows (positions) of all sequences; sequence s is rows offsets[s]:offsets[s+1]."""

    offsets: npt.NDArray[np.int64]  # shape: (n_sequences + 1,)
    codes: npt.NDArray[np.int32]  # shape: (n_rows, n_columns), feature ids, ABSENT or MISSING
    numeric: npt.NDArray[np.uint8]  # shape: (n_rows, n_numeric), quantile bins, 0 is missing
    labels: npt.NDArray[np.int32]  # shape: (n_rows,), -1 where not annotated
    weights: npt.NDArray[np.float32]  # shape: (n_rows,)

    @property
    def n_rows(self) -> int:
        return int(self.offsets[-1])

    @property
    def n_sequences(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def chunks(self) -> list[tuple[int, int]]:
        """Ranges of whole sequences of about CHUNK_ROWS rows: (first, past-the-last) sequence."""
        chunks = []
        first = 0
        while first < self.n_sequences:
            target = self.offsets[first] + CHUNK_ROWS
            last = int(np.searchsorted(self.offsets, target, side="left"))
            last = min(max(last, first + 1), self.n_sequences)
            chunks.append((first, last))
            first = last
        return chunks

    @cached_property
    def rows_by_bins(self) -> list[npt.NDArray[np.int64]]:
        """All rows, those of the same numeric bins next to each other, in pieces of CHUNK_ROWS."""
        rows = np.arange(self.n_rows)
        if self.numeric.shape[1]:
            draw = np.random.default_rng(0)
            digests = np.zeros(self.n_rows, np.uint64)
            for column in range(self.numeric.shape[1]):
                digests += self.numeric[:, column] * draw.integers(1, 2**64, dtype=np.uint64)
            rows = np.argsort(digests, kind="stable")
        return [rows[i : i + CHUNK_ROWS] for i in range(0, len(rows), CHUNK_ROWS)]

    def rows_of(self, chunk: tuple[int, int]) -> slice:
        return slice(int(self.offsets[chunk[0]]), int(self.offsets[chunk[1]]))

    def subset(self, sequences: npt.NDArray[np.int64]) -> Sequences:
        """The given sequences, in the given order, as Sequences of their own."""
        lengths = np.diff(self.offsets)[sequences]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.repeat(self.offsets[sequences] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Sequences(
            offsets=offsets,
            codes=self.codes[rows],
            numeric=self.numeric[rows],
            labels=self.labels[rows],
            weights=self.weights[rows],
        )
