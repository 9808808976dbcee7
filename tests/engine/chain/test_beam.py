"""Inference pruned to a beam against enumeration of the paths that stay inside it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.residuals import Bound, compute_residuals
from spacy_treecrf.engine.chain.beam import (
    NOTHING_KEPT,
    beam_forward_backward,
    beam_marginals,
    beam_viterbi_kernel,
    keep_best,
)
from spacy_treecrf.engine.chain.chain import Chain, ScoredChunk, step_potentials
from spacy_treecrf.engine.chain.transition_chain import TransitionFactors, TransitionMarginals
from spacy_treecrf.engine.threads import Workers
from tests.engine.enumeration import enumerate_paths, path_score, random_problem
from tests.engine.training_data import random_annotation


def naive_keep_best(values, least, beam, also) -> list[int]:
    order = sorted(range(len(values)), key=lambda k: (-values[k], k))[:beam]
    if also >= 0:
        order.append(also)
    return sorted({k for k in order if values[k] > least})


def naive_beam(scores, chain, beam, kept) -> np.ndarray:
    """Which states the forward pass keeps: (length, n_labels). An obvious twin of the kernel's."""
    length, _, n_labels = scores.shape
    inside = np.zeros((length, n_labels), np.uint8)
    mass = np.zeros(n_labels)
    for t in range(length):
        if t == 0:
            mass = np.exp(chain.start.astype(float))
        else:
            mass = mass @ np.exp(chain.trans.astype(float))
        mass = mass * np.exp(scores[t, 0].astype(float))
        if t == length - 1:
            mass = mass * np.exp(chain.end.astype(float))
        states = naive_keep_best(mass, 0.0, beam, kept[t])
        inside[t, states] = 1
        mass = np.where(inside[t], mass, 0.0)
    return inside


@given(
    values=st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, -np.inf]), min_size=1, max_size=9),
    beam=st.integers(1, 10),
    data=st.data(),
)
@settings(max_examples=100, deadline=None)
def test_keep_best_equals_sorting(values, beam, data) -> None:
    also = data.draw(st.integers(-1, len(values) - 1))
    states = np.zeros(beam + 1, np.int32)
    n = keep_best(np.array(values), 0.0, beam, also, np.empty(beam), states)
    assert states[:n].tolist() == naive_keep_best(values, 0.0, beam, also)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_labels=st.integers(2, 4),
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    beam=st.integers(1, 5),
    keep=st.booleans(),
    forbidden=st.sampled_from([0.0, 0.3]),
)
def test_forward_backward_sums_over_the_paths_inside(
    seed, n_labels, lengths, beam, keep, forbidden
) -> None:
    problem = random_problem(seed, 1, n_labels, lengths, joint=False, forbidden=forbidden)
    chain = problem.chain
    n_rows = len(problem.scores)
    rng = np.random.default_rng(seed)
    kept = rng.integers(-1, n_labels, n_rows).astype(np.int32) if keep else NOTHING_KEPT
    weights = rng.uniform(0.5, 2.0, len(lengths))
    marginals = np.full((n_rows, n_labels), 7.0, np.float32)
    sums = np.zeros((n_labels, n_labels))
    log_z = np.full(len(lengths), 7.0)
    nodes = np.ascontiguousarray(problem.scores[:, 0])
    factors = (np.exp(part.astype(float)) for part in (chain.start, chain.trans, chain.end))
    failed = beam_forward_backward(
        ScoredChunk(nodes, problem.offsets, 0, len(lengths)),
        TransitionFactors(*factors),
        beam,
        kept,
        weights,
        TransitionMarginals(marginals, sums, log_z, np.zeros((0, 2), np.float32)),
    )
    expected_sums = np.zeros_like(sums)
    for s, rows in enumerate(problem.rows()):
        of_rows = kept[rows] if keep else np.full(rows.stop - rows.start, -1)
        inside = naive_beam(problem.scores[rows], chain, beam, of_rows)
        lost = any(y >= 0 and not inside[t, y] for t, y in enumerate(of_rows))
        truth = enumerate_paths(problem.scores[rows], chain, inside)
        if not truth.paths or lost:
            assert np.isnan(log_z[s])
            failed -= 1
            continue
        pairs = truth.pair_marginals(rows.stop - rows.start)
        assert log_z[s] == pytest.approx(truth.log_z, rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(marginals[rows], pairs.sum(axis=1), atol=1e-5)
        expected_sums += weights[s] * pairs[1:].sum(axis=0)
    assert failed == 0
    np.testing.assert_allclose(sums, expected_sums, atol=1e-4)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_labels=st.integers(2, 4),
    length=st.integers(1, 5),
    beam=st.integers(1, 5),
)
def test_viterbi_prunes_as_its_naive_twin(seed, n_labels, length, beam) -> None:
    problem = random_problem(seed, 1, n_labels, [length], joint=False)
    labels = np.zeros(length, np.int32)
    best = np.empty(1)
    nodes = np.ascontiguousarray(problem.scores[:, 0])
    steps = step_potentials(problem.chain)
    sequences = ScoredChunk(nodes, problem.offsets, 0, 1)
    beam_viterbi_kernel(sequences, steps, beam, labels, best)
    # paths to the end of each position, the best to each state, and of those the best few
    paths: list[tuple[int, ...]] = [()]
    chain = problem.chain
    for t in range(1, length + 1):
        closed = chain if t == length else Chain(1, chain.start, chain.trans, 0 * chain.end)
        best_to: dict[int, tuple[float, tuple[int, ...]]] = {}
        for path, y in itertools.product(paths, range(n_labels)):
            score = path_score(problem.scores[:t], closed, (*path, y))
            if y not in best_to or score > best_to[y][0]:
                best_to[y] = score, (*path, y)
        states = naive_keep_best([best_to[y][0] for y in range(n_labels)], -np.inf, beam, -1)
        paths = [best_to[y][1] for y in states]
    score = max(path_score(problem.scores, chain, path) for path in paths)
    assert best[0] == pytest.approx(score, rel=1e-6, abs=1e-5)
    assert path_score(problem.scores, chain, tuple(labels.tolist())) == pytest.approx(
        score, rel=1e-6, abs=1e-5
    )


