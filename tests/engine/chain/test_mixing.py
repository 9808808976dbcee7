"""The bounds of Chen 2015, section 4, against the Hessian itself, by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.expectations import expect
from spacy_treecrf.engine.chain.chain import pair_marginals
from spacy_treecrf.engine.chain.mixing import edge_gamma, joint_messages, node_gamma
from tests.engine.chain.test_transition_chain import run
from tests.engine.enumeration import context_of, enumerate_paths, random_problem
from tests.engine.training_data import sequences_of


def exact_gamma(truth, events, length):
    """max over a position's events i of sum_j |H_ij| / H_ii, H_ij = p_ij - p_i p_j.

    events: of a path, the index of the event that holds at each position. shape: (length,)
    """
    n_events = truth.n_labels ** (truth.order + 1)
    holds = np.zeros((len(truth.paths), length * n_events))
    for i, path in enumerate(truth.paths):
        holds[i, np.arange(length) * n_events + events(path)] = 1.0
    p = truth.probabilities @ holds
    hessian = holds.T @ (truth.probabilities[:, None] * holds) - np.outer(p, p)
    variance = np.diag(hessian)
    matters = variance > 1e-6
    ratio = np.zeros(len(p))
    ratio[matters] = np.abs(hessian).sum(axis=1)[matters] / variance[matters]
    return ratio.reshape(length, n_events).max(axis=1)


def node_events(path):
    return np.array(path)


def pair_events(truth):
    def events(path):
        k = truth.n_labels
        return [context_of(path, t, truth.order, k) * k + y for t, y in enumerate(path)]

    return events


drawn = {
    "seed": st.integers(0, 2**31),
    "n_labels": st.integers(1, 3),
    "lengths": st.lists(st.integers(1, 5), min_size=1, max_size=2),
    "forbidden": st.sampled_from([0.0, 0.3]),
    "scale": st.sampled_from([0.3, 1.0, 4.0]),
}


def assert_bounded(problem, messages):
    nodes = node_gamma(messages)
    edges = edge_gamma(messages, problem.offsets[:-1])
    for rows in problem.rows():
        truth = enumerate_paths(problem.scores[rows], problem.chain)
        length = rows.stop - rows.start
        exact_nodes = exact_gamma(truth, node_events, length)
        exact_edges = exact_gamma(truth, pair_events(truth), length)
        assert (nodes[rows] >= exact_nodes - 1e-3).all()
        assert (edges[rows] >= exact_edges - 1e-3).all()


@settings(max_examples=50, deadline=None)
@given(**drawn)
def test_gamma_of_the_separate_family_is_never_below_the_exact_one(
    seed, n_labels, lengths, forbidden, scale
):
    problem = random_problem(
        seed, 1, n_labels, lengths, joint=False, forbidden=forbidden, scale=scale
    )
    _, _, _, messages, failed = run(problem, np.ones(len(lengths)), mixing=True)
    assume(not failed)
    assert_bounded(problem, messages)


@settings(max_examples=50, deadline=None)
@given(**drawn, joint=st.booleans())
def test_gamma_from_pair_marginals_is_never_below_the_exact_one(
    seed, n_labels, lengths, forbidden, scale, joint
):
    problem = random_problem(
        seed, 1, n_labels, lengths, joint=joint, forbidden=forbidden, scale=scale
    )
    pairs, log_z = pair_marginals(problem.scores, problem.offsets, problem.chain)
    assume(np.isfinite(log_z).all())
    messages = np.zeros((len(pairs), 2), np.float32)
    joint_messages(pairs, problem.offsets, messages)
    assert_bounded(problem, messages)


def test_both_ways_to_the_messages_agree():
    problem = random_problem(3, 1, 3, [6, 1, 4], joint=False)
    _, _, _, messages, _ = run(problem, np.ones(3), mixing=True)
    pairs, _ = pair_marginals(problem.scores, problem.offsets, problem.chain)
    others = np.zeros_like(messages)
    joint_messages(pairs, problem.offsets, others)
    np.testing.assert_allclose(messages, others, rtol=1e-4)


@pytest.mark.parametrize(("order", "joint"), [(0, False), (1, False), (1, True), (2, True)])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_gamma_used_by_the_residuals_is_never_below_the_exact_one(order, joint, scale):
    problem = random_problem(4, order, 2, [5, 1, 3], joint=joint, scale=scale)
    annotated = Annotated(sequences_of(problem.offsets, [0] * 9), 2, order, joint)
    found = expect(annotated, problem.scores, problem.chain, (0, 3), True)
    for rows in problem.rows():
        truth = enumerate_paths(problem.scores[rows], problem.chain)
        events = pair_events(truth) if joint else node_events
        exact = exact_gamma(truth, events, rows.stop - rows.start)
        assert (found.gamma[rows] >= exact - 1e-3).all()


def test_independent_positions_have_gamma_two_and_no_messages():
    problem = random_problem(5, 1, 3, [5], joint=False)
    problem.chain.trans[:] = 0.0
    _, _, _, messages, _ = run(problem, [1.0], mixing=True)
    np.testing.assert_allclose(node_gamma(messages), 2.0, atol=1e-5)


def test_labels_that_never_change_have_gamma_of_the_whole_length():
    problem = random_problem(6, 1, 2, [5], joint=False)
    problem.chain.trans[:] = [[0.0, -np.inf], [-np.inf, 0.0]]
    _, _, _, messages, _ = run(problem, [1.0], mixing=True)
    np.testing.assert_allclose(node_gamma(messages), 10.0, rtol=1e-5)
