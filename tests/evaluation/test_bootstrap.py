"""Intervals and paired differences from resampled sequences."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.evaluation.bootstrap import intervals, paired_bootstrap, resampled_sums


def ratio(sums: np.ndarray) -> float:
    return float(sums[0] / sums[1]) if sums[1] else float("nan")


def shares(right: list[int], total: list[int]) -> np.ndarray:
    return np.array([right, total], float).T


def test_interval_of_a_share_is_that_of_the_normal_approximation() -> None:
    """1,000 sequences of one token, 30 % of them right."""
    rows = shares([1] * 300 + [0] * 700, [1] * 1000)
    found = intervals(rows, {"share": ratio}, resamples=2000)["share"]
    half = 1.96 * np.sqrt(0.3 * 0.7 / 1000)
    assert found.value == 0.3
    assert found.low == pytest.approx(0.3 - half, abs=0.004)
    assert found.high == pytest.approx(0.3 + half, abs=0.004)


def test_sequences_are_drawn_whole() -> None:
    """Two sequences that are all right or all wrong: every resample is 0, a half or 1."""
    rows = shares([50, 0], [50, 50])
    drawn = {ratio(sums) for sums in resampled_sums(rows, 200, seed=1)}
    assert drawn == {0.0, 0.5, 1.0}


def test_intervals_depend_on_the_seed_alone() -> None:
    rows = shares([1, 0, 2, 5, 3], [2, 3, 2, 6, 9])
    first, again, other = (
        intervals(rows, {"share": ratio}, resamples=50, seed=seed)["share"] for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


def test_higher_confidence_gives_a_wider_interval() -> None:
    rows = shares([1, 0] * 30, [1] * 60)
    narrow = intervals(rows, {"s": ratio}, confidence=0.5)["s"]
    wide = intervals(rows, {"s": ratio}, confidence=0.99)["s"]
    assert wide.low is not None
    assert narrow.low is not None
    assert wide.high is not None
    assert narrow.high is not None
    assert wide.low < narrow.low < 0.5 < narrow.high < wide.high


def test_without_resamples_there_is_a_value_and_no_interval() -> None:
    found = intervals(shares([1], [2]), {"s": ratio}, resamples=0)["s"]
    assert (found.value, found.low, found.high) == (0.5, None, None)


def test_a_figure_without_data_has_no_value() -> None:
    found = intervals(shares([0], [0]), {"s": ratio}, resamples=5)["s"]
    assert (found.value, found.low, found.high) == (None, None, None)


def test_a_clear_difference_is_significant_and_none_is_not() -> None:
    rng = np.random.default_rng(0)
    a = (rng.random(400) < 0.5).astype(int).tolist()
    better = (rng.random(400) < 0.7).astype(int).tolist()
    total = [1] * 400
    clear = paired_bootstrap(shares(a, total), shares(better, total), ratio)
    assert clear.b - clear.a == pytest.approx(clear.interval.value)
    assert clear.interval.low is not None
    assert clear.interval.low > 0
    assert clear.p_value is not None
    assert clear.p_value < 0.01
    same = paired_bootstrap(shares(a, total), shares(a, total), ratio)
    assert same.interval.value == 0.0
    assert same.p_value == 1.0


def test_pairing_makes_a_small_but_steady_difference_significant() -> None:
    """B is right wherever A is, and on some more: unpaired intervals would overlap widely."""
    a = [1] * 500 + [0] * 500
    b = [1] * 515 + [0] * 485
    total = [1] * 1000
    found = paired_bootstrap(shares(a, total), shares(b, total), ratio)
    assert found.interval.low is not None
    assert found.interval.low > 0
    assert found.p_value is not None
    assert found.p_value < 0.01


def test_bad_numbers_are_refused() -> None:
    rows = shares([1], [1])
    with pytest.raises(ValueError, match=r"treecrf: confidence is 1\.0"):
        intervals(rows, {}, confidence=1.0)
    with pytest.raises(ValueError, match="treecrf: -1 bootstrap resamples"):
        intervals(rows, {}, resamples=-1)
    with pytest.raises(ValueError, match="treecrf: rows of shapes"):
        paired_bootstrap(rows, shares([1, 1], [1, 1]), ratio)
