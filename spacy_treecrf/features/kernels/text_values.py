"""Feature ids of texts: what the value of a column stands for at each of its offsets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel


class TextColumns(NamedTuple):
    """Text columns, one behind the other: the ids of their values, and the cells where they go.

    The ids of a column are those of its value 0 in all its cells, then those of value 1, ...
    """

    ids: npt.NDArray[np.int32]
    id_first: npt.NDArray[np.int64]  # shape: (n_columns + 1,)
    cells: npt.NDArray[np.int64]
    cell_first: npt.NDArray[np.int64]  # shape: (n_columns + 1,)


@kernel
def write_ids(
    values: npt.NDArray[np.int64], columns: TextColumns, out: npt.NDArray[np.int32]
) -> None:
    """Write the ids of each value into the cells of its column.

    values: (n_columns, n_rows); out: (n_rows, n_cells).
    """
    for column in range(values.shape[0]):
        start = columns.cell_first[column]
        n_cells = columns.cell_first[column + 1] - start
        for row in range(values.shape[1]):
            first = columns.id_first[column] + values[column, row] * n_cells
            for i in range(n_cells):
                out[row, columns.cells[start + i]] = columns.ids[first + i]
