"""Soft labels in training against enumeration and finite differences of what it maximizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.residuals import Bound, compute_residuals
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences, join_sequences
from spacy_treecrf.engine.soft_labels import NO_TABLE, SoftLabels
from spacy_treecrf.engine.threads import Workers
from tests.engine.enumeration import enumerate_paths
from tests.engine.training_data import Annotation, random_annotation

WORKERS = Workers(1)
STEP = 2.0**-7  # on the grid: float32 scores and transitions take it exactly
LENGTHS = [4, 1, 3, 2]
FAMILIES = [(0, False, 3), (1, False, 3), (1, True, 3), (2, True, 2), (3, True, 2)]
families = pytest.mark.parametrize(("order", "joint", "n_labels"), FAMILIES)
meanings = pytest.mark.parametrize("distill", [False, True], ids=["evidence", "distill"])
situations = pytest.mark.parametrize(
    "situation",
    [
        {},
        {"edges": True},
        {"forbidden": 0.3},
        {"edges": True, "unknown": 0.4, "weighted": True},
    ],
    ids=lambda situation: "-".join(situation) or "nodes",
)


def soft_annotation(seed, order, n_labels, *, joint, edges=False, **situation) -> Annotation:
    """The first three sequences are soft, the second and the third on some rows only."""
    annotation = random_annotation(seed, order, n_labels, LENGTHS, joint=joint, **situation)
    rng = np.random.default_rng(seed)
    n_rows = sum(LENGTHS)
    with np.errstate(divide="ignore"):
        nodes = np.log(rng.uniform(size=(4, n_labels)) * (rng.random((4, n_labels)) < 0.8))
    nodes[:, 0] = np.log(0.2)  # label 0 is always possible
    node_table = rng.integers(-1, 4, n_rows).astype(np.int32)
    node_table[:5] = rng.integers(0, 4, 5)
    node_table[8:] = NO_TABLE
    edge_table = np.full(n_rows, NO_TABLE, np.int32)
    pairs = np.log(rng.uniform(0.05, 1.0, size=(2, n_labels, n_labels)))
    if edges:
        edge_table[[1, 3, 6, 7]] = [0, 1, 1, 0]
        node_table[2] = NO_TABLE
    soft = SoftLabels(node_table, nodes.astype(np.float32), edge_table, pairs.astype(np.float32))
    labels = annotation.data.labels.copy()
    labels[:8] = UNKNOWN_LABEL
    return replace(annotation, data=replace(annotation.data, labels=labels, soft=soft))


def path_weights(annotation: Annotation, s: int, paths) -> np.ndarray:
    """Log weights of label sequences, by the definition."""
    rows, data = annotation.problem.rows()[s], annotation.data
    soft = data.soft
    found = np.zeros(len(paths))
    for i, path in enumerate(paths):
        for t, y in enumerate(path):
            row = rows.start + t
            if soft.node_table[row] != NO_TABLE:
                found[i] += soft.nodes[soft.node_table[row], y]
            elif data.labels[row] not in (UNKNOWN_LABEL, y):
                found[i] = -np.inf
            if t and soft.edge_table[row] != NO_TABLE:
                found[i] += soft.edges[soft.edge_table[row], path[t - 1], y]
    return found


def log_sum(values: np.ndarray) -> float:
    return float(np.logaddexp.reduce(values))


def objective(annotation: Annotation, distill: bool, scores=None, chain=None) -> float:
    """What training maximizes, by enumeration of all label sequences."""
    scores = annotation.problem.scores if scores is None else scores
    chain = chain or annotation.problem.chain
    total = 0.0
    for s, rows in enumerate(annotation.problem.rows()):
        free = enumerate_paths(scores[rows], chain)
        weights = path_weights(annotation, s, free.paths)
        if distill and annotation.data.soft.is_soft[rows].any():
            q = np.exp(weights - log_sum(weights))
            value = float(np.sum(q * (free.scores - free.log_z)))
        else:
            value = log_sum(free.scores + weights) - free.log_z
        total += float(annotation.data.weights[rows.start]) * value
    return total


def residuals_of(annotation: Annotation, joint: bool, distill: bool, bound=None):
    chain = annotation.problem.chain
    annotated = Annotated(annotation.data, chain.n_labels, chain.order, joint, distill)
    return compute_residuals(annotated, annotation.problem.scores, chain, bound, WORKERS)


@families
@meanings
@situations
def test_residuals_are_the_gradient_of_the_objective(order, joint, n_labels, distill, situation):
    annotation = soft_annotation(order + 1, order, n_labels, joint=joint, **situation)
    scores = annotation.problem.scores
    found = residuals_of(annotation, joint, distill)
    assert found.log_likelihood == pytest.approx(objective(annotation, distill), abs=1e-5)
    expected = np.zeros((n_labels, *scores.shape[:2]))
    for t, c, k in np.ndindex(scores.shape):
        values = []
        for step in (STEP, -STEP):
            moved = scores.copy()
            moved[t, c, k] += step
            values.append(objective(annotation, distill, moved))
        expected[k, t, c] = (values[0] - values[1]) / (2.0 * STEP)
    np.testing.assert_allclose(found.g, expected, atol=3e-5)


@pytest.mark.parametrize(("order", "joint", "n_labels"), [f for f in FAMILIES if f[0] > 0])
@meanings
@situations
def test_edge_residuals_are_the_gradient_in_the_transitions(
    order, joint, n_labels, distill, situation
):
    annotation = soft_annotation(order + 1, order, n_labels, joint=joint, **situation)
    chain = annotation.problem.chain
    found = residuals_of(annotation, joint, distill)
    edges = np.vstack([chain.trans, chain.start])
    for u, v in np.ndindex(edges.shape):
        if not np.isfinite(edges[u, v]):
            assert found.edge_g[u, v] == pytest.approx(0.0, abs=1e-6)
            continue
        values = []
        for step in (STEP, -STEP):
            moved = edges.copy()
            moved[u, v] += step
            other = Chain(order, moved[-1], moved[:-1], chain.end)
            values.append(objective(annotation, distill, None, other))
        expected = (values[0] - values[1]) / (2.0 * STEP)
        assert found.edge_g[u, v] == pytest.approx(expected, abs=2e-4)


@families
def test_weights_of_0_and_1_are_partial_labels_to_the_bit(order, joint, n_labels):
    annotation = random_annotation(3, order, n_labels, LENGTHS, joint=joint, unknown=0.5)
    chain, data = annotation.problem.chain, annotation.data
    with np.errstate(divide="ignore"):
        nodes = np.log(np.eye(n_labels, dtype=np.float32))
    table = data.labels.copy()
    unknown = np.full(data.n_rows, UNKNOWN_LABEL, np.int32)
    soft = replace(SoftLabels.none(data.n_rows, n_labels), node_table=table, nodes=nodes)
    bound = Bound(False, 3.0)

    def residuals(of: Sequences):
        annotated = Annotated(of, n_labels, order, joint)
        return compute_residuals(annotated, annotation.problem.scores, chain, bound, WORKERS)

    partial = replace(data, labels=unknown, soft=soft)
    hard, weighed = residuals(data), residuals(partial)
    in_partial = np.repeat(Annotated(data, n_labels, order, joint).partial, LENGTHS)
    np.testing.assert_array_equal(hard.g[:, in_partial], weighed.g[:, in_partial])
    np.testing.assert_allclose(hard.g, weighed.g, atol=1e-6)
    assert hard.log_likelihood == pytest.approx(weighed.log_likelihood, abs=1e-5)
    assert partial.n_annotated == data.n_annotated


@families
@meanings
def test_soft_residuals_survive_weights_and_scores_that_underflow(order, joint, n_labels, distill):
    annotation = soft_annotation(6, order, n_labels, joint=joint, edges=True, scale=300.0)
    soft = annotation.data.soft
    tiny = replace(soft, nodes=np.where(np.isfinite(soft.nodes), 150 * soft.nodes, soft.nodes))
    annotation = replace(annotation, data=replace(annotation.data, soft=tiny))
    found = residuals_of(annotation, joint, distill)
    expected = objective(annotation, distill)
    assert found.log_likelihood == pytest.approx(expected, rel=1e-6)
    assert np.isfinite(found.g).all()


def test_subsets_and_joined_parts_keep_their_soft_labels():
    data = soft_annotation(4, 1, 3, joint=False, edges=True).data
    hard = random_annotation(5, 1, 3, [2, 3], joint=False).data
    parts = [data.subset(np.array([2, 0])), hard, data.part(1, 2)]
    joined = join_sequences(parts)
    annotated = Annotated(joined, 3, 1, False)
    first = 0
    for part in parts:
        own, rows = Annotated(part, 3, 1, False), slice(first, first + part.n_rows)
        np.testing.assert_array_equal(own.log_weights(slice(None)), annotated.log_weights(rows))
        of_edges = own.edge_log_weights(slice(None))
        if len(of_edges):
            np.testing.assert_array_equal(of_edges, annotated.edge_log_weights(rows))
        first += part.n_rows
    assert joined.n_annotated == sum(part.n_annotated for part in parts)
    assert join_sequences([hard, hard]).soft is None
    assert hard.digest().tolist() != data.digest().tolist()
