"""Noisy-OR over bags against its definition, and proposition 5.2 against finite differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.future.noisy_or import (
    detector_log_likelihood,
    instance_gradient,
    log_none,
    softplus,
)
from spacy_treecrf.engine.limits import TO_THE_END

BAGS = [1, 2, 6, TO_THE_END]
checked = settings(max_examples=60, deadline=None)


def bag_of(t: int, length: int, bag: int) -> range:
    return range(t + 1, min(length, t + 1 + bag))


def naive_log_none(scores: np.ndarray, offsets: np.ndarray, bag: int) -> np.ndarray:
    """By eq. 5.11, where no p is so near to 1 that the product loses digits."""
    out = np.zeros(len(scores))
    for begin, end in itertools.pairwise(offsets):
        for t in range(end - begin):
            p = [1 / (1 + math.exp(-scores[begin + j])) for j in bag_of(t, end - begin, bag)]
            out[begin + t] = sum(math.log(1 - q) for q in p)
    return out


def run_log_none(scores: np.ndarray, offsets: np.ndarray, bag: int) -> np.ndarray:
    out = np.full(len(scores), np.nan)
    log_none(scores, offsets, 0, len(offsets) - 1, bag, out)
    return out


class Problem:
    """Rows with a detector of one class: everything the likelihood depends on, at random."""

    def __init__(self, seed: int, lengths: list[int]) -> None:
        rng = np.random.default_rng(seed)
        self.offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        n = int(self.offsets[-1])
        self.scores = rng.normal(-2.0, 2.0, n)
        self.own = rng.normal(size=n)
        self.others = rng.normal(size=n)
        self.is_own = rng.random(n) < 0.5
        self.weights = rng.choice([0.0, 1.0, 2.5], n).astype(np.float32)
        self.eta = float(rng.uniform(0.1, 5.0))

    def log_likelihood(self, scores: np.ndarray, bag: int) -> float:
        nones = run_log_none(scores, self.offsets, bag)
        return detector_log_likelihood(
            nones, self.own, self.others, self.is_own, self.weights, self.eta, 0, len(scores)
        )

    def gradient(self, bag: int) -> tuple[np.ndarray, np.ndarray]:
        nones = run_log_none(self.scores, self.offsets, bag)
        score = self.own - self.eta * np.expm1(nones)
        p = 1 / (1 + np.exp(self.others - score))
        slopes = self.eta * self.weights * (self.is_own - p) * np.exp(nones)
        gradient, bags = np.empty(len(score)), np.empty(len(score))
        n = len(self.offsets) - 1
        instance_gradient(self.scores, slopes, self.offsets, 0, n, bag, gradient, bags)
        return gradient, bags


@checked
@given(st.integers(0, 10**6), st.lists(st.integers(0, 9), min_size=1, max_size=4))
@pytest.mark.parametrize("bag", BAGS)
def test_none_of_the_bag_is_the_product_over_its_instances(bag, seed, lengths) -> None:
    problem = Problem(seed, lengths)
    expected = naive_log_none(problem.scores, problem.offsets, bag)
    np.testing.assert_allclose(
        run_log_none(problem.scores, problem.offsets, bag), expected, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("bag", BAGS)
def test_certain_instances_make_certain_bags(bag) -> None:
    offsets = np.array([0, 4], np.int64)
    never = np.full(4, -1e6)
    np.testing.assert_array_equal(run_log_none(never, offsets, bag), 0.0)  # p = 0: Q = 0
    always = np.full(4, 1e6)
    nones = run_log_none(always, offsets, bag)
    assert nones[-1] == 0.0  # no position follows
    np.testing.assert_array_equal(-np.expm1(nones[:-1]), 1.0)  # p = 1: Q = 1
    mixed = np.array([-1e6, -1e6, 1e6, -1e6])
    holds = [2 in bag_of(t, 4, bag) for t in range(4)]
    np.testing.assert_array_equal(-np.expm1(run_log_none(mixed, offsets, bag)), holds)


@pytest.mark.parametrize("bag", BAGS)
def test_sequences_do_not_see_each_other(bag) -> None:
    one = Problem(5, [7])
    both = np.concatenate([one.scores, np.full(3, 1e6)])
    offsets = np.array([0, 7, 7, 10], np.int64)
    np.testing.assert_array_equal(
        run_log_none(both, offsets, bag)[:7], run_log_none(one.scores, one.offsets, bag)
    )


@checked
@given(st.integers(0, 10**6), st.lists(st.integers(1, 9), min_size=1, max_size=3))
@pytest.mark.parametrize("bag", BAGS)
def test_gradient_is_that_of_finite_differences(bag, seed, lengths) -> None:
    problem = Problem(seed, lengths)
    gradient, bags = problem.gradient(bag)
    step = 1e-5
    for i in range(len(gradient)):
        ahead, behind = problem.scores.copy(), problem.scores.copy()
        ahead[i] += step
        behind[i] -= step
        slope = problem.log_likelihood(ahead, bag) - problem.log_likelihood(behind, bag)
        assert gradient[i] == pytest.approx(slope / (2 * step), rel=1e-4, abs=1e-8)
    expected = [
        sum(i in bag_of(t, length, bag) for t in range(length))
        for length in lengths
        for i in range(length)
    ]
    np.testing.assert_array_equal(bags, expected)


def test_log_likelihood_is_that_of_two_classes() -> None:
    problem = Problem(1, [6, 3])
    nones = run_log_none(problem.scores, problem.offsets, 2)
    score = problem.own - problem.eta * np.expm1(nones)
    log_z = np.logaddexp(score, problem.others)
    log_p = np.where(problem.is_own, score, problem.others) - log_z
    expected = float(np.sum(problem.weights * log_p))
    assert problem.log_likelihood(problem.scores, 2) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("x", [-1e6, -40.0, -1.0, 0.0, 1.0, 40.0, 1e6])
def test_softplus_is_right_for_any_number(x) -> None:
    assert softplus(x) == pytest.approx(np.logaddexp(0.0, x), rel=1e-14, abs=0.0)
