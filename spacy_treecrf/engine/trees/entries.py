"""Entries: the rows one tree is grown on, with their gradients and hessians in fixed point.

Rows are drawn at random (subsample) and those that matter least are left out (trimming).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.sampling import chosen
from spacy_treecrf.engine.trees.histogram import fixed_point_scale, to_fixed
from spacy_treecrf.engine.trees.tree_input import Entries

# |gradient| is sorted into bins by the upper bits of its float32 pattern: sign bit cleared, the
# exponent and the two leading bits of the fraction give four bins per factor of two.
_MAGNITUDE_SHIFT = 21
_MAGNITUDE_BINS = 1 << 10
# Trimming is there to save time: it leaves at least this many rows, so small data stay whole.
_LEAST_ENTRIES = 1 << 14


class Magnitudes(NamedTuple):
    """How large the gradients of the sampled rows are, summed over their contexts."""

    sampled: npt.NDArray[np.bool_]  # shape: (n_rows,)
    bits: npt.NDArray[np.int32]  # shape: (n_rows,), the pattern of a row's |gradient|
    mass: npt.NDArray[np.float64]  # shape: (_MAGNITUDE_BINS,), sum of |gradient| in a bin
    rows_in_bin: npt.NDArray[np.int64]  # shape: (_MAGNITUDE_BINS,)
    sum_g: float  # of |gradient|
    sum_h: float


@step
def _measure(
    pair_g: npt.NDArray[np.float32],
    pair_h: npt.NDArray[np.float32],
    lags: npt.NDArray[np.uint8],
    n_labels: int,
    subsample: float,
    seed: np.uint64,
) -> Magnitudes:
    """Draw the rows of the sample, and sum up their gradients and hessians."""
    n_rows, n_contexts = pair_g.shape
    unit_hessian = pair_h.shape[0] == 0
    sampled = np.ones(n_rows, np.bool_)
    magnitude = np.empty(n_rows, np.float32)
    bits = magnitude.view(np.int32)
    mass = np.zeros(_MAGNITUDE_BINS)
    rows_in_bin = np.zeros(_MAGNITUDE_BINS, np.int64)
    sum_g = 0.0
    sum_h = 0.0
    for row in range(n_rows):
        sampled[row] = chosen(seed, row, subsample)
        if not sampled[row]:
            continue
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
    return Magnitudes(sampled, bits, mass, rows_in_bin, sum_g, sum_h)


@step
def _cut_off(found: Magnitudes, trim: float) -> tuple[int, int]:
    """Return the first bin whose rows get an entry, and how many rows get one."""
    cut = 0
    dropped = 0.0
    n_entries = found.rows_in_bin.sum()
    while trim > 0.0 and cut < _MAGNITUDE_BINS:
        dropped += found.mass[cut]
        n_left = n_entries - found.rows_in_bin[cut]
        if dropped > trim * found.sum_g or n_left < _LEAST_ENTRIES:
            break
        n_entries = n_left
        cut += 1
    return cut, n_entries


@kernel
def collect(
    pair_g: npt.NDArray[np.float32],
    pair_h: npt.NDArray[np.float32],
    lags: npt.NDArray[np.uint8],
    n_labels: int,
    trim: float,
    subsample: float,
    seed: np.uint64,
) -> Entries:
    """Return the entries of one class.

    pair_g, pair_h: (n_rows, n_contexts); an empty pair_h means hessian 1 for every pair.
    lags: how many previous labels a row's contexts hold; invalid contexts must hold gradient 0.
    Influence trimming (Friedman 2001): the rows of smallest |gradient| that carry at most the
    share `trim` of its sum get no entry, unless that would leave few rows; they still count in
    the totals.
    """
    n_rows, n_contexts = pair_g.shape
    unit_hessian = pair_h.shape[0] == 0
    found = _measure(pair_g, pair_h, lags, n_labels, subsample, seed)
    cut, n_entries = _cut_off(found, trim)
    scales = np.array([fixed_point_scale(found.sum_g), fixed_point_scale(found.sum_h)])
    rows = np.empty(n_entries, np.int32)
    sums = np.zeros((n_entries, 4))
    totals = np.zeros(4)
    entry = 0
    for row in range(n_rows):
        if not found.sampled[row]:
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
        if found.bits[row] >> _MAGNITUDE_SHIFT >= cut:
            rows[entry] = row
            sums[entry, 0] = g
            sums[entry, 1] = h
            sums[entry, 2] = n
            entry += 1
    return Entries(rows, sums, totals, scales, pair_g, pair_h)
