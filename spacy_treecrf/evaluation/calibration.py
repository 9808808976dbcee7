"""The calibration error: how far stated probabilities are from how often they come true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# Probabilities are sums of exponentials, which may end a little outside of 0 to 1.
_ROUNDING = 1e-5
SIGNS_AT_ONCE = 2**20


@dataclass(frozen=True)
class CalibrationBins:
    """Answers sorted into bins of equal width by their stated probability."""

    edges: npt.NDArray[np.float64]  # shape: (n_bins + 1,), bin b is edges[b] < p <= edges[b + 1]
    counts: npt.NDArray[np.int64]  # shape: (n_bins,)
    confidence: npt.NDArray[np.float64]  # shape: (n_bins,), mean probability, nan if bin is empty
    accuracy: npt.NDArray[np.float64]  # shape: (n_bins,), share of right answers, nan if empty
    variance: npt.NDArray[np.float64]  # shape: (n_bins,), of the number of right answers if honest

    @property
    def error(self) -> float | None:
        """The expected calibration error (Guo et al. 2017, eq. 3); None without any answer."""
        filled = self.counts > 0
        if not filled.any():
            return None
        gaps = np.abs(self.accuracy[filled] - self.confidence[filled])
        return float(np.average(gaps, weights=self.counts[filled]))

    @property
    def floor(self) -> float | None:
        """The error that probabilities which are honest would have by chance; None without answers.

        The number of right answers in a bin is then a sum of independent draws, whose mean distance
        from its expectation is sqrt(2 / pi) standard deviations where it is about normal. Answers
        within a sequence are not independent: `error_by_chance` knows that, and is mostly higher.
        """
        n = int(self.counts.sum())
        return float(np.sqrt(2.0 / np.pi * self.variance).sum() / n) if n else None


@dataclass(frozen=True)
class Chance:
    """The calibration error that honest probabilities would have on the same sequences."""

    mean: float
    high: float  # a given share of the draws lies below, such as 95 %


def error_by_chance(
    gaps: npt.NDArray[np.float64],
    counts: npt.NDArray[np.float64],
    *,
    draws: int,
    confidence: float,
    seed: int,
) -> Chance | None:
    """The error by chance where answers of a sequence tend to be right or wrong together.

    In each draw the deviations of a sequence keep their signs or change them all, at random (the
    wild bootstrap of Wu 1986, with the signs of Davidson and Flachaire 2008). Deviations are those
    from the mean gap of their bin, so that dishonest probabilities do not count as chance. None
    without draws, or with answers of fewer than two sequences.

    gaps: What a sequence adds to each bin's sum of (answer is right) - probability. shape:
    (n_sequences, n_bins)
    counts: How many answers a sequence has in each bin. shape: (n_sequences, n_bins)
    """
    in_bin = counts.sum(axis=0)
    n = in_bin.sum()
    if not draws or np.count_nonzero(counts.any(axis=1)) < 2:
        return None
    deviations = gaps - counts * (gaps.sum(axis=0) / np.maximum(in_bin, 1.0))
    # A mean of few sequences is nearer to them than the truth is.
    sequences = np.maximum(np.count_nonzero(counts, axis=0), 2)
    deviations *= np.sqrt(sequences / (sequences - 1))
    rng = np.random.default_rng(seed)
    errors: list[float] = []
    while len(errors) < draws:
        size = (min(max(1, SIGNS_AT_ONCE // len(gaps)), draws - len(errors)), len(gaps))
        signs = 2.0 * rng.integers(2, size=size) - 1.0
        errors += (np.abs(signs @ deviations).sum(axis=1) / n).tolist()
    return Chance(float(np.mean(errors)), float(np.quantile(errors, confidence)))


def calibration_bins(
    probabilities: npt.ArrayLike, correct: npt.ArrayLike, *, n_bins: int = 15
) -> CalibrationBins:
    """Sort answers into bins by the probability they were given.

    probabilities: The probability of each answer, such as the marginal of each predicted label.
    correct: Whether each answer was right.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    right = np.asarray(correct)
    if isinstance(n_bins, bool) or not isinstance(n_bins, (int, np.integer)) or n_bins < 1:
        raise ValueError(f"treecrf: n_bins is {n_bins!r}; use an integer of 1 or more")
    if p.ndim != 1 or p.shape != right.shape:
        raise ValueError(
            f"treecrf: probabilities of shape {p.shape} and correct of shape {right.shape}; pass "
            "one probability and one True or False for each answer"
        )
    if right.size and not np.isin(right, (0, 1)).all():
        raise ValueError("treecrf: correct holds other values than True and False")
    # `not all` instead of `any`, so that nan is refused as well.
    if not np.all((p >= -_ROUNDING) & (p <= 1.0 + _ROUNDING)):
        raise ValueError("treecrf: probabilities holds values outside of 0 to 1")
    p = np.clip(p, 0.0, 1.0)
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    bins = np.searchsorted(edges[1:-1], p, side="left")
    counts = np.bincount(bins, minlength=n_bins)
    empty_is_nan = np.where(counts > 0, counts, np.nan)
    return CalibrationBins(
        edges=edges,
        counts=counts.astype(np.int64),
        confidence=np.bincount(bins, weights=p, minlength=n_bins) / empty_is_nan,
        accuracy=np.bincount(bins, weights=right.astype(np.float64), minlength=n_bins)
        / empty_is_nan,
        variance=np.bincount(bins, weights=p * (1.0 - p), minlength=n_bins).astype(np.float64),
    )


def expected_calibration_error(
    probabilities: npt.ArrayLike, correct: npt.ArrayLike, *, n_bins: int = 15
) -> float | None:
    """The mean distance of probability and accuracy over equal bins; None without answers."""
    return calibration_bins(probabilities, correct, n_bins=n_bins).error
