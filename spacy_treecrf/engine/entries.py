"""Entries: the rows a tree is grown on, with their gradient and hessian in fixed point."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.grower import Entries
from spacy_treecrf.engine.histogram import fixed_point_scale, to_fixed
from spacy_treecrf.engine.sampling import chosen

# |gradient| is sorted into bins by the upper bits of its float32 pattern: sign bit cleared, the
# exponent and the two leading bits of the fraction give four bins per factor of two.
_MAGNITUDE_SHIFT = 21
_MAGNITUDE_BINS = 1 << 10


@njit(nogil=True, cache=True)
def collect(
    pair_g: npt.NDArray[np.float32],
    pair_h: npt.NDArray[np.float32],
    lags: npt.NDArray[np.uint8],
    n_labels: int,
    trim: float,
    subsample: float,
    seed: np.uint64,
) -> Entries:
    """The entries of one class.

    pair_g, pair_h: (n_rows, n_contexts); an empty pair_h means hessian 1 for every pair.
    lags: how many previous labels a row's contexts hold; invalid contexts must hold gradient 0.
    Influence trimming (Friedman 2001): the rows of smallest |gradient| that carry at most the
    share `trim` of its sum get no entry; they still count in the totals.
    """
    n_rows, n_contexts = pair_g.shape
    unit_hessian = pair_h.shape[0] == 0
    magnitude = np.empty(n_rows, np.float32)
    sampled = np.ones(n_rows, np.bool_)
    mass = np.zeros(_MAGNITUDE_BINS)
    sum_g = 0.0
    sum_h = 0.0
    bits = magnitude.view(np.int32)
    n_sampled = 0
    for row in range(n_rows):
        sampled[row] = chosen(seed, row, subsample)
        if not sampled[row]:
            continue
        n_sampled += 1
        size = 0.0
        for c in range(n_contexts):
            size += abs(pair_g[row, c])
            if not unit_hessian:
                sum_h += pair_h[row, c]
        if unit_hessian:
            sum_h += n_labels ** np.int64(lags[row])
        magnitude[row] = size
        mass[bits[row] >> _MAGNITUDE_SHIFT] += size
        sum_g += size
    cut = 0
    dropped = mass[0]
    while cut < _MAGNITUDE_BINS - 1 and dropped <= trim * sum_g and trim > 0.0:
        cut += 1
        dropped += mass[cut]
    scales = np.array([fixed_point_scale(sum_g), fixed_point_scale(sum_h)])
    n_entries = 0
    for row in range(n_rows):
        if sampled[row] and bits[row] >> _MAGNITUDE_SHIFT >= cut:
            n_entries += 1
    rows = np.empty(n_entries, np.int32)
    sums = np.empty((n_entries, 3), np.int64)
    totals = np.zeros(3, np.int64)
    entry = 0
    for row in range(n_rows):
        if not sampled[row]:
            continue
        g = np.int64(0)
        h = np.int64(0)
        n = n_labels ** np.int64(lags[row])
        for c in range(n_contexts):
            g += to_fixed(pair_g[row, c], scales[0])
            if not unit_hessian:
                h += to_fixed(pair_h[row, c], scales[1])
        if unit_hessian:
            h = n * np.int64(scales[1])
        totals[0] += g
        totals[1] += h
        totals[2] += n
        if bits[row] >> _MAGNITUDE_SHIFT >= cut:
            rows[entry] = row
            sums[entry, 0] = g
            sums[entry, 1] = h
            sums[entry, 2] = n
            entry += 1
    return Entries(rows, sums, totals, scales, pair_g, pair_h)
