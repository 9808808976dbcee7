"""Bins of numbers: in which of the ranges between a column's edges a value lies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.sequences import MISSING_BIN


class BinnedColumns(NamedTuple):
    """Numeric columns, one behind the other: their edges, and the cells where their bins go."""

    edges: npt.NDArray[np.float64]
    edge_first: npt.NDArray[np.int64]  # shape: (n_columns + 1,)
    cells: npt.NDArray[np.int64]
    cell_first: npt.NDArray[np.int64]  # shape: (n_columns + 1,)


@step
def write_bin(
    value: float, column: int, columns: BinnedColumns, out: npt.NDArray[np.uint8]
) -> None:
    """Write the bin of a number, 1 + how many edges are below it, into a row; NaN is missing."""
    found = MISSING_BIN
    if not np.isnan(value):
        # Halves without branches, which a processor would guess wrong half of the time.
        first = columns.edge_first[column]
        below = 0
        left = columns.edge_first[column + 1] - first
        while left > 0:
            half = (left + 1) // 2
            below += half if columns.edges[first + below + half - 1] < value else 0
            left -= half
        found = 1 + below
    for cell in range(columns.cell_first[column], columns.cell_first[column + 1]):
        out[columns.cells[cell]] = found


@kernel
def write_bins(
    numbers: npt.NDArray[np.float64], columns: BinnedColumns, out: npt.NDArray[np.uint8]
) -> None:
    """Write the bin of each number into the cells of its column.

    numbers: (n_columns, n_rows); out: (n_rows, n_cells).
    """
    for column in range(numbers.shape[0]):
        for row in range(numbers.shape[1]):
            write_bin(numbers[column, row], column, columns, out[row])


@kernel
def write_vector_bins(
    vectors: npt.NDArray[np.float32],
    words: npt.NDArray[np.int64],
    dimensions: npt.NDArray[np.int64],
    columns: BinnedColumns,
    out: npt.NDArray[np.uint8],
) -> None:
    """Write the bins of the vectors of words; a word without one (-1) has missing values.

    vectors: (n_vectors, width). words: Row of each word's vector. dimensions: That of each column.
    """
    for row in range(len(words)):
        for column in range(len(dimensions)):
            value = np.nan
            if words[row] >= 0:
                value = np.float64(vectors[words[row], dimensions[column]])
            write_bin(value if np.isfinite(value) else np.nan, column, columns, out[row])
