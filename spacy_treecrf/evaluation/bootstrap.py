"""Confidence intervals by resampling whole sequences (Efron & Tibshirani 1993, chapter 13).

Every figure we report is a function of sums over sequences. So a sequence is reduced to a row of
numbers once, and a resample is one weighted sum of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Sums = npt.NDArray[np.float64]
Statistic = Callable[[Sums], float]  # a function of the sums of rows; nan where it has no value

RESAMPLES = 1000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A figure, and the interval where it may lie."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class PairedDifference:
    """The figures of A and B on the same sequences, their difference, and its p-value."""

    a: float
    b: float
    interval: Interval  # where b - a may lie
    p_value: float | None  # two-sided; None without resamples


def check_resampling(resamples: int, confidence: float) -> None:
    if resamples < 0:
        raise ValueError(f"treecrf: {resamples} bootstrap resamples; use 0 (none) or more")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"treecrf: confidence is {confidence}; use a number between 0 and 1")


def resampled_sums(rows: npt.NDArray[np.float64], resamples: int, seed: int) -> Iterator[Sums]:
    """Sums of rows; each resample draws n_sequences rows with repetition.

    The same seed draws the same sequences, whatever the rows hold.

    rows: What each sequence adds to the sums. shape: (n_sequences, n_numbers)
    """
    rng = np.random.default_rng(seed)
    n = len(rows)
    for _ in range(resamples):
        weights = np.bincount(rng.integers(n, size=n), minlength=n)
        yield weights.astype(np.float64) @ rows


def intervals(
    rows: npt.NDArray[np.float64],
    statistics: Mapping[str, Statistic],
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    progress: Callable[[Iterator[Sums]], Iterator[Sums]] = iter,
) -> dict[str, Interval]:
    """Percentile intervals of several statistics on the same resamples.

    rows: What each sequence adds to the sums. shape: (n_sequences, n_numbers)
    progress: A function that wraps the iteration over resamples, such as a progress bar.
    """
    check_resampling(resamples, confidence)
    values = {name: float(statistic(rows.sum(axis=0))) for name, statistic in statistics.items()}
    drawn: dict[str, list[float]] = {name: [] for name in statistics}
    if len(rows):
        for sums in progress(resampled_sums(rows, resamples, seed)):
            for name, statistic in statistics.items():
                drawn[name].append(float(statistic(sums)))
    return {name: _interval(values[name], drawn[name], confidence) for name in statistics}


def paired_bootstrap(
    rows_a: npt.NDArray[np.float64],
    rows_b: npt.NDArray[np.float64],
    statistic: Statistic,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    progress: Callable[[Iterator[Sums]], Iterator[Sums]] = iter,
) -> PairedDifference:
    """The paired bootstrap (Koehn 2004): a statistic of both systems on the same resamples.

    The p-value is twice the share of resamples in which the sign of the difference is not the
    one observed; one is added to the count, as a p-value of exactly 0 cannot be known.
    """
    check_resampling(resamples, confidence)
    if rows_a.shape != rows_b.shape:
        raise ValueError(
            f"treecrf: rows of shapes {rows_a.shape} and {rows_b.shape}; compare two systems on "
            "the same sequences"
        )
    width = rows_a.shape[1]

    def difference(sums: Sums) -> float:
        return float(statistic(sums[width:])) - float(statistic(sums[:width]))

    both = np.hstack([rows_a, rows_b])
    total = both.sum(axis=0)
    drawn = []
    if len(both):
        drawn = [difference(sums) for sums in progress(resampled_sums(both, resamples, seed))]
    known = [d for d in drawn if not np.isnan(d)]
    p_value = None
    if known:
        not_higher = sum(d <= 0 for d in known)
        not_lower = sum(d >= 0 for d in known)
        p_value = min(1.0, 2 * (min(not_higher, not_lower) + 1) / (len(known) + 1))
    return PairedDifference(
        float(statistic(total[:width])),
        float(statistic(total[width:])),
        _interval(difference(total), drawn, confidence),
        p_value,
    )


def _interval(value: float, drawn: list[float], confidence: float) -> Interval:
    known = [d for d in drawn if not np.isnan(d)]
    if np.isnan(value):
        return Interval(None, None, None)
    if not known:
        return Interval(value, None, None)
    outside = (1.0 - confidence) / 2
    low, high = np.quantile(known, [outside, 1.0 - outside])
    return Interval(value, float(low), float(high))
