"""Histograms: the sums of gradient, hessian and row count over a node's rows, per feature.

Sums are exact: values are scaled and rounded to integers first, and float64 adds integers below
2**53 without error. So subtracting a child from its parent leaves no rounding, and no order of
summation or number of threads can change a tree. Every array called `sums` ends in an axis of
four: gradient, hessian, count, and a zero that lets the compiler add them as one vector.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.binning import N_BINS as N_BINS
from spacy_treecrf.engine.intrinsics import prefetch
from spacy_treecrf.engine.kernel import step
from spacy_treecrf.engine.next_row import NOWHERE, next_row

# Sums stay below 2**52; finer steps than 2**-32 add nothing.
SUM_BITS = 52
MAX_SCALE_BITS = 32
# The rows of a node are spread over memory: ask for them this many rows ahead of their use.
PREFETCH_AHEAD = 8


@step
def fixed_point_scale(absolute_sum: float) -> float:
    """Return the power of two by which values of this absolute sum are multiplied and rounded."""
    bits = SUM_BITS - int(np.ceil(np.log2(absolute_sum + 1.0)))
    return float(2.0 ** min(MAX_SCALE_BITS, bits))


@step
def to_fixed(value: float, scale: float) -> float:
    """Return a value in fixed point: multiplied by its scale and rounded to a whole number."""
    return float(np.rint(value * scale))


@step
def add_categorical(
    feature_ids: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int32],
    sums_at: npt.NDArray[np.int32],
    row_sums: npt.NDArray[np.float64],
    sums: npt.NDArray[np.float64],
    touched: npt.NDArray[np.int32],
) -> int:
    """Add rows to `sums` (n_features, 4), list the features first touched, and count them.

    sums_at: where in `row_sums` the sums of each row are.
    Feature ids fall in frequency, so `id < n_features` keeps those that are frequent enough.
    touched: (n_features + 1,), because the listing writes first and counts after (no branch).
    """
    n_touched = 0
    n_features = len(sums)
    n_slots = feature_ids.shape[1]
    last = len(rows) - 1
    for i in range(len(rows)):
        row = rows[i]
        ahead = np.int64(rows[min(i + PREFETCH_AHEAD, last)])
        prefetch(feature_ids, ahead, 0)
        prefetch(feature_ids, ahead, n_slots - 1)
        at = sums_at[i]
        g, h, n, zero = row_sums[at, 0], row_sums[at, 1], row_sums[at, 2], row_sums[at, 3]
        at_row = np.int64(row)
        while at_row != NOWHERE:
            for slot in range(n_slots):
                feature = feature_ids[at_row, slot]
                if 0 <= feature < n_features:
                    touched[n_touched] = feature
                    n_touched += sums[feature, 2] == 0.0
                    sums[feature, 0] += g
                    sums[feature, 1] += h
                    sums[feature, 2] += n
                    sums[feature, 3] += zero
            at_row = next_row(feature_ids, at_row)
    return n_touched


@step
def add_numeric(
    numeric: npt.NDArray[np.uint8],
    rows: npt.NDArray[np.int32],
    sums_at: npt.NDArray[np.int32],
    row_sums: npt.NDArray[np.float64],
    sums: npt.NDArray[np.float64],
) -> None:
    """Add rows to `sums` (n_numeric, N_BINS, 4)."""
    for i in range(len(rows)):
        for column in range(numeric.shape[1]):
            bin_ = numeric[rows[i], column]
            for j in range(4):
                sums[column, bin_, j] += row_sums[sums_at[i], j]


@step
def add_row_contexts(
    pair_g: npt.NDArray[np.float32],
    pair_h: npt.NDArray[np.float32],
    scales: npt.NDArray[np.float64],
    row: int,
    first: int,
    last: int,
    member: npt.NDArray[np.bool_],
    sums: npt.NDArray[np.float64],
) -> None:
    """Add one row's pairs to `sums`, by context (n_contexts, 4) or, if that is (1, 4), together.

    The row's pairs (row, 0), (row, 1), ... belong to the contexts first, ..., last - 1;
    member: (n_contexts,) those of the node. An empty pair_h means hessian 1 for every pair.
    """
    together = sums.shape[0] == 1
    for c in range(last - first):
        if member[first + c]:
            at = 0 if together else first + c
            sums[at, 0] += to_fixed(pair_g[row, c], scales[0])
            if pair_h.shape[0]:
                sums[at, 1] += to_fixed(pair_h[row, c], scales[1])
            else:
                sums[at, 1] += scales[1]
            sums[at, 2] += 1.0
