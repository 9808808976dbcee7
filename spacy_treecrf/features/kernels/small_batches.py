"""Rows of few tokens under all sources at once: keys are looked up and cells gathered by one call.

The arrays of a source are listed by their addresses, as in `engine.boosting.small_inputs`: handing
them over one by one takes longer than the work itself.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.intrinsics import carray, pointer_to
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.features.kernels.key_table import EMPTY, find_place
from spacy_treecrf.features.kernels.windows import gather

Ints = npt.NDArray[np.int64]

# Columns of the list: addresses and lengths of what a source has.
KEYS, ROWS, N_PLACES, IDS, ID_WIDTH, BINS, BIN_WIDTH, ID_RUNS, N_ID_RUNS, BIN_RUNS, N_BIN_RUNS = (
    range(11)
)
N_LISTED = 11


@step
def _run(listed: Ints, s: int, address: int, count: int, i: int) -> Ints:
    """Return the i-th array of a source's runs, which lie one behind the other."""
    n = listed[s, count]
    found: Ints = carray(pointer_to(listed[s, address] + 8 * n * i), (n,), np.int64)
    return found


@kernel
def encode_small(
    listed: Ints,
    active: Ints,
    keys: npt.NDArray[np.uint64],
    offsets: Ints,
    rows: npt.NDArray[np.int32],
    unknown: Ints,
    feature_ids: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
) -> int:
    """Write the cells of some sources, or return how many keys have no row yet.

    active: Rows of the list. keys: (n_sources, n_tokens), also of those that are not active. rows:
    scratch of the same shape. unknown: (n_sources,), how many keys of each have no row.
    """
    n_tokens = keys.shape[1]
    total = 0
    for a in range(len(active)):
        s = active[a]
        shape = (listed[s, N_PLACES],)
        table = carray(pointer_to(listed[s, KEYS]), shape, np.uint64)
        table_rows = carray(pointer_to(listed[s, ROWS]), shape, np.int32)
        unknown[s] = 0
        for t in range(n_tokens):
            rows[s, t] = table_rows[find_place(table, table_rows, keys[s, t])]
            unknown[s] += rows[s, t] == EMPTY
        total += unknown[s]
    if total > 0:
        return total
    for a in range(len(active)):
        s = active[a]
        if listed[s, ID_WIDTH] > 0:
            ids_shape = (1, listed[s, ID_WIDTH])  # rows are not counted
            ids = carray(pointer_to(listed[s, IDS]), ids_shape, np.int32)
            gather(
                rows[s],
                offsets,
                ids,
                _run(listed, s, ID_RUNS, N_ID_RUNS, 0),
                _run(listed, s, ID_RUNS, N_ID_RUNS, 1),
                _run(listed, s, ID_RUNS, N_ID_RUNS, 2),
                _run(listed, s, ID_RUNS, N_ID_RUNS, 3),
                feature_ids,
            )
        if listed[s, BIN_WIDTH] > 0:
            bins_shape = (1, listed[s, BIN_WIDTH])
            bins = carray(pointer_to(listed[s, BINS]), bins_shape, np.uint8)
            gather(
                rows[s],
                offsets,
                bins,
                _run(listed, s, BIN_RUNS, N_BIN_RUNS, 0),
                _run(listed, s, BIN_RUNS, N_BIN_RUNS, 1),
                _run(listed, s, BIN_RUNS, N_BIN_RUNS, 2),
                _run(listed, s, BIN_RUNS, N_BIN_RUNS, 3),
                numeric,
            )
    return 0
