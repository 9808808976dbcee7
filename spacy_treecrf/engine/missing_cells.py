"""Which columns of encoded rows are missing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.missing import ColumnMap
from spacy_treecrf.engine.sequences import MISSING, MISSING_BIN, Sequences


@njit(nogil=True, cache=True)
def _mark(
    codes: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    slot_column: npt.NDArray[np.int32],
    n_columns: int,
    missing: npt.NDArray[np.bool_],
) -> int:
    """Set missing (n_rows, n_columns + n_numeric); returns how many cells that are."""
    n = 0
    for row in range(codes.shape[0]):
        for slot in range(codes.shape[1]):
            code = codes[row, slot]
            column = -1
            if code == MISSING and slot < len(slot_column):
                column = slot_column[slot]
            elif code < MISSING:
                column = MISSING - 1 - code
            if 0 <= column < n_columns:
                missing[row, column] = True
                n += 1
        for d in range(numeric.shape[1]):
            if numeric[row, d] == MISSING_BIN:
                missing[row, n_columns + d] = True
                n += 1
    return n


def missing_cells(data: Sequences, columns: ColumnMap) -> npt.NDArray[np.bool_] | None:
    """Whether each column is missing, (n_rows, n_columns + n_numeric); None: nothing is."""
    shape = (len(data.codes), columns.n_columns + data.numeric.shape[1])
    missing = np.zeros(shape, np.bool_)
    n = _mark(data.codes, data.numeric, columns.slot_column, columns.n_columns, missing)
    return missing if n else None
