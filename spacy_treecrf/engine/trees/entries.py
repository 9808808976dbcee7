"""Entries: the rows one tree is grown on, with their gradients and hessians in fixed point.

Rows are drawn at random (subsample) and those that matter least are left out (trimming).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.row_storage import RowStorage
from spacy_treecrf.engine.sampling import chosen
from spacy_treecrf.engine.trees.histogram import fixed_point_scale, to_fixed
from spacy_treecrf.engine.trees.tree_input import Entries

# |gradient| is sorted into bins by the upper bits of its float32 pattern: sign bit cleared, the
# exponent and the two leading bits of the fraction give four bins per factor of two.
_MAGNITUDE_SHIFT = 21
_MAGNITUDE_BINS = 1 << 10
_FRACTION = (1 << 23) - 1  # the lower bits of the pattern
_EXPONENT_SHIFT = (
    150  # a pattern's fraction, with its leading 1, is in units of 2**(exponent - 150)
)
NO_NUMBERS = np.zeros(0, np.int64)
# Trimming is there to save time: it leaves at least this many rows, so small data stay whole.
_LEAST_ENTRIES = 1 << 14


class MagnitudeSums(NamedTuple):
    """How large the gradients and hessians of the sampled rows are, in whole numbers.

    Values are sorted into bins by their patterns as float32, and those of a bin are sums of its
    unit: so no order of adding changes them. shapes: (_MAGNITUDE_BINS,)
    """

    g: npt.NDArray[np.int64]  # |gradient| of rows, summed over their contexts
    rows: npt.NDArray[np.int64]  # how many rows, by their |gradient|
    h: npt.NDArray[np.int64]  # hessians of rows, summed over their contexts
    n_pairs: npt.NDArray[np.int64]  # shape: (1,), pairs whose hessian is 1


class Magnitudes(NamedTuple):
    """The sampled rows, and how large their gradients are."""

    sampled: npt.NDArray[np.bool_]  # shape: (n_rows,)
    bits: npt.NDArray[np.int32]  # shape: (n_rows,), the pattern of a row's |gradient|
    sums: MagnitudeSums


class MeasureRoom(NamedTuple):
    """Room for what `measure` finds of each row. shapes: (n_rows,)"""

    sampled: npt.NDArray[np.bool_]
    magnitude: npt.NDArray[np.float32]


class Trimming(NamedTuple):
    """Which rows get an entry, and how their gradients become whole numbers."""

    cut: int  # the first bin of |gradient| whose rows get one
    scales: npt.NDArray[np.float64]  # shape: (2,), of gradient and hessian


@step
def _units(bits: np.int32) -> np.int64:
    """Return the value of a pattern in units of its bin."""
    leading = np.int64(_FRACTION + 1 if bits > _FRACTION else 0)
    return np.int64(bits & _FRACTION) | leading


@step
def _amount(units: np.int64, bin_: int) -> float:
    """Return the value of so many units of a bin."""
    return float(units) * 2.0 ** (max(bin_ >> 2, 1) - _EXPONENT_SHIFT)


@kernel
def measure_into(
    room: MeasureRoom,
    pair_g: npt.NDArray[np.float32],
    pair_h: npt.NDArray[np.float32],
    lags: npt.NDArray[np.uint8],
    n_labels: int,
    subsample: float,
    seed: np.uint64,
    numbers: npt.NDArray[np.int64],
) -> Magnitudes:
    """Draw the rows of the sample, and sum up their gradients and hessians.

    numbers: (n_rows,) those of the rows among the rows of all workers; empty: they are all rows.
    """
    n_rows, n_contexts = pair_g.shape
    unit_hessian = pair_h.shape[0] == 0
    sampled, magnitude = room
    bits = magnitude.view(np.int32)
    hessian = np.empty(1, np.float32)
    hessian_bits = hessian.view(np.int32)
    sums = MagnitudeSums(
        np.zeros(_MAGNITUDE_BINS, np.int64),
        np.zeros(_MAGNITUDE_BINS, np.int64),
        np.zeros(_MAGNITUDE_BINS, np.int64),
        np.zeros(1, np.int64),
    )
    for row in range(n_rows):
        sampled[row] = chosen(seed, numbers[row] if len(numbers) else row, subsample)
        if not sampled[row]:
            continue
        size = 0.0
        h = 0.0
        for c in range(n_contexts):
            size += abs(pair_g[row, c])
            if not unit_hessian:
                h += pair_h[row, c]
        magnitude[row] = size
        bin_ = bits[row] >> _MAGNITUDE_SHIFT
        sums.g[bin_] += _units(bits[row])
        sums.rows[bin_] += 1
        if unit_hessian:
            sums.n_pairs[0] += n_labels ** np.int64(lags[row])
        else:
            hessian[0] = h
            sums.h[hessian_bits[0] >> _MAGNITUDE_SHIFT] += _units(hessian_bits[0])
    return Magnitudes(sampled, bits, sums)


@kernel
def measure(
    pair_g: npt.NDArray[np.float32],
    pair_h: npt.NDArray[np.float32],
    lags: npt.NDArray[np.uint8],
    n_labels: int,
    subsample: float,
    seed: np.uint64,
    numbers: npt.NDArray[np.int64],
) -> Magnitudes:
    """Return what `measure_into` finds, in arrays of its own."""
    room = MeasureRoom(np.empty(len(pair_g), np.bool_), np.empty(len(pair_g), np.float32))
    found: Magnitudes = measure_into(room, pair_g, pair_h, lags, n_labels, subsample, seed, numbers)
    return found


@kernel
def trimming(sums: MagnitudeSums, trim: float) -> Trimming:
    """Return how rows of these magnitudes are trimmed and scaled."""
    sum_g = 0.0
    sum_h = float(sums.n_pairs[0])
    for bin_ in range(_MAGNITUDE_BINS):
        sum_g += _amount(sums.g[bin_], bin_)
        sum_h += _amount(sums.h[bin_], bin_)
    cut = 0
    dropped = 0.0
    n_entries = sums.rows.sum()
    while trim > 0.0 and cut < _MAGNITUDE_BINS:
        dropped += _amount(sums.g[cut], cut)
        n_left = n_entries - sums.rows[cut]
        if dropped > trim * sum_g or n_left < _LEAST_ENTRIES:
            break
        n_entries = n_left
        cut += 1
    return Trimming(cut, np.array([fixed_point_scale(sum_g), fixed_point_scale(sum_h)]))


@kernel
def entries_into(
    rows: npt.NDArray[np.int32],
    sums: npt.NDArray[np.float64],
    pair_g: npt.NDArray[np.float32],
    pair_h: npt.NDArray[np.float32],
    lags: npt.NDArray[np.uint8],
    n_labels: int,
    found: Magnitudes,
    trimmed: Trimming,
) -> Entries:
    """Return the entries of one class, whose rows were measured; see `collect`.

    rows, sums: room for as many entries as there are, see `Entries`.
    """
    n_rows, n_contexts = pair_g.shape
    unit_hessian = pair_h.shape[0] == 0
    cut, scales = trimmed
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
            sums[entry, 3] = 0.0
            entry += 1
    return Entries(rows, sums, totals, scales, pair_g, pair_h)


@kernel
def entries_of(
    pair_g: npt.NDArray[np.float32],
    pair_h: npt.NDArray[np.float32],
    lags: npt.NDArray[np.uint8],
    n_labels: int,
    found: Magnitudes,
    trimmed: Trimming,
) -> Entries:
    """Return what `entries_into` finds, in arrays of its own."""
    n_entries = found.sums.rows[trimmed.cut :].sum()
    rows = np.empty(n_entries, np.int32)
    sums = np.empty((n_entries, 4))
    entries: Entries = entries_into(rows, sums, pair_g, pair_h, lags, n_labels, found, trimmed)
    return entries


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
    found = measure(pair_g, pair_h, lags, n_labels, subsample, seed, NO_NUMBERS)
    trimmed = trimming(found.sums, trim)
    entries: Entries = entries_of(pair_g, pair_h, lags, n_labels, found, trimmed)
    return entries


class EntryDraw(NamedTuple):
    """Which rows get an entry; see `collect`."""

    trim: float
    subsample: float
    seed: np.uint64


def collect_in(
    storage: RowStorage,
    pair_g: npt.NDArray[np.float32],
    pair_h: npt.NDArray[np.float32],
    lags: npt.NDArray[np.uint8],
    n_labels: int,
    draw: EntryDraw,
) -> Entries:
    """The entries that `collect` finds, in a storage."""
    entries: Entries
    if not storage.spills:
        entries = collect(pair_g, pair_h, lags, n_labels, *draw)
        return entries
    found = measured_in(storage, pair_g, pair_h, lags, n_labels, draw, NO_NUMBERS)
    trimmed = trimming(found.sums, draw.trim)
    return entries_in(storage, pair_g, pair_h, lags, n_labels, found, trimmed)


def measured_in(
    storage: RowStorage,
    pair_g: npt.NDArray[np.float32],
    pair_h: npt.NDArray[np.float32],
    lags: npt.NDArray[np.uint8],
    n_labels: int,
    draw: EntryDraw,
    numbers: npt.NDArray[np.int64],
) -> Magnitudes:
    """What `measure` finds, in a storage."""
    n_rows, (_, subsample, seed) = len(pair_g), draw
    room = MeasureRoom(storage.empty(n_rows, np.bool_), storage.empty(n_rows, np.float32))
    found: Magnitudes = measure_into(room, pair_g, pair_h, lags, n_labels, subsample, seed, numbers)
    return found


def entries_in(
    storage: RowStorage,
    pair_g: npt.NDArray[np.float32],
    pair_h: npt.NDArray[np.float32],
    lags: npt.NDArray[np.uint8],
    n_labels: int,
    found: Magnitudes,
    trimmed: Trimming,
) -> Entries:
    """The entries of rows that were measured, in a storage."""
    n_entries = int(found.sums.rows[trimmed.cut :].sum())
    rows, sums = storage.empty(n_entries, np.int32), storage.empty((n_entries, 4), np.float64)
    entries: Entries = entries_into(rows, sums, pair_g, pair_h, lags, n_labels, found, trimmed)
    return entries
