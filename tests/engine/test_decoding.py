"""Viterbi and n-best against enumeration of all label sequences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine import decoding
from spacy_treecrf.engine.chain import Chain, path_scores, step_potentials
from spacy_treecrf.engine.decoding import marginal_argmax, nbest, viterbi, viterbi_kernel
from tests.engine.enumeration import Problem, enumerate_paths, problems, random_problem

checked = settings(max_examples=120, deadline=None)


@checked
@given(problems())
def test_viterbi_finds_a_path_of_the_highest_score(problem: Problem) -> None:
    labels, best = viterbi(problem.scores, problem.offsets, problem.chain)
    assert labels.dtype == np.int32
    found = path_scores(problem.scores, problem.offsets, labels, problem.chain)
    for s, rows in enumerate(problem.rows()):
        truth = enumerate_paths(problem.scores[rows], problem.chain)
        if truth.paths:
            assert best[s] == pytest.approx(truth.scores.max(), rel=1e-9, abs=1e-9)
            assert found[s] == pytest.approx(best[s], rel=1e-9, abs=1e-9)
        else:
            assert best[s] == -np.inf
            assert not labels[rows].any()


@checked
@given(problems(), st.integers(1, 300))
def test_nbest_is_the_head_of_the_sorted_enumeration(problem: Problem, n: int) -> None:
    for rows in problem.rows():
        scores = problem.scores[rows]
        truth = enumerate_paths(scores, problem.chain)
        paths, log_probabilities = nbest(scores, problem.chain, n)
        assert len(paths) == min(n, len(truth.paths))
        assert len({tuple(path) for path in paths.tolist()}) == len(paths)
        expected = np.sort(truth.scores)[::-1][:n] - truth.log_z
        np.testing.assert_allclose(log_probabilities, expected, rtol=1e-9, atol=1e-9)
        score_of = dict(zip(truth.paths, truth.scores, strict=True))
        found = [score_of[tuple(path)] - truth.log_z for path in paths.tolist()]
        np.testing.assert_allclose(found, log_probabilities, rtol=1e-9, atol=1e-9)


@checked
@given(problems())
def test_viterbi_is_the_first_of_the_nbest(problem: Problem) -> None:
    labels, _ = viterbi(problem.scores, problem.offsets, problem.chain)
    for rows in problem.rows():
        paths, _ = nbest(problem.scores[rows], problem.chain, 3)
        if len(paths):
            np.testing.assert_array_equal(labels[rows], paths[0])


@pytest.mark.parametrize("whole_numbers", [False, True])
@pytest.mark.parametrize("n_labels", [1, 2, 5, 22])
def test_bigram_kernel_equals_the_general_one(n_labels: int, whole_numbers: bool) -> None:
    problem = random_problem(
        n_labels,
        1,
        n_labels,
        [40, 1, 0, 300],
        joint=False,
        forbidden=0.1,
        whole_numbers=whole_numbers,
    )
    chain = problem.chain
    labels, best = viterbi(problem.scores, problem.offsets, chain)
    moves, end = step_potentials(1, chain.start, chain.trans, chain.end)
    twin_labels, twin_best = np.zeros_like(labels), np.zeros_like(best)
    decoding._viterbi_general(
        problem.scores, problem.offsets, 0, 4, 1, moves, end, twin_labels, twin_best
    )
    np.testing.assert_array_equal(labels, twin_labels)
    np.testing.assert_array_equal(best, twin_best)


@pytest.mark.parametrize(("order", "joint"), [(0, False), (1, False), (1, True), (3, False)])
def test_ties_go_to_the_lowest_label(order: int, joint: bool) -> None:
    chain = Chain.free(3, order)
    scores = np.zeros((6, chain.n_contexts if joint else 1, 3), dtype=np.float32)
    scores[2, :, 0] = -1.0
    labels, _ = viterbi(scores, np.array([0, 6]), chain)
    assert labels.tolist() == [0, 0, 1, 0, 0, 0]


def test_order_zero_takes_the_best_label_of_each_position() -> None:
    problem = random_problem(9, 0, 4, [7, 3], joint=False)
    labels, _ = viterbi(problem.scores, problem.offsets, problem.chain)
    np.testing.assert_array_equal(labels, problem.scores[:, 0].argmax(axis=1))


def test_viterbi_of_100_000_positions_keeps_its_precision() -> None:
    problem = random_problem(8, 1, 3, [100_000], joint=False)
    labels, best = viterbi(problem.scores, problem.offsets, problem.chain)
    found = path_scores(problem.scores, problem.offsets, labels, problem.chain)
    assert best[0] == pytest.approx(found[0], rel=1e-12)
    # locally optimal: no single label can be changed for the better
    for t in range(50_000, 50_050):
        for y in range(3):
            changed = labels.copy()
            changed[t] = y
            scores = path_scores(
                problem.scores[t - 2 : t + 3],
                np.array([0, 5]),
                changed[t - 2 : t + 3],
                problem.chain,
            )
            kept = path_scores(
                problem.scores[t - 2 : t + 3],
                np.array([0, 5]),
                labels[t - 2 : t + 3],
                problem.chain,
            )
            assert scores[0] <= kept[0] + 1e-9


def test_kernel_on_ranges_fills_only_its_sequences() -> None:
    problem = random_problem(6, 1, 3, [4, 2, 5], joint=False)
    chain = problem.chain
    expected, expected_best = viterbi(problem.scores, problem.offsets, chain)
    labels = np.full(11, 9, dtype=np.int32)
    best = np.full(3, 9.0)
    viterbi_kernel(
        problem.scores,
        problem.offsets,
        1,
        3,
        chain.order,
        chain.start,
        chain.trans,
        chain.end,
        labels,
        best,
    )
    assert (labels[:4] == 9).all()
    assert best[0] == 9.0
    np.testing.assert_array_equal(labels[4:], expected[4:])
    np.testing.assert_array_equal(best[1:], expected_best[1:])


def test_nbest_asks_for_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        nbest(np.zeros((2, 1, 2), dtype=np.float32), Chain.free(2, 1), 0)


def test_nbest_probabilities_of_all_sequences_sum_to_one() -> None:
    problem = random_problem(3, 2, 3, [5], joint=True)
    _, log_probabilities = nbest(problem.scores, problem.chain, 10_000)
    assert len(log_probabilities) == 3**5
    assert np.exp(log_probabilities).sum() == pytest.approx(1.0, rel=1e-9)


def test_marginal_argmax_takes_the_lowest_of_equals() -> None:
    labels = marginal_argmax(np.array([[0.2, 0.4, 0.4], [0.5, 0.5, 0.0], [0.0, 0.1, 0.9]]))
    assert labels.dtype == np.int32
    assert labels.tolist() == [1, 0, 2]
