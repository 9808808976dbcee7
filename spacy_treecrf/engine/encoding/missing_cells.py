"""Which columns of encoded rows are missing: a table of booleans, rows by columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.missing_methods import ColumnMap
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.row_storage import IN_MEMORY, RowStorage
from spacy_treecrf.engine.sequences import MISSING, MISSING_BIN, Sequences


@kernel
def _mark(
    feature_ids: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    slot_column: npt.NDArray[np.int32],
    n_columns: int,
    missing: npt.NDArray[np.bool_],
) -> int:
    """Mark the missing cells (n_rows, n_columns + n_numeric); returns how many there are."""
    n = 0
    for row in range(feature_ids.shape[0]):
        for slot in range(feature_ids.shape[1]):
            feature = feature_ids[row, slot]
            column = -1
            if feature == MISSING and slot < len(slot_column):
                column = slot_column[slot]
            elif feature < MISSING:
                column = MISSING - 1 - feature
            if 0 <= column < n_columns:
                missing[row, column] = True
                n += 1
        for d in range(numeric.shape[1]):
            if numeric[row, d] == MISSING_BIN:
                missing[row, n_columns + d] = True
                n += 1
    return n


def missing_cells(
    data: Sequences, columns: ColumnMap, storage: RowStorage = IN_MEMORY
) -> npt.NDArray[np.bool_] | None:
    """Whether each cell is missing, (n_rows, n_columns + n_numeric); None if nothing is."""
    shape = (len(data.feature_ids), columns.n_columns + data.numeric.shape[1])
    missing = storage.zeros(shape, np.bool_)
    n = _mark(data.feature_ids, data.numeric, columns.slot_column, columns.n_columns, missing)
    return missing if n else None
