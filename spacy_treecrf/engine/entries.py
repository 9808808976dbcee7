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
# Trimming is there to save time: it leaves at least this many rows, so small data stay whole.
_LEAST_ENTRIES = 1 << 14


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
    share `trim` of its sum get no entry, unless that would leave few rows; they still count in
    the totals.
    """
    n_rows, n_contexts = pair_g.shape
    unit_hessian = pair_h.shape[0] == 0
    magnitude = np.empty(n_rows, np.float32)
    sampled = np.ones(n_rows, np.bool_)
    mass = np.zeros(_MAGNITUDE_BINS)
    rows_in_bin = np.zeros(_MAGNITUDE_BINS, np.int64)
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
        rows_in_bin[bits[row] >> _MAGNITUDE_SHIFT] += 1
        sum_g += size
    cut = 0
    dropped = 0.0
    n_entries = n_sampled
    while trim > 0.0 and cut < _MAGNITUDE_BINS:
        dropped += mass[cut]
        if dropped > trim * sum_g or n_entries - rows_in_bin[cut] < _LEAST_ENTRIES:
            break
        n_entries -= rows_in_bin[cut]
        cut += 1
    scales = np.array([fixed_point_scale(sum_g), fixed_point_scale(sum_h)])
    rows = np.empty(n_entries, np.int32)
    sums = np.zeros((n_entries, 4))
    totals = np.zeros(4)
    entry = 0
    for row in range(n_rows):
        if not sampled[row]:
            continue
        g = 0.0
        h = 0.0
        n = float(n_labels ** np.int64(lags[row]))
        for c in range(n_contexts):
            g += to_fixed(pair_g[row, c], scales[0])
            if not unit_hessian:
                h += to_fixed(pair_h[row, c], scales[1])
        if unit_hessian:
            h = n * scales[1]
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
