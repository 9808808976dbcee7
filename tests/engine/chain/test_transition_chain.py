"""The tuned forward-backward of family "separate" against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.expectations import expect
from spacy_treecrf.engine.chain.chain import Chain, ScoredChunk
from spacy_treecrf.engine.chain.transition_chain import (
    TransitionFactors,
    TransitionMarginals,
    forward_backward,
)
from tests.engine.enumeration import Problem, enumerate_paths, random_problem
from tests.engine.training_data import sequences_of


def run(problem: Problem, sequence_weights, clamped=False, part=None, mixing=False):
    """Marginals, pair sums, log Z, messages and the number of sequences that failed."""
    chain = problem.chain
    n_rows, _, n_labels = problem.scores.shape
    nodes = np.ascontiguousarray(problem.scores[:, 0])
    if clamped:
        nodes = np.where(problem.allowed > 0, nodes, np.float32(-np.inf))
    first, last = part or (0, len(problem.offsets) - 1)
    marginals = np.full((n_rows, 1, n_labels), 7.0, np.float32)
    sums = np.zeros((n_labels + 1, n_labels))
    log_z = np.full(len(problem.offsets) - 1, 7.0)
    messages = np.zeros((n_rows, 2), np.float32)
    factors = (np.exp(part.astype(float)) for part in (chain.start, chain.trans, chain.end))
    failed = forward_backward(
        ScoredChunk(nodes, problem.offsets, first, last),
        TransitionFactors(*factors),
        np.asarray(sequence_weights, float),
        mixing,
        TransitionMarginals(marginals[:, 0], sums[:n_labels], log_z, messages),
    )
    return marginals[:, 0], sums[:n_labels], log_z, messages, failed


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_labels=st.integers(1, 3),
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    forbidden=st.sampled_from([0.0, 0.3]),
    scale=st.sampled_from([0.0, 1.0, 10.0]),
    clamped=st.booleans(),
)
def test_forward_backward_equals_enumeration(seed, n_labels, lengths, forbidden, scale, clamped):
    problem = random_problem(
        seed, 1, n_labels, lengths, joint=False, forbidden=forbidden, scale=scale
    )
    weights = np.random.default_rng(seed).uniform(0.0, 3.0, len(lengths))
    marginals, sums, log_z, _, failed = run(problem, weights, clamped)
    expected_sums = np.zeros_like(sums)
    impossible = 0
    for s, rows in enumerate(problem.rows()):
        allowed = problem.allowed[rows] if clamped else None
        truth = enumerate_paths(problem.scores[rows], problem.chain, allowed)
        if not truth.paths:
            impossible += 1
            assert np.isnan(log_z[s])
            continue
        pairs = truth.pair_marginals(rows.stop - rows.start)
        assert log_z[s] == pytest.approx(truth.log_z, rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(marginals[rows], pairs.sum(axis=1), atol=1e-5)
        expected_sums += weights[s] * pairs[1:].sum(axis=0)
    assert failed == impossible
    np.testing.assert_allclose(sums, expected_sums, atol=1e-4)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    length=st.integers(1, 6),
    scale=st.sampled_from([100.0, 300.0, 1000.0]),
    forbidden=st.sampled_from([0.0, 0.4]),
)
def test_what_does_not_underflow_is_right(seed, length, scale, forbidden):
    """A sequence either fails, to be redone by the general kernels, or is exact."""
    problem = random_problem(
        seed,
        1,
        2,
        [length],
        joint=False,
        forbidden=forbidden,
        scale=scale,
        whole_numbers=True,
    )
    chain = problem.chain
    for array in (chain.start, chain.trans, chain.end):
        np.clip(array, -200.0, 200.0, out=array, where=np.isfinite(array))
    truth = enumerate_paths(problem.scores, chain)
    assume(truth.paths)
    marginals, sums, log_z, _, failed = run(problem, [1.0])
    assert failed == np.isnan(log_z[0])
    if not failed:
        pairs = truth.pair_marginals(length)
        assert log_z[0] == pytest.approx(truth.log_z, rel=1e-5)
        np.testing.assert_allclose(marginals, pairs.sum(axis=1), atol=1e-5)
        np.testing.assert_allclose(sums, pairs[1:].sum(axis=0), atol=1e-5)


def test_only_the_given_sequences_are_touched():
    problem = random_problem(1, 1, 3, [3, 4, 2], joint=False)
    marginals, sums, log_z, _, _ = run(problem, [1.0, 2.0, 3.0])
    part_marginals, part_sums, part_log_z, _, _ = run(problem, [1.0, 2.0, 3.0], part=(1, 3))
    assert (part_marginals[:3] == 7.0).all()
    assert part_log_z[0] == 7.0
    np.testing.assert_array_equal(part_marginals[3:], marginals[3:])
    np.testing.assert_array_equal(part_log_z[1:], log_z[1:])
    assert (part_sums <= sums).all()


def test_mixing_messages_do_not_change_the_marginals():
    problem = random_problem(2, 1, 3, [6, 1, 4], joint=False, forbidden=0.1)
    with_messages, without = (run(problem, [1.0] * 3, mixing=m) for m in (True, False))
    for a, b in zip(with_messages[:3], without[:3], strict=True):
        np.testing.assert_array_equal(a, b)
    assert with_messages[3].any()
    assert not without[3].any()


def expected_exactly(scores, chain):
    """`expect`, which redoes what underflows, equals enumeration."""
    length = len(scores)
    data = sequences_of([0, length], [0] * length)
    found = expect(Annotated(data, 2, 1, False), scores, chain, (0, 1), True)
    truth = enumerate_paths(scores, chain)
    assert found.log_z[0] == pytest.approx(truth.log_z, rel=1e-6)
    pairs = truth.pair_marginals(length)
    np.testing.assert_allclose(found.pairs[:, 0], pairs.sum(axis=1), atol=1e-6)
    np.testing.assert_allclose(found.edges[:2], pairs[1:].sum(axis=0), atol=1e-5)


def chain_of(start, trans, end=(0.0, 0.0)):
    return Chain(1, *(np.array(a, np.float32) for a in (start, trans, end)))


STAY = [[0.0, -np.inf], [-np.inf, 0.0]]


def test_evidence_may_outweigh_a_start_whose_exponential_is_zero():
    """Label 1 starts with e^-800, but each of five positions prefers it by e^200."""
    scores = np.zeros((5, 1, 2), np.float32)
    scores[:, 0, 1] = 200.0
    expected_exactly(scores, chain_of([0.0, -800.0], STAY))


def test_evidence_may_outweigh_a_transition_whose_exponential_is_zero():
    scores = np.zeros((6, 1, 2), np.float32)
    scores[1:, 0, 1] = 200.0
    expected_exactly(scores, chain_of([0.0, -np.inf], [[0.0, -800.0], [-np.inf, 0.0]]))


def test_evidence_for_a_label_that_cannot_be_reached_does_no_harm():
    """Label 1 can neither start nor follow label 0, but all scores prefer it."""
    scores = np.zeros((6, 1, 2), np.float32)
    scores[:, 0, 1] = 200.0
    expected_exactly(scores, chain_of([0.0, -np.inf], STAY))


def test_an_end_that_all_evidence_speaks_against():
    scores = np.zeros((6, 1, 2), np.float32)
    scores[:, 0, 0] = 100.0
    expected_exactly(scores, chain_of([0.0, 0.0], STAY, [-np.inf, 0.0]))
