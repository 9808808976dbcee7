"""Chain inference against enumeration of all label sequences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.chain import chain as engine
from spacy_treecrf.engine.chain import chain_kernels as kernels
from spacy_treecrf.engine.chain.chain import (
    Chain,
    ScoredChunk,
    log_normalizers,
    log_probability_of,
    node_marginals,
    pair_marginals,
    pair_marginals_kernel,
    path_scores,
    span_probability,
)
from tests.engine.enumeration import (
    Problem,
    context_of,
    enumerate_paths,
    problems,
    random_problem,
)

orders_and_layouts = pytest.mark.parametrize(
    ("order", "joint"),
    [(0, False), (1, False), (1, True), (2, False), (2, True), (3, True), (4, False), (4, True)],
)
checked = settings(max_examples=120, deadline=None)


def assert_inference_is_exact(problem: Problem, *, clamped: bool) -> None:
    allowed = problem.allowed if clamped else None
    arguments = (problem.scores, problem.offsets, problem.chain, allowed)
    pairs, log_z = pair_marginals(*arguments)
    nodes, log_z_of_nodes = node_marginals(*arguments)
    np.testing.assert_array_equal(log_z, log_normalizers(*arguments))
    np.testing.assert_array_equal(log_z, log_z_of_nodes)
    for s, rows in enumerate(problem.rows()):
        mask = None if allowed is None else allowed[rows]
        truth = enumerate_paths(problem.scores[rows], problem.chain, mask)
        expected = truth.pair_marginals(rows.stop - rows.start)
        np.testing.assert_allclose(log_z[s], truth.log_z, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(pairs[rows], expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(nodes[rows], expected.sum(axis=1), rtol=1e-9, atol=1e-12)


@orders_and_layouts
@pytest.mark.parametrize("clamped", [False, True])
def test_inference_equals_enumeration(order: int, joint: bool, clamped: bool) -> None:
    problem = random_problem(order, order, 3, [5, 1, 0, 4], joint=joint, forbidden=0.2)
    assert_inference_is_exact(problem, clamped=clamped)


@checked
@given(problems(), st.booleans())
def test_inference_equals_enumeration_for_any_problem(problem: Problem, clamped: bool) -> None:
    assert_inference_is_exact(problem, clamped=clamped)


@orders_and_layouts
def test_scaled_pass_equals_its_log_space_twin(order: int, joint: bool) -> None:
    problem = random_problem(7, order, 3, [30], joint=joint, forbidden=0.1)
    chain = problem.chain
    problem.allowed[:, 0] = 1
    chain.start[0] = chain.end[0] = chain.trans[0, 0] = 0.0
    pairs, log_z = pair_marginals(problem.scores, problem.offsets, chain, problem.allowed)
    nodes, _ = node_marginals(problem.scores, problem.offsets, chain, problem.allowed)
    twin = kernels.Marginals(np.zeros_like(pairs), np.zeros_like(nodes), np.empty(1))
    sequences = ScoredChunk(problem.scores, problem.offsets, 0, 1)
    twin_log_z = kernels.log_space_pass(
        sequences, 0, engine.step_potentials(chain), problem.allowed, twin
    )
    assert log_z[0] == pytest.approx(twin_log_z, rel=1e-12)
    np.testing.assert_allclose(pairs, twin.pairs, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(nodes, twin.nodes, rtol=1e-9, atol=1e-14)


@orders_and_layouts
def test_gradient_of_log_z_is_the_marginals(order: int, joint: bool) -> None:
    problem = random_problem(3, order, 2, [4, 2], joint=joint, scale=1.0)
    offsets, chain = problem.offsets, problem.chain
    h = np.float32(2.0**-7)
    # whole multiples of h, so that float32 scores take the steps exactly
    scores = np.round(problem.scores / h) * h
    pairs, _ = pair_marginals(scores, offsets, chain)
    expected = pairs if joint else pairs.sum(axis=1, keepdims=True)
    gradient = np.zeros(scores.shape)
    for index in np.ndindex(scores.shape):
        up, down = scores.copy(), scores.copy()
        up[index] += h
        down[index] -= h
        difference = log_normalizers(up, offsets, chain) - log_normalizers(down, offsets, chain)
        gradient[index] = difference.sum() / (2 * h)
    np.testing.assert_allclose(gradient, expected, atol=1e-5)


@checked
@given(problems(), st.integers(0, 2**31))
def test_path_scores_equal_enumeration(problem: Problem, seed: int) -> None:
    chain = problem.chain
    labels = np.random.default_rng(seed).integers(chain.n_labels, size=len(problem.scores))
    found = path_scores(problem.scores, problem.offsets, labels.astype(np.int32), chain)
    for s, rows in enumerate(problem.rows()):
        truth = enumerate_paths(problem.scores[rows], chain)
        scores = dict(zip(truth.paths, truth.scores, strict=True))
        expected = scores.get(tuple(labels[rows].tolist()), -np.inf)
        assert found[s] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@checked
@given(problems())
def test_log_probability_of_label_sets_equals_enumeration(problem: Problem) -> None:
    found = log_probability_of(problem.scores, problem.offsets, problem.chain, problem.allowed)
    for s, rows in enumerate(problem.rows()):
        allowed = problem.allowed[rows]
        free = enumerate_paths(problem.scores[rows], problem.chain)
        clamped = enumerate_paths(problem.scores[rows], problem.chain, allowed)
        expected = clamped.log_z - free.log_z if clamped.paths else -np.inf
        assert found[s] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@orders_and_layouts
def test_span_probability_equals_enumeration(order: int, joint: bool) -> None:
    problem = random_problem(11, order, 3, [5], joint=joint)
    truth = enumerate_paths(problem.scores, problem.chain)
    for first, labels, forbidden in [(0, (1,), None), (1, (2, 0), (0, 1)), (3, (1, 1), (1,))]:
        last = first + len(labels)
        expected = truth.probability_that(
            lambda path, first=first, last=last, labels=labels, forbidden=forbidden: (
                path[first:last] == labels
                and (forbidden is None or last == 5 or path[last] not in forbidden)
            )
        )
        found = span_probability(problem.scores, problem.chain, first, labels, forbidden)
        assert found == pytest.approx(expected, rel=1e-6)


def test_span_outside_of_the_sequence_is_an_error() -> None:
    problem = random_problem(0, 1, 2, [3], joint=False)
    for first in (-1, 2):
        with pytest.raises(ValueError, match="outside of a sequence of 3"):
            span_probability(problem.scores, problem.chain, first, [0, 1])
    for label in (-1, 2):
        with pytest.raises(ValueError, match=f"got label {label}; labels are 0 to 1"):
            span_probability(problem.scores, problem.chain, 0, [label])


@pytest.mark.parametrize(("order", "joint"), [(0, False), (1, False), (2, True)])
def test_no_underflow_on_100_000_positions(order: int, joint: bool) -> None:
    length = 100_000
    problem = random_problem(5, order, 3, [length], joint=joint, scale=3.0)
    nodes, log_z = node_marginals(problem.scores, problem.offsets, problem.chain)
    np.testing.assert_allclose(nodes.sum(axis=1), 1.0, atol=1e-8)
    per_position = log_z[0] / length
    assert 0.0 < per_position < 20.0
    if order == 0:
        exact = np.logaddexp.reduce(problem.scores[:, 0].astype(np.float64), axis=1).sum()
        assert log_z[0] == pytest.approx(exact, rel=1e-12)


def test_hard_end_constraint_against_all_evidence_is_exact() -> None:
    """All scores speak for label 0, but labels never change and only label 1 may end."""
    length = 50
    scores = np.zeros((length, 1, 2), dtype=np.float32)
    scores[:, 0, 0] = 40.0
    stay = np.array([[0.0, -np.inf], [-np.inf, 0.0]], dtype=np.float32)
    free = np.zeros(2, dtype=np.float32)
    end = np.array([-np.inf, 0.0], dtype=np.float32)
    nodes, log_z = node_marginals(scores, np.array([0, length]), Chain(1, free, stay, end))
    assert log_z[0] == 0.0
    np.testing.assert_array_equal(nodes, np.tile([0.0, 1.0], (length, 1)))


def test_slow_drift_below_the_smallest_double_and_back_is_exact() -> None:
    """No step is extreme, but label 1 falls behind by e^-4000 and catches up at the end."""
    length = 4000
    scores = np.zeros((length, 1, 2), dtype=np.float32)
    scores[: length // 2, 0, 0] = 2.0
    scores[length // 2 :, 0, 1] = 2.0
    stay = np.array([[0.0, -np.inf], [-np.inf, 0.0]], dtype=np.float32)
    free = np.zeros(2, dtype=np.float32)
    nodes, log_z = node_marginals(scores, np.array([0, length]), Chain(1, free, stay, free))
    assert log_z[0] == pytest.approx(length + np.log(2.0), rel=1e-12)
    np.testing.assert_allclose(nodes, 0.5, rtol=1e-9)


def test_soft_but_huge_transition_penalties_are_exact() -> None:
    problem = random_problem(1, 1, 3, [5], joint=False)
    problem.chain.trans[0, 1] = -1e4
    problem.chain.trans[1, 1] = 1e4
    assert_inference_is_exact(problem, clamped=False)


@orders_and_layouts
def test_no_allowed_path_gives_log_z_of_minus_infinity_and_marginals_of_zero(
    order: int, joint: bool
) -> None:
    problem = random_problem(2, order, 2, [3, 3], joint=joint)
    problem.allowed[:] = 1
    problem.allowed[1] = 0
    pairs, log_z = pair_marginals(problem.scores, problem.offsets, problem.chain, problem.allowed)
    assert log_z[0] == -np.inf
    assert np.isfinite(log_z[1])
    assert not pairs[:3].any()
    np.testing.assert_allclose(pairs[3:].sum(axis=(1, 2)), 1.0, rtol=1e-6)
    impossible = log_probability_of(problem.scores, problem.offsets, problem.chain, problem.allowed)
    assert impossible[0] == -np.inf


def test_contexts_before_the_start_hold_no_mass() -> None:
    problem = random_problem(4, 3, 2, [5], joint=True)
    pairs, _ = pair_marginals(problem.scores, problem.offsets, problem.chain)
    for t, n_contexts in enumerate([1, 2, 4, 8, 8]):
        assert not pairs[t, n_contexts:].any()
        assert pairs[t, :n_contexts].all()
    assert context_of((1, 0, 1), 2, 3, 2) == 2


def test_kernel_on_ranges_fills_only_its_sequences() -> None:
    problem = random_problem(6, 1, 3, [4, 2, 5], joint=True)
    chain = problem.chain
    expected, expected_log_z = pair_marginals(problem.scores, problem.offsets, chain)
    out = np.full_like(expected, 7.0)
    log_z = np.full(3, 7.0)
    for first, last in [(1, 2), (2, 3)]:
        pair_marginals_kernel(
            ScoredChunk(problem.scores, problem.offsets, first, last),
            chain,
            engine.EVERYTHING_ALLOWED,
            out,
            log_z,
        )
    assert (out[:4] == 7.0).all()
    assert log_z[0] == 7.0
    np.testing.assert_array_equal(out[4:], expected[4:])
    np.testing.assert_array_equal(log_z[1:], expected_log_z[1:])


def test_read_only_and_strided_arrays_need_no_new_compilation() -> None:
    problem = random_problem(6, 1, 3, [4, 2], joint=False)
    expected = log_normalizers(problem.scores, problem.offsets, problem.chain)
    compiled = len(kernels.scaled_pass.signatures)
    scores = np.frombuffer(problem.scores.tobytes(), dtype=np.float32).reshape(6, 1, 3)
    chain = Chain(1, problem.chain.start, problem.chain.trans.T.copy().T, problem.chain.end)
    np.testing.assert_array_equal(log_normalizers(scores, problem.offsets, chain), expected)
    assert len(kernels.scaled_pass.signatures) == compiled


def test_chain_rejects_arrays_that_disagree() -> None:
    zeros = np.zeros(2, dtype=np.float32)
    with pytest.raises(ValueError, match="treecrf: chain arrays disagree"):
        Chain(1, zeros, np.zeros((3, 3), dtype=np.float32), zeros)
    with pytest.raises(ValueError, match="treecrf: chain order is 5"):
        Chain.free(2, 5)
    with pytest.raises(ValueError, match="at least one label"):
        Chain.free(0, 1)


def test_inputs_that_do_not_fit_the_chain_are_rejected() -> None:
    problem = random_problem(0, 2, 2, [3], joint=True)
    scores, offsets, chain = problem.scores, problem.offsets, problem.chain
    with pytest.raises(ValueError, match=r"needs \(rows, 1 or 4, 2\)"):
        log_normalizers(scores[:, :2], offsets, chain)
    with pytest.raises(ValueError, match="offsets must rise"):
        log_normalizers(scores, np.array([0, 4]), chain)
    with pytest.raises(ValueError, match="mask of allowed labels"):
        log_normalizers(scores, offsets, chain, problem.allowed[:2])
    with pytest.raises(ValueError, match="from 0 to 1"):
        path_scores(scores, offsets, np.array([0, -1, 1], dtype=np.int32), chain)
