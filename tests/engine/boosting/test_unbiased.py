"""Weights of observed examples against the formula, and what they do to trees."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.boosting import Booster
from spacy_treecrf.engine.boosting.unbiased import observed_weight, weigh_observed
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL
from tests.engine.small_models import ONE, as_bytes, empty_model, families, fitted
from tests.engine.training_data import random_training


@pytest.mark.parametrize("n_labels", [2, 3, 9])
@pytest.mark.parametrize(("rate", "exponent"), [(0.007, 2.0), (0.007, 1.0), (0.5, 0.5), (0.0, 1.0)])
def test_weight_of_the_observed_pair_is_that_of_the_paper(n_labels, rate, exponent):
    for m in (1, 2, 10, 200):
        expected = (n_labels**2 - 2) * math.exp(-rate * (m - 1) ** exponent) + 1
        assert observed_weight(n_labels**2, m, rate, exponent) == pytest.approx(expected)
    assert observed_weight(n_labels**2, 1, rate, exponent) == n_labels**2 - 1


@pytest.mark.parametrize("n_examples", [1, 2])
def test_one_example_or_two_need_no_weights(n_examples):
    assert observed_weight(n_examples, 1, 0.007, 1.0) == 1.0


def booster_of(training, **settings) -> Booster:
    crf = empty_model(training, **settings)
    booster = Booster(training.data, crf.columns, len(crf.labels), crf.masks, crf.settings, ONE)
    booster.boost(2)
    return booster


@families
@pytest.mark.parametrize("step", ["newton", "gradient"])
@pytest.mark.parametrize("weighted", [False, True])
def test_only_observed_pairs_are_weighted(family, order, step, weighted):
    training = random_training(51, 10, weighted=weighted)
    data = training.data
    booster = booster_of(training, family=family, order=order, step=step, linear_rounds=1)
    residuals, annotated = booster._residuals(), booster.annotated
    for k in range(3):
        g, h = weigh_observed(annotated, residuals, k, 7.0)
        for row in range(data.n_rows):
            t = row - int(data.offsets[np.searchsorted(data.offsets, row, "right") - 1])
            lags = min(t, order) if family == "joint" else 0
            seen = sum(int(data.labels[row - lag]) * 3 ** (lag - 1) for lag in range(1, lags + 1))
            for c in range(g.shape[1]):
                factor = 7.0 if data.labels[row] == k and c == seen else 1.0
                assert g[row, c] == np.float32(factor * residuals.g[k, row, c])
                plain = residuals.h[k, row, c] if residuals.h.size else float(c < 3**lags)
                assert h[row, c] == np.float32(factor * plain)


def test_unknown_labels_are_weighted_by_their_probability():
    training = random_training(52, 6)
    training.data.labels[:] = UNKNOWN_LABEL
    training.data.labels[0] = 1
    booster = booster_of(training, family="separate", linear_rounds=1)
    residuals, annotated = booster._residuals(), booster.annotated
    for k in range(3):
        g, h = weigh_observed(annotated, residuals, k, 5.0)
        factor = 1.0 + 4.0 * residuals.clamped[:, 0, k]
        np.testing.assert_allclose(g[:, 0], factor * residuals.g[k, :, 0], rtol=1e-6)
        np.testing.assert_allclose(h[:, 0], factor * residuals.h[k, :, 0], rtol=1e-6)


def test_pseudo_likelihood_observes_nothing_in_partial_sequences():
    training = random_training(53, 6)
    training.data.labels[0] = UNKNOWN_LABEL
    booster = booster_of(training, family="joint", linear_rounds=0, pseudo_rounds=9)
    residuals = booster._residuals()
    first = slice(0, int(training.data.offsets[1]))
    for k in range(3):
        g, h = weigh_observed(booster.annotated, residuals, k, 5.0)
        np.testing.assert_array_equal(g[first], residuals.g[k, first])
        np.testing.assert_array_equal(h[first], residuals.h[k, first])
        assert (h[first.stop :] != residuals.h[k, first.stop :]).any()


def test_a_leaf_is_the_weighted_mean():
    """One leaf, joint family, no scores yet: P = 1/9 for each pair of labels after the first."""
    training = random_training(54, 10)
    data = training.data
    crf = fitted(
        training, 1, family="joint", step="gradient", unbiased=True, linear_rounds=0, leaves=1
    )
    starts = np.isin(np.arange(data.n_rows), data.offsets[:-1])
    for k in range(3):
        observed = data.labels == k
        p = np.where(starts, 1.0 / 3.0, 1.0 / 9.0)
        n_other = np.where(starts, 1, 3) - observed
        total = np.sum(8.0 * observed * (1.0 - p)) - np.sum(n_other * p)
        weight = np.sum(8.0 * observed) + np.sum(n_other)
        assert crf.potentials.forest.value[k] == pytest.approx(total / (weight + 1.0), abs=1e-4)


def test_rounds_of_trees_are_counted_and_linear_ones_are_not_weighted():
    training = random_training(55, 20)
    options = {"step": "gradient", "unbiased_rate": 50.0}
    plain = fitted(training, 2, linear_rounds=2, **options)
    same = fitted(training, 2, linear_rounds=2, unbiased=True, **options)
    np.testing.assert_array_equal(
        plain.potentials.linear.categorical, same.potentials.linear.categorical
    )
    # the first round of trees has the whole weight, the second one next to none
    first = fitted(training, 3, linear_rounds=2, unbiased=True, **options)
    other = fitted(training, 3, linear_rounds=2, unbiased=True, step="gradient", unbiased_rate=0.0)
    np.testing.assert_array_equal(first.potentials.forest.value, other.potentials.forest.value)
    later = [
        as_bytes(fitted(training, 4, linear_rounds=2, unbiased=True, step="gradient", **rate))
        for rate in ({"unbiased_rate": 50.0}, {"unbiased_rate": 0.0})
    ]
    assert later[0] != later[1]
