"""Residuals against finite differences of the enumerated log-likelihood."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.expectations import expect
from spacy_treecrf.engine.boosting.residuals import Bound, compute_residuals
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.sequences import CHUNK_ROWS
from spacy_treecrf.engine.threads import Workers
from tests.engine.training_data import Annotation, random_annotation, sequences_of

WORKERS = Workers(1)
STEP = 2.0**-7  # on the grid: float32 scores and transitions take it exactly

FAMILIES = [(0, False, 3), (1, False, 3), (1, True, 3), (2, True, 2), (3, True, 2), (4, True, 2)]
families = pytest.mark.parametrize(("order", "joint", "n_labels"), FAMILIES)
situations = pytest.mark.parametrize(
    "situation",
    [
        {},
        {"forbidden": 0.3},
        {"unknown": 0.4},
        {"weighted": True},
        {"forbidden": 0.3, "unknown": 0.4, "weighted": True},
    ],
    ids=lambda situation: "-".join(situation) or "plain",
)


def residuals_of(annotation: Annotation, joint: bool, bound: Bound | None = None):
    chain = annotation.problem.chain
    annotated = Annotated(annotation.data, chain.n_labels, chain.order, joint)
    return compute_residuals(annotated, annotation.problem.scores, chain, bound, WORKERS)


def difference(annotation: Annotation, change) -> float:
    return (
        annotation.log_likelihood(*change(STEP)) - annotation.log_likelihood(*change(-STEP))
    ) / (2.0 * STEP)


@families
@situations
def test_residuals_are_the_gradient_of_the_log_likelihood(order, joint, n_labels, situation):
    annotation = random_annotation(order, order, n_labels, [4, 1, 2], joint=joint, **situation)
    scores, chain = annotation.problem.scores, annotation.problem.chain
    found = residuals_of(annotation, joint)
    assert found.log_likelihood == pytest.approx(annotation.log_likelihood(), rel=1e-9, abs=1e-9)
    if "weighted" not in situation:
        assert found.h.shape == (n_labels, 0, 0)  # every hessian is 1

    def moved_score(index):
        def change(step):
            moved = scores.copy()
            moved[index] += step
            return moved, chain

        return change

    expected = np.zeros((n_labels, *scores.shape[:2]))
    for t, c, k in np.ndindex(scores.shape):
        expected[k, t, c] = difference(annotation, moved_score((t, c, k)))
    np.testing.assert_allclose(found.g, expected, atol=3e-5)


@pytest.mark.parametrize(("order", "joint", "n_labels"), [f for f in FAMILIES if f[0] > 0])
@situations
def test_edge_residuals_are_the_gradient_in_the_transitions(order, joint, n_labels, situation):
    annotation = random_annotation(order, order, n_labels, [4, 1, 2], joint=joint, **situation)
    scores, chain = annotation.problem.scores, annotation.problem.chain
    found = residuals_of(annotation, joint)
    edges = np.vstack([chain.trans, chain.start])

    def moved_edge(u, v):
        def change(step):
            moved = edges.copy()
            moved[u, v] += step
            return scores, Chain(order, moved[-1], moved[:-1], chain.end)

        return change

    for u, v in np.ndindex(edges.shape):
        expected = 0.0
        if np.isfinite(edges[u, v]):
            expected = difference(annotation, moved_edge(u, v))
        assert found.edge_g[u, v] == pytest.approx(expected, abs=2e-4)


@families
@pytest.mark.parametrize("mixing", [False, True])
@pytest.mark.parametrize("max_step", [0.5, 3.0])
def test_no_hessian_lets_a_step_exceed_the_limit(order, joint, n_labels, mixing, max_step):
    annotation = random_annotation(
        7, order, n_labels, [5, 1, 3], joint=joint, unknown=0.3, weighted=True, scale=4.0
    )
    found = residuals_of(annotation, joint, Bound(mixing, max_step))
    assert (found.h >= np.abs(found.g) / max_step * (1.0 - 1e-6)).all()
    assert (found.edge_h >= np.abs(found.edge_g) / max_step * (1.0 - 1e-12)).all()
    np.testing.assert_array_equal(found.g, residuals_of(annotation, joint).g)
    # contexts that cannot occur take no part
    occurs = n_labels ** np.minimum([0, 1, 2, 3, 4, 0, 0, 1, 2], order if joint else 0)
    invalid = np.arange(found.g.shape[2]) >= occurs[:, None]
    assert not found.g[:, invalid].any()
    assert not found.h[:, invalid].any()


@families
def test_mixing_never_bounds_the_hessian_lower_than_one_position_alone(order, joint, n_labels):
    annotation = random_annotation(8, order, n_labels, [5, 1, 3], joint=joint)
    local = residuals_of(annotation, joint, Bound(False, 3.0))
    mixing = residuals_of(annotation, joint, Bound(True, 3.0))
    assert (mixing.h >= local.h).all()


@families
def test_a_sequence_without_any_label_says_nothing(order, joint, n_labels):
    annotation = random_annotation(9, order, n_labels, [4], joint=joint, unknown=0.5)
    assert (annotation.data.labels == -1).all()
    found = residuals_of(annotation, joint)
    assert found.log_likelihood == 0.0
    np.testing.assert_allclose(found.g, 0.0, atol=1e-7)
    np.testing.assert_allclose(found.edge_g, 0.0, atol=1e-7)


@pytest.mark.parametrize("clamp", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_expectations_survive_underflow(seed, clamp):
    """Scores of +-300 and forbidden transitions: no mass may be lost on the way to the end."""
    annotation = random_annotation(
        seed, 1, 2, [6, 5, 1], joint=False, scale=300.0, forbidden=0.4, unknown=0.5, weighted=True
    )
    chain, data = annotation.problem.chain, annotation.data
    annotated = Annotated(data, 2, 1, False)
    found = expect(annotated, annotation.problem.scores, chain, (0, 3), True, clamp)
    edges = np.zeros((3, 2))
    for s, rows in enumerate(annotation.problem.rows()):
        truth = annotation.enumerate(s)[clamp]
        assert found.log_z[s] == pytest.approx(truth.log_z, rel=1e-6)
        pairs = truth.pair_marginals(rows.stop - rows.start)
        np.testing.assert_allclose(found.pairs[rows, 0], pairs.sum(axis=1), atol=1e-6)
        edges[:2] += data.weights[rows.start] * pairs[1:].sum(axis=0)
        edges[2] += data.weights[rows.start] * pairs[0].sum(axis=0)
    np.testing.assert_allclose(found.edges, edges, atol=1e-5)
    assert np.isfinite(found.gamma).all()
    assert (found.gamma >= 2.0).all()


def test_sequences_in_other_chunks_change_nothing():
    """Each sequence's residuals are the same alone and among many chunks."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 60, 300)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    assert offsets[-1] > 2 * CHUNK_ROWS
    labels = rng.integers(-1, 3, offsets[-1])
    weights = np.repeat(rng.uniform(0.5, 2.0, len(lengths)), lengths)
    scores = rng.normal(size=(offsets[-1], 1, 3)).astype(np.float32)
    chain = Chain(1, *(rng.normal(size=s).astype(np.float32) for s in (3, (3, 3), 3)))
    data = sequences_of(offsets, labels, weights)
    together = compute_residuals(
        Annotated(data, 3, 1, False), scores, chain, Bound(True, 3.0), WORKERS
    )
    total, edge_g = 0.0, np.zeros((4, 3))
    for s in range(data.n_sequences):
        rows = data.rows_of((s, s + 1))
        alone = compute_residuals(
            Annotated(data.subset(np.array([s])), 3, 1, False),
            scores[rows],
            chain,
            Bound(True, 3.0),
            WORKERS,
        )
        np.testing.assert_array_equal(together.g[:, rows], alone.g)
        np.testing.assert_array_equal(together.h[:, rows], alone.h)
        total += alone.log_likelihood
        edge_g += alone.edge_g
    assert together.log_likelihood == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(together.edge_g, edge_g, atol=1e-9)
