"""Linear rounds against a plain numeric optimisation of the penalised likelihood."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.linear import (
    LinearProblem,
    LinearWeights,
    linear_scores,
    solve_linear_round,
)
from spacy_treecrf.engine.boosting.residuals import Bound, compute_residuals
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.fixed_grid import GRID
from spacy_treecrf.engine.sequences import ABSENT, MISSING
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import count_lags
from tests.engine.training_data import random_training

WORKERS = Workers(1)
RIDGE = 1.0


def design_matrix(training):
    """One column per feature and per numeric column. shape: (n_rows, n_features + n_numeric)"""
    data, columns = training.data, training.columns
    n_features = len(columns.counts)
    matrix = np.zeros((data.n_rows, n_features + len(columns.bin_values)))
    for row in range(data.n_rows):
        for feature in data.feature_ids[row]:
            if feature >= 0:
                matrix[row, feature] = 1.0
        for column, bin_ in enumerate(data.numeric[row]):
            matrix[row, n_features + column] = columns.bin_values[column, bin_]
    return matrix


def random_weights(training, seed=0):
    rng = np.random.default_rng(seed)
    n_labels = len(training.labels)
    shapes = [(len(training.columns.counts), n_labels)]
    shapes.append((len(training.columns.bin_values), n_labels))
    return LinearWeights(
        *(np.rint(rng.normal(size=s) * 1000).astype(np.float32) / 1024 for s in shapes)
    )


class Fit:
    """Linear rounds on their own, with a fixed chain."""

    def __init__(self, training, chain, joint=False, mixing=True):
        self.training = training
        self.chain = chain
        n_labels = len(training.labels)
        self.annotated = Annotated(training.data, n_labels, chain.order, joint)
        self.bound = Bound(mixing, 3.0)
        self.n_contexts = n_labels**chain.order if joint else 1
        self.lags = count_lags(training.data.offsets, chain.order if joint else 0)
        n_numeric = len(training.columns.bin_values)
        self.weights = LinearWeights.zeros(len(training.columns.counts), n_numeric, n_labels)
        self.previous = self.weights

    def scores_of(self, weights):
        return linear_scores(self.training.data, weights, self.training.columns.bin_values, WORKERS)

    def residuals(self):
        scores = np.repeat(self.scores_of(self.weights)[:, None], self.n_contexts, axis=1)
        return compute_residuals(self.annotated, scores, self.chain, self.bound, WORKERS)

    def objective(self):
        squares = sum(
            float((w.astype(float) ** 2).sum())
            for w in (self.weights.categorical, self.weights.numeric)
        )
        return self.residuals().log_likelihood - 0.5 * RIDGE * squares

    def round(self, trim=0.0):
        residuals = self.residuals()
        problem = LinearProblem(
            self.training.data,
            self.training.columns.bin_values,
            residuals.of_label,
            self.lags,
            self.weights,
            self.previous,
            self.scores_of(self.weights),
            self.scores_of(self.previous).__getitem__,
        )
        self.previous = self.weights
        self.weights = solve_linear_round(problem, RIDGE, trim, WORKERS)

    def stacked(self):
        return np.concatenate([self.weights.categorical, self.weights.numeric]).astype(float)


def test_linear_scores_equal_the_naive_sum():
    training = random_training(1)
    weights = random_weights(training)
    data = training.data
    data.feature_ids[0, 0] = ABSENT
    data.feature_ids[1, 0] = MISSING
    data.feature_ids[2, 0] = len(training.columns.counts) + 5
    found = linear_scores(data, weights, training.columns.bin_values, WORKERS)
    of_bins = weights.bin_scores(training.columns.bin_values)
    for row in range(data.n_rows):
        expected = np.zeros(len(training.labels))
        for feature in data.feature_ids[row]:
            if 0 <= feature < len(weights.categorical):
                expected += weights.categorical[feature]
        for column, bin_ in enumerate(data.numeric[row]):
            expected += of_bins[column, bin_]
        np.testing.assert_array_equal(found[row], expected)  # exact: all lie on the grid


def test_bin_scores_are_weight_times_value_on_the_grid():
    training = random_training(1)
    weights = random_weights(training)
    values = training.columns.bin_values
    found = weights.bin_scores(values)
    assert found.shape == (len(values), 256, len(training.labels))
    np.testing.assert_allclose(
        found, values[:, :, None] * weights.numeric[:, None], atol=0.51 / GRID
    )
    np.testing.assert_array_equal(found * GRID, np.rint(found * GRID))


def test_weights_stay_on_the_grid():
    fit = Fit(random_training(2), Chain.free(3, 1))
    for _ in range(3):
        fit.round()
        for weights in (fit.weights.categorical, fit.weights.numeric):
            assert weights.dtype == np.float32
            assert weights.any()
            np.testing.assert_array_equal(weights * GRID, np.rint(weights * GRID))


@pytest.mark.parametrize(("order", "joint"), [(0, False), (1, False), (1, True), (2, True)])
@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_every_round_raises_the_penalised_likelihood(order, joint, unknown):
    training = random_training(3, unknown=unknown, weighted=True)
    fit = Fit(training, Chain.free(3, order), joint)
    values = [fit.objective()]
    for _ in range(8):
        fit.round()
        values.append(fit.objective())
    # weights are rounded to the grid: the objective may tremble in its last digits
    assert (np.diff(values) > -1e-4).all()
    assert values[1] > values[0] + 0.5


def test_trimming_changes_little():
    fits = [Fit(random_training(4, 200), Chain.free(3, 1)) for _ in range(2)]
    for _ in range(4):
        for fit, trim in zip(fits, (0.0, 0.05), strict=True):
            fit.round(trim)
    exact, trimmed = (fit.objective() for fit in fits)
    assert trimmed == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize("weighted", [False, True])
def test_rounds_reach_the_optimum_of_a_numeric_optimisation(weighted):
    """Order 0 is softmax regression, whose optimum Newton's method finds."""
    training = random_training(5, 25, weighted=weighted)
    data = training.data
    matrix = design_matrix(training)
    weights = newton_softmax(matrix, data.labels, data.weights.astype(float), 3)
    fit = Fit(training, Chain.free(3, 0))
    for _ in range(120):
        fit.round()
    # the last steps are of the grid's size: they stop short of the optimum's last digits
    np.testing.assert_allclose(fit.stacked(), weights, atol=1e-2)
    objective = fit.objective()
    assert np.abs(weights[-2:]).max() > 0.1  # the numeric columns matter
    fit.weights = LinearWeights(*np.split(weights.astype(np.float32), [len(weights) - 2]))
    optimum = fit.objective()
    assert objective == pytest.approx(optimum, abs=5e-3)


