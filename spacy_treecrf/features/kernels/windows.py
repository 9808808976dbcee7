"""What a token's neighbours are: cells of a table of rows, gathered at offsets inside sequences.

Outside of the sequence a token has the neighbour that the first row of the table describes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel

EDGE_ROW = 0  # of every table: what a position outside of the sequence looks like


@kernel
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
    """Fill out[t, run_slot:] = table[row of token t + run_offset, run_first:run_last] of each run.

    A run is a range of columns of the table. rows: (n_tokens,), of the table; table: (n_rows,
    width); out: (n_tokens, n_slots).
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
