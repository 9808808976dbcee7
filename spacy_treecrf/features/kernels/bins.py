"""Bins of numbers: in which of the ranges between a column's edges a value lies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.sequences import MISSING_BIN


class BinnedColumns(NamedTuple):
    """Numeric columns, one behind the other: their edges, and the cells where their bins go."""

    edges: npt.NDArray[np.float64]
    edge_first: npt.NDArray[np.int64]  # shape: (n_columns + 1,)
    cells: npt.NDArray[np.int64]
    cell_first: npt.NDArray[np.int64]  # shape: (n_columns + 1,)


@kernel
def write_bins(
    numbers: npt.NDArray[np.float64], columns: BinnedColumns, out: npt.NDArray[np.uint8]
) -> None:
    """Write the bin of each number into the cells of its column; NaN is missing.

    A number lies in bin 1 + how many edges are below it. numbers: (n_columns, n_rows); out:
    (n_rows, n_cells).
    """
    for column in range(numbers.shape[0]):
        for row in range(numbers.shape[1]):
            value = numbers[column, row]
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
                out[row, columns.cells[cell]] = found
