"""Bins of a numeric column: where they are cut, and the value that stands for each of them.

Bin 0 is for missing numbers; the others are numbered from 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MAX_BINS = 255


def quantile_edges(values: npt.NDArray[np.float64], max_bins: int) -> npt.NDArray[np.float64]:
    """At most max_bins - 1 cuts midway between distinct values: between all, or at quantiles."""
    distinct, repeats = np.unique(values, return_counts=True)
    if len(distinct) < 2:
        return np.empty(0)
    cuts = np.arange(len(distinct) - 1)
    if len(distinct) > max_bins:
        targets = len(values) * np.arange(1, max_bins) / max_bins
        at_quantiles = np.unique(np.searchsorted(np.cumsum(repeats), targets, side="left"))
        cuts = at_quantiles[at_quantiles < len(distinct) - 1]
    low, high = distinct[cuts], distinct[cuts + 1]
    middle = low / 2 + high / 2
    # rounding must not carry a cut past the values it separates: value <= edge is below
    return np.where((low <= middle) & (middle < high), middle, low)


def bin_means(
    values: npt.NDArray[np.float64], edges: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The mean of the standardised values of each bin; none of them may be empty."""
    # standardising undoes the scale, which keeps sums of huge values finite
    scaled = values / (np.abs(values).max() or 1.0)
    standardised = (scaled - scaled.mean()) / (scaled.std() or 1.0)
    bins = np.searchsorted(edges, values, side="left")
    return np.bincount(bins, weights=standardised) / np.bincount(bins)


def median_bin(values: npt.NDArray[np.float64], edges: npt.NDArray[np.float64]) -> int:
    """The bin, from 1, of the lower median."""
    middle = (len(values) - 1) // 2
    median = np.partition(values, middle)[middle]
    return 1 + int(np.searchsorted(edges, median, side="left"))
