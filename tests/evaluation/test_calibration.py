"""The calibration error: stated probability against how often it came true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.evaluation.calibration import (
    Chance,
    calibration_bins,
    error_by_chance,
    expected_calibration_error,
)


def naive_error(probabilities: list[float], correct: list[bool], n_bins: int) -> float:
    """Guo et al. 2017, eq. 3, word for word."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    error = 0.0
    for b in range(n_bins):
        inside = [
            (p, c)
            for p, c in zip(probabilities, correct, strict=True)
            if (edges[b] < p <= edges[b + 1]) or (b == 0 and p == 0.0)
        ]
        if inside:
            confidence = sum(p for p, _ in inside) / len(inside)
            accuracy = sum(c for _, c in inside) / len(inside)
            error += len(inside) / len(probabilities) * abs(accuracy - confidence)
    return error


@given(
    st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), min_size=1, max_size=60),
    st.sampled_from([1, 2, 10, 15]),
)
def test_error_is_the_formula_of_the_paper(answers: list[tuple[float, bool]], n_bins: int) -> None:
    p = [answer[0] for answer in answers]
    correct = [answer[1] for answer in answers]
    error = expected_calibration_error(p, correct, n_bins=n_bins)
    assert error == pytest.approx(naive_error(p, correct, n_bins), abs=1e-12)


def test_certain_and_right_is_perfect_certain_and_wrong_is_worst() -> None:
    assert expected_calibration_error([1.0, 1.0], [True, True]) == 0.0
    assert expected_calibration_error([1.0, 1.0], [False, False]) == 1.0


def test_half_right_at_one_half_is_perfect() -> None:
    assert expected_calibration_error([0.5] * 4, [1, 0, 1, 0], n_bins=10) == 0.0


def test_edges_belong_to_the_bin_below_and_zero_to_the_first() -> None:
    bins = calibration_bins(np.linspace(0.0, 1.0, 11), np.ones(11, dtype=bool), n_bins=10)
    assert bins.counts.tolist() == [2, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    assert bins.edges[0] == 0.0
    assert bins.edges[-1] == 1.0


def test_empty_bins_are_nan_and_do_not_count() -> None:
    bins = calibration_bins([0.95, 0.95], [True, False], n_bins=10)
    assert np.isnan(bins.confidence[:9]).all()
    assert bins.accuracy[9] == 0.5
    assert bins.error == pytest.approx(0.45)


def test_no_answers_have_no_error() -> None:
    assert expected_calibration_error([], []) is None


def test_rounding_beyond_one_is_forgiven() -> None:
    error = expected_calibration_error(np.array([1.0000005], dtype=np.float32), [True])
    assert error == 0.0


@pytest.mark.parametrize(
    ("probabilities", "correct", "n_bins", "part"),
    [
        ([0.5], [True, False], 10, "shape"),
        ([[0.5]], [[True]], 10, "shape"),
        ([float("nan")], [True], 10, "outside of 0 to 1"),
        ([1.1], [True], 10, "outside of 0 to 1"),
        ([-0.1], [True], 10, "outside of 0 to 1"),
        ([0.5], [2], 10, "True and False"),
        ([0.5], [True], 0, "n_bins"),
        ([0.5], [True], 2.5, "n_bins"),
        ([0.5], [True], True, "n_bins"),
    ],
)
def test_bad_arrays_are_refused(probabilities: Any, correct: Any, n_bins: Any, part: str) -> None:
    with pytest.raises(ValueError, match=rf"^treecrf: .*{part}"):
        expected_calibration_error(probabilities, correct, n_bins=n_bins)


@pytest.mark.parametrize("n", [200, 2000])
@pytest.mark.parametrize("sharpness", [1.0, 4.0])
def test_floor_is_the_mean_error_of_honest_answers(n: int, sharpness: float) -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(sharpness, 1.0, n)
    errors = [expected_calibration_error(p, rng.random(n) < p) for _ in range(300)]
    assert calibration_bins(p, p > 0.5).floor == pytest.approx(np.mean(errors), rel=0.1)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60))
def test_floor_does_not_depend_on_what_is_right(p: list[float]) -> None:
    all_right, all_wrong = (calibration_bins(p, np.full(len(p), own)) for own in (True, False))
    assert all_right.floor == all_wrong.floor
    assert all_right.floor is not None
    assert 0.0 <= all_right.floor <= 1.0


def test_certain_answers_have_no_floor_and_no_answers_have_none() -> None:
    assert calibration_bins([1.0, 0.0], [True, True]).floor == 0.0
    assert calibration_bins([], []).floor is None


def by_chance(copies: int, draws: int = 400, bias: float = 0.0) -> Chance | None:
    """The error by chance of 500 sequences, each of which gives one answer so many times."""
    rng = np.random.default_rng(0)
    p = rng.uniform(size=500)
    right = rng.uniform(size=500) < p
    gaps, counts = np.zeros((2, 500, 15))
    place = np.arange(500), np.minimum((15 * p).astype(int), 14)
    gaps[place], counts[place] = copies * (right - p + bias), copies
    return error_by_chance(gaps, counts, draws=draws, confidence=0.95, seed=0)


def test_error_by_chance_of_independent_answers_is_the_floor() -> None:
    chance = by_chance(1)
    p = np.random.default_rng(0).uniform(size=500)
    assert chance is not None
    assert chance.mean == pytest.approx(calibration_bins(p, p > 0.5).floor, rel=0.1)
    assert chance.mean < chance.high < 2 * chance.mean


def test_answers_that_come_together_count_once() -> None:
    once, often = by_chance(1), by_chance(9)
    assert once is not None
    assert often is not None
    assert often.mean == pytest.approx(once.mean)  # independent answers would have a third of it


def test_dishonest_probabilities_are_no_chance() -> None:
    honest, biased = by_chance(1), by_chance(1, bias=0.3)
    assert honest is not None
    assert biased is not None
    assert biased.mean == pytest.approx(honest.mean)


def test_there_is_no_chance_without_draws_or_answers() -> None:
    nothing = np.zeros((3, 15))
    assert by_chance(1, draws=0) is None
    assert error_by_chance(nothing, nothing, draws=9, confidence=0.95, seed=0) is None


def test_one_sequence_tells_nothing_of_chance() -> None:
    gaps, counts = np.array([[0.5, 0.0], [0.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 0.0]])
    assert error_by_chance(gaps, counts, draws=10, confidence=0.95, seed=0) is None
