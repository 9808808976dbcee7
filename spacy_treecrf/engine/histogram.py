"""Histograms: the sums of gradient, hessian and row count over a node's rows, per feature.

Sums are kept in fixed point (int64), so they are exact: subtracting a child from its parent
leaves no rounding, and no order of summation or number of threads can change a tree. Every array
called `sums` ends in an axis of three: gradient, hessian, count.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

# Sums stay below 2**52, where int64 -> float64 is exact; finer steps than 2**-32 add nothing.
SUM_BITS = 52
MAX_SCALE_BITS = 32
N_BINS = 256


@njit(nogil=True, cache=True)
def fixed_point_scale(absolute_sum: float) -> float:
    """The power of two by which values of this absolute sum are multiplied before rounding."""
    bits = SUM_BITS - int(np.ceil(np.log2(absolute_sum + 1.0)))
    return float(2.0 ** min(MAX_SCALE_BITS, bits))


@njit(nogil=True, cache=True)
def to_fixed(value: float, scale: float) -> int:
    return int(np.rint(value * scale))


@njit(nogil=True, cache=True)
def add_categorical(
    codes: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int32],
    row_sums: npt.NDArray[np.int64],
    n_features: int,
    sums: npt.NDArray[np.int64],
    touched: npt.NDArray[np.int32],
) -> int:
    """Add rows to `sums` (n_features, 3), list the features first touched, and count them.

    Feature ids fall in frequency, so `id < n_features` keeps those that are frequent enough.
    """
    n_touched = 0
    n_slots = codes.shape[1]
    for i in range(len(rows)):
        row = rows[i]
        g = row_sums[i, 0]
        h = row_sums[i, 1]
        n = row_sums[i, 2]
        for slot in range(n_slots):
            feature = codes[row, slot]
            if 0 <= feature < n_features:
                if sums[feature, 2] == 0:
                    touched[n_touched] = feature
                    n_touched += 1
                sums[feature, 0] += g
                sums[feature, 1] += h
                sums[feature, 2] += n
    return n_touched


@njit(nogil=True, cache=True)
def add_numeric(
    numeric: npt.NDArray[np.uint8],
    rows: npt.NDArray[np.int32],
    row_sums: npt.NDArray[np.int64],
    sums: npt.NDArray[np.int64],
) -> None:
    """Add rows to `sums` (n_numeric, N_BINS, 3)."""
    for i in range(len(rows)):
        for column in range(numeric.shape[1]):
            bin_ = numeric[rows[i], column]
            sums[column, bin_, 0] += row_sums[i, 0]
            sums[column, bin_, 1] += row_sums[i, 1]
            sums[column, bin_, 2] += row_sums[i, 2]


@njit(nogil=True, cache=True)
def add_row_contexts(
    pair_g: npt.NDArray[np.float32],
    pair_h: npt.NDArray[np.float32],
    scales: npt.NDArray[np.float64],
    row: int,
    first: int,
    last: int,
    member: npt.NDArray[np.bool_],
    sums: npt.NDArray[np.int64],
) -> None:
    """Add one row's pairs to `sums`, by context (n_contexts, 3) or, if that is (1, 3), together.

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
                sums[at, 1] += np.int64(scales[1])
            sums[at, 2] += 1
