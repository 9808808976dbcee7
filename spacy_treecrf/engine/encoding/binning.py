"""Bins of a numeric column: where they are cut, and the value that stands for each of them.

Bin 0 is for missing numbers; the others are numbered from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MAX_BINS = 255
N_BINS = MAX_BINS + 1


class CountedValues(NamedTuple):
    """The distinct values of a column, rising, and how often there is each."""

    distinct: npt.NDArray[np.float64]
    repeats: npt.NDArray[np.int64]


class ColumnBins(NamedTuple):
    """The bins of a numeric column."""

    edges: npt.NDArray[np.float64]  # shape: (n_bins - 1,)
    values: npt.NDArray[np.float64]  # shape: (N_BINS,), means of standardised values
    median: int  # the bin of the lower median; 0 where there is no value


def count_values(values: npt.NDArray[np.float64]) -> CountedValues:
    distinct, repeats = np.unique(values + 0.0, return_counts=True)  # one zero: -0.0 + 0.0 is 0.0
    return CountedValues(distinct, repeats.astype(np.int64))


def merge_counts(parts: Sequence[CountedValues]) -> CountedValues:
    """The values of all parts: the same as if they had been counted together."""
    every = np.concatenate([np.empty(0), *(part.distinct for part in parts)])
    repeats = np.concatenate([np.empty(0, np.int64), *(part.repeats for part in parts)])
    distinct, at = np.unique(every + 0.0, return_inverse=True)
    total = np.zeros(len(distinct), np.int64)
    np.add.at(total, at, repeats)
    return CountedValues(distinct, total)


def column_bins(values: CountedValues, max_bins: int) -> ColumnBins:
    """The bins of a column that has these values."""
    edges = quantile_edges(values, max_bins)
    means = np.zeros(N_BINS)
    if not len(values.distinct):
        return ColumnBins(edges, means, 0)
    means[1 : len(edges) + 2] = bin_means(values, edges)
    return ColumnBins(edges, means, median_bin(values, edges))


def quantile_edges(values: CountedValues, max_bins: int) -> npt.NDArray[np.float64]:
    """At most max_bins - 1 cuts midway between distinct values: between all, or at quantiles."""
    distinct, repeats = values
    if len(distinct) < 2:
        return np.empty(0)
    cuts = np.arange(len(distinct) - 1)
    if len(distinct) > max_bins:
        targets = repeats.sum() * np.arange(1, max_bins) / max_bins
        at_quantiles = np.unique(np.searchsorted(np.cumsum(repeats), targets, side="left"))
        cuts = at_quantiles[at_quantiles < len(distinct) - 1]
    low, high = distinct[cuts], distinct[cuts + 1]
    middle = low / 2 + high / 2
    # rounding must not carry a cut past the values it separates: value <= edge is below
    return np.where((low <= middle) & (middle < high), middle, low)


def bin_means(values: CountedValues, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean of the standardised values of each bin; none of them may be empty."""
    distinct, repeats = values
    # standardising undoes the scale, which keeps sums of huge values finite
    scaled = distinct / (np.abs(distinct).max() or 1.0)
    n = repeats.sum()
    centred = scaled - np.sum(scaled * repeats) / n
    deviation = np.sqrt(np.sum(centred * centred * repeats) / n)
    standardised = centred / (deviation or 1.0)
    bins = np.searchsorted(edges, distinct, side="left")
    return np.bincount(bins, weights=standardised * repeats) / np.bincount(bins, weights=repeats)


def median_bin(values: CountedValues, edges: npt.NDArray[np.float64]) -> int:
    """The bin, from 1, of the lower median."""
    middle = (int(values.repeats.sum()) - 1) // 2
    median = values.distinct[np.searchsorted(np.cumsum(values.repeats), middle, side="right")]
    return 1 + int(np.searchsorted(edges, median, side="left"))
