"""A chain fitted to given scores: its optimum, its gradient, and what it recovers."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.residuals import compute_residuals
from spacy_treecrf.engine.chain.constraints import constrain
from spacy_treecrf.engine.chain.decoding import viterbi
from spacy_treecrf.engine.codes import chain_fitting
from spacy_treecrf.engine.codes.chain_fitting import LabelChain, fit_label_chain, maximise_by_lbfgs
from spacy_treecrf.engine.threads import Workers
from tests.engine.training_data import sequences_of

NAMES = ["a", "b", "c"]


def test_maximum_of_a_badly_scaled_parabola_is_found() -> None:
    scale = np.array([1.0, 10.0, 100.0])
    goal = np.array([3.0, -2.0, 0.5])

    def objective(x):
        return -float(np.sum(scale * (x - goal) ** 2)), -2.0 * scale * (x - goal)

    np.testing.assert_allclose(maximise_by_lbfgs(objective, np.zeros(3)), goal, atol=2e-2)


def cycles(seed: int, n: int = 40, length: int = 6):
    """Labels that follow each other in a circle; scores tell the first one only."""
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, 3, n)
    labels = ((starts[:, None] + np.arange(length)) % 3).ravel()
    scores = np.zeros((n * length, 3), np.float32)
    scores[np.arange(n) * length, starts] = 1.0
    return sequences_of(np.arange(n + 1) * length, labels), scores


def test_transitions_and_scale_are_learned() -> None:
    data, scores = cycles(0)
    masks = constrain("none", NAMES, order=1)
    found = fit_label_chain(scores, data, masks, 1, 0.1, Workers(1))
    assert found.scale > 1.0
    new, new_scores = cycles(1)
    labels, _ = viterbi(found.scores(new_scores)[:, None, :], new.offsets, found.chain(masks))
    assert np.array_equal(labels, new.labels)


def test_nothing_near_the_optimum_is_better() -> None:
    data, scores = cycles(2)
    rng = np.random.default_rng(0)
    scores = scores + rng.normal(size=scores.shape).astype(np.float32)
    masks = constrain("none", NAMES, order=1)
    ridge = 1.0
    best = fit_label_chain(scores, data, masks, 1, ridge, Workers(1))

    def value(chain: LabelChain) -> float:
        annotated = Annotated(data, 3, 1, False)
        nodes = chain.scores(scores)[:, None, :]
        found = compute_residuals(annotated, nodes, chain.chain(masks), None, Workers(1))
        size = float(np.sum(chain.edges.astype(float) ** 2) + np.sum(chain.bias.astype(float) ** 2))
        return (found.log_likelihood - 0.5 * ridge * size) / data.n_rows

    top = value(best)
    for _ in range(20):
        near = LabelChain(
            1,
            best.scale * float(np.exp(rng.normal(scale=0.2))),
            best.bias + rng.normal(scale=0.2, size=3).astype(np.float32),
            best.edges + rng.normal(scale=0.2, size=(4, 3)).astype(np.float32),
        )
        assert value(near) < top + 1e-3


def test_order_0_learns_the_scale_alone() -> None:
    data, _ = cycles(3)
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(data.n_rows, 3)).astype(np.float32)
    scores[np.arange(data.n_rows), data.labels] += 1.0
    masks = constrain("none", NAMES, order=0)
    small, large = (fit_label_chain(c * scores, data, masks, 0, 1.0, Workers(1)) for c in (1, 10))
    assert not large.edges.any()
    assert not large.bias.any()
    assert large.scale < 0.5  # ten times too sure
    assert 10 * large.scale == pytest.approx(small.scale, rel=0.2)


def test_constraints_hold_in_the_fitted_chain() -> None:
    data, scores = cycles(4)
    start, trans, end = constrain("none", NAMES, order=1)
    trans = trans.copy()
    trans[0, 2] = -np.inf
    found = fit_label_chain(scores, data, (start, trans, end), 1, 1.0, Workers(1))
    assert found.chain((start, trans, end)).trans[0, 2] == -np.inf
    assert np.isfinite(found.edges).all()


def test_rare_and_frequent_labels_are_fitted_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Curvatures of their weights differ a thousandfold; few steps come near the optimum."""
    rng = np.random.default_rng(5)
    n_labels, n, length = 30, 200, 8
    share = 1.0 / np.arange(1, n_labels + 1) ** 1.5
    labels = rng.choice(n_labels, size=n * length, p=share / share.sum())
    labels[1::2] = (labels[::2] * 7 + 1) % n_labels  # every second one follows from the one before
    data = sequences_of(np.arange(n + 1) * length, labels)
    scores = rng.normal(size=(data.n_rows, n_labels)).astype(np.float32)
    scores[np.arange(data.n_rows), labels] += 2.0
    masks = constrain("none", [str(y) for y in range(n_labels)], order=1)

    def likelihood() -> float:
        found = fit_label_chain(scores, data, masks, 1, 1.0, Workers(1))
        annotated = Annotated(data, n_labels, 1, False)
        nodes = found.scores(scores)[:, None, :]
        residuals = compute_residuals(annotated, nodes, found.chain(masks), None, Workers(1))
        size = float(np.sum(found.edges.astype(float) ** 2) + np.sum(found.bias.astype(float) ** 2))
        return (residuals.log_likelihood - 0.5 * size) / data.n_rows

    usual = likelihood()
    monkeypatch.setattr(chain_fitting, "LEAST_RISE", 1e-9)
    monkeypatch.setattr(chain_fitting, "MAX_STEPS", 1000)
    assert usual > likelihood() - 1e-3
