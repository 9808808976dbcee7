"""Pseudo-likelihood residuals against finite differences of the naive pseudo-likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.pseudo import compute_pseudo_residuals
from spacy_treecrf.engine.boosting.residuals import Bound
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.threads import Workers
from tests.engine.enumeration import path_score
from tests.engine.training_data import random_annotation

WORKERS = Workers(1)
STEP = 2.0**-7

families = pytest.mark.parametrize(
    ("order", "joint", "n_labels"),
    [(0, False, 3), (1, False, 3), (1, True, 3), (2, True, 2), (3, True, 2)],
)


def log_pseudo_likelihood(annotation, scores, chain):
    """The sum over positions of log P(label | all other labels); partial sequences do not count."""
    total = 0.0
    for rows in annotation.problem.rows():
        labels = annotation.data.labels[rows].tolist()
        if -1 in labels:
            continue
        weight = float(annotation.data.weights[rows.start])
        for t, y in enumerate(labels):
            logits = [
                path_score(scores[rows], chain, (*labels[:t], v, *labels[t + 1 :]))
                for v in range(chain.n_labels)
            ]
            total += weight * (logits[y] - np.logaddexp.reduce(logits))
    return total


def residuals_of(annotation, joint, bound=None):
    chain = annotation.problem.chain
    annotated = Annotated(annotation.data, chain.n_labels, chain.order, joint)
    return compute_pseudo_residuals(annotated, annotation.problem.scores, chain, bound, WORKERS)


@families
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_residuals_are_the_gradient_of_the_pseudo_likelihood(order, joint, n_labels, forbidden):
    annotation = random_annotation(
        order, order, n_labels, [4, 1, 2, 3], joint=joint, forbidden=forbidden, weighted=True
    )
    scores, chain = annotation.problem.scores, annotation.problem.chain
    found = residuals_of(annotation, joint)
    value = log_pseudo_likelihood(annotation, scores, chain)
    assert found.log_likelihood == pytest.approx(value, rel=1e-9)
    for t, c, k in np.ndindex(scores.shape):
        up, down = scores.copy(), scores.copy()
        up[t, c, k] += STEP
        down[t, c, k] -= STEP
        expected = log_pseudo_likelihood(annotation, up, chain)
        expected -= log_pseudo_likelihood(annotation, down, chain)
        assert found.g[k, t, c] == pytest.approx(expected / (2.0 * STEP), abs=1e-4)
    if order == 0:
        return
    edges = np.vstack([chain.trans, chain.start])
    for u, v in zip(*np.nonzero(np.isfinite(edges)), strict=True):
        values = []
        for step in (STEP, -STEP):
            moved = edges.copy()
            moved[u, v] += step
            moved_chain = Chain(order, moved[-1], moved[:-1], chain.end)
            values.append(log_pseudo_likelihood(annotation, scores, moved_chain))
        expected = (values[0] - values[1]) / (2.0 * STEP)
        assert found.edge_g[u, v] == pytest.approx(expected, abs=1e-3)


@families
def test_sequences_that_are_not_fully_annotated_contribute_nothing(order, joint, n_labels):
    annotation = random_annotation(3, order, n_labels, [4, 2, 3], joint=joint)
    annotation.data.labels[5] = -1
    found = residuals_of(annotation, joint, Bound(False, 3.0))
    assert not found.g[:, 4:6].any()
    assert not found.h[:, 4:6].any()
    data = annotation.data.subset(np.array([0, 2]))
    rest = np.array([0, 1, 2, 3, 6, 7, 8])
    chain = annotation.problem.chain
    without = compute_pseudo_residuals(
        Annotated(data, n_labels, order, joint),
        annotation.problem.scores[rest],
        chain,
        Bound(False, 3.0),
        WORKERS,
    )
    np.testing.assert_array_equal(found.g[:, rest], without.g)
    np.testing.assert_array_equal(found.h[:, rest], without.h)
    np.testing.assert_array_equal(found.edge_g, without.edge_g)
    assert found.log_likelihood == without.log_likelihood


@families
def test_nothing_fully_annotated_gives_zero_residuals(order, joint, n_labels):
    annotation = random_annotation(4, order, n_labels, [3, 2], joint=joint)
    annotation.data.labels[[1, 4]] = -1
    found = residuals_of(annotation, joint, Bound(False, 3.0))
    assert found.log_likelihood == 0.0
    assert not found.g.any()
    assert not found.edge_g.any()
    assert np.isfinite(found.edge_h).all()


@families
@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_no_hessian_lets_a_step_exceed_the_limit(order, joint, n_labels, weight):
    annotation = random_annotation(5, order, n_labels, [5, 1, 3], joint=joint, scale=3.0)
    data = annotation.data
    weighted = replace(data, weights=np.full(len(data.weights), weight, np.float32))
    annotation = replace(annotation, data=weighted)
    found = residuals_of(annotation, joint, Bound(False, 3.0))
    assert (found.h >= np.abs(found.g) / 3.0 * (1.0 - 1e-6)).all()
    assert (found.edge_h >= np.abs(found.edge_g) / 3.0 * (1.0 - 1e-12)).all()


@families
def test_weights_scale_gradient_and_hessian_alike(order, joint, n_labels):
    annotation = random_annotation(6, order, n_labels, [5, 1, 3], joint=joint)
    once = residuals_of(annotation, joint, Bound(False, 3.0))
    data = replace(annotation.data, weights=2.0 * annotation.data.weights)
    twice = residuals_of(replace(annotation, data=data), joint, Bound(False, 3.0))
    np.testing.assert_allclose(twice.g, 2.0 * once.g, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(twice.h, 2.0 * once.h, rtol=1e-5, atol=1e-6)
    assert twice.log_likelihood == pytest.approx(2.0 * once.log_likelihood)