@pytest.mark.parametrize("unknown", [0.0, 0.4])
def test_residuals_with_a_wide_beam_are_those_without(unknown) -> None:
    case = random_annotation(3, 1, 4, [5, 3, 1], joint=False, unknown=unknown)
    annotated = Annotated(case.data, 4, 1, False)
    chain = case.problem.chain
    wide = Chain(1, chain.start, chain.trans, chain.end, beam=4)
    bound = Bound(False, 3.0)
    exact = compute_residuals(annotated, case.problem.scores, chain, bound, Workers(1))
    beam = compute_residuals(annotated, case.problem.scores, wide, bound, Workers(1))
    for name in ("g", "h", "edge_g", "edge_h"):
        assert np.array_equal(getattr(exact, name), getattr(beam, name)), name
    assert exact.log_likelihood == beam.log_likelihood


def test_residuals_in_a_beam_keep_the_annotated_label() -> None:
    case = random_annotation(5, 1, 4, [5, 3, 2], joint=False, scale=3.0)
    chain = case.problem.chain
    narrow = Chain(1, chain.start, chain.trans, chain.end, beam=1)
    annotated = Annotated(case.data, 4, 1, False)
    found = compute_residuals(annotated, case.problem.scores, narrow, None, Workers(1))
    assert found.log_likelihood <= 0.0
    at_label = found.g[case.data.labels, np.arange(case.data.n_rows), 0]
    assert np.all(at_label >= 0.0)  # 1 - P(label), and never more than one
    assert np.all(at_label < 1.0)
    np.testing.assert_allclose(found.g.sum(axis=0), 0.0, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    lengths=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    beam=st.integers(1, 3),
    forbidden=st.sampled_from([0.0, 0.4]),
)
@example(seed=0, lengths=[0], beam=1, forbidden=0.0)
def test_marginals_of_a_prediction_are_those_inside_the_beam(seed, lengths, beam, forbidden):
    problem = random_problem(seed, 1, 4, lengths, joint=False, forbidden=forbidden)
    chain = Chain(1, problem.chain.start, problem.chain.trans, problem.chain.end, beam=beam)
    nodes = np.full((len(problem.scores), 4), 7.0)
    sequences = ScoredChunk(problem.scores, problem.offsets, 0, len(lengths))
    beam_marginals(sequences, chain, nodes)
    for rows in problem.rows():
        inside = naive_beam(problem.scores[rows], chain, beam, [-1] * len(nodes[rows]))
        truth = enumerate_paths(problem.scores[rows], chain, inside)
        if not truth.paths:  # a dead end: exact instead, and nothing where nothing is allowed
            truth = enumerate_paths(problem.scores[rows], chain)
        pairs = truth.pair_marginals(rows.stop - rows.start)
        np.testing.assert_allclose(nodes[rows], pairs.sum(axis=1), atol=1e-5)
