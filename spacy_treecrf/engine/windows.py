"""What a token's neighbours are: cells of a table of rows, gathered at offsets inside sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

EDGE_ROW = 0  # of every table: what a position outside of the sequence looks like


@njit(nogil=True, cache=True)
def gather(
    rows: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    table: npt.NDArray[Any],
    run_offset: npt.NDArray[np.int64],
    run_first: npt.NDArray[np.int64],
    run_last: npt.NDArray[np.int64],
    run_slot: npt.NDArray[np.int64],
    out: npt.NDArray[Any],
) -> None:
    """out[t, run_slot:] = table[row of the token at t + run_offset, run_first:run_last], each run.

    rows: shape (n_tokens,); table: (n_rows, width); out: (n_tokens, n_slots).
    """
    for s in range(len(offsets) - 1):
        start, end = offsets[s], offsets[s + 1]
        for t in range(start, end):
            for r in range(len(run_offset)):
                neighbour = t + run_offset[r]
                row = rows[neighbour] if start <= neighbour < end else EDGE_ROW
                first = run_first[r]
                slot = run_slot[r]
                for c in range(run_last[r] - first):
                    out[t, slot + c] = table[row, first + c]
