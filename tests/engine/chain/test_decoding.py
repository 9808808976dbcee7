"""Viterbi against enumeration of all label sequences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from spacy_treecrf.engine.chain import decoding
from spacy_treecrf.engine.chain.chain import Chain, ScoredChunk, path_scores, step_potentials
from spacy_treecrf.engine.chain.decoding import marginal_argmax, viterbi, viterbi_kernel
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


@pytest.mark.parametrize("whole_numbers", [False, True])
@pytest.mark.parametrize("n_labels", [1, 2, 5, 7, 8, 9, 16, 22])
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
    twin_labels, twin_best = np.zeros_like(labels), np.zeros_like(best)
    sequences = ScoredChunk(problem.scores, problem.offsets, 0, 4)
    decoding.viterbi_general(sequences, step_potentials(chain), twin_labels, twin_best)
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
    sequences = ScoredChunk(problem.scores, problem.offsets, 1, 3)
    viterbi_kernel(sequences, chain, labels, best)
    assert (labels[:4] == 9).all()
    assert best[0] == 9.0
    np.testing.assert_array_equal(labels[4:], expected[4:])
    np.testing.assert_array_equal(best[1:], expected_best[1:])


def test_marginal_argmax_takes_the_lowest_of_equals() -> None:
    labels = marginal_argmax(np.array([[0.2, 0.4, 0.4], [0.5, 0.5, 0.0], [0.0, 0.1, 0.9]]))
    assert labels.dtype == np.int32
    assert labels.tolist() == [1, 0, 2]