def test_rounds_reach_the_optimum_in_a_chain():
    """The gradient of the penalised likelihood vanishes, which it does in one point only."""
    training = random_training(6, 20)
    rng = np.random.default_rng(0)
    chain = Chain(1, *(rng.normal(size=s).astype(np.float32) for s in (3, (3, 3), 3)))
    fit = Fit(training, chain, mixing=False)
    for _ in range(150):
        fit.round()
    g = fit.residuals().g[:, :, 0]
    gradient = design_matrix(training).T @ g.T - RIDGE * fit.stacked()
    np.testing.assert_allclose(gradient, 0.0, atol=2e-2)


def newton_softmax(matrix, labels, row_weights, n_labels):
    """Penalised softmax regression by Newton's method with halved steps."""
    n = matrix.shape[1]
    weights = np.zeros((n, n_labels))
    gold = np.eye(n_labels)[labels]

    def value_of(weights):
        scores = matrix @ weights
        log_p = (scores * gold).sum(axis=1) - np.logaddexp.reduce(scores, axis=1)
        return row_weights @ log_p - 0.5 * RIDGE * (weights**2).sum()

    for _ in range(30):
        scores = matrix @ weights
        p = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
        gradient = matrix.T @ (row_weights[:, None] * (gold - p)) - RIDGE * weights
        hessian = RIDGE * np.eye(n * n_labels)
        for k in range(n_labels):
            for j in range(n_labels):
                curvature = row_weights * p[:, k] * ((k == j) - p[:, j])
                block = matrix.T @ (curvature[:, None] * matrix)
                hessian[k * n : (k + 1) * n, j * n : (j + 1) * n] += block
        step = np.linalg.solve(hessian, gradient.T.ravel()).reshape(n_labels, n).T
        rate = 1.0
        while value_of(weights + rate * step) < value_of(weights) and rate > 1e-6:
            rate /= 2.0
        weights = weights + rate * step
    return weights


def test_the_way_between_two_weights():
    training = random_training(1)
    a, b = random_weights(training, 0), random_weights(training, 1)
    np.testing.assert_array_equal(a.toward(b, 0.0).categorical, a.categorical)
    np.testing.assert_array_equal(a.toward(b, 1.0).numeric, b.numeric)
    middle = a.toward(b, 0.5)
    np.testing.assert_allclose(
        middle.categorical, (a.categorical + b.categorical) / 2, atol=1.0 / GRID
    )
    assert not a.is_zero()
    assert LinearWeights.zeros(3, 2, 2).is_zero()
