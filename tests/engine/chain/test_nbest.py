"""The n best label sequences against enumeration, and against lists that are sorted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.chain.chain import Chain, path_scores
from spacy_treecrf.engine.chain.decoding import viterbi
from spacy_treecrf.engine.chain.nbest import nbest
from spacy_treecrf.engine.limits import MAX_NBEST, MAX_NBEST_LABELS
from tests.engine.chain.naive_nbest import naive_nbest
from tests.engine.enumeration import Problem, enumerate_paths, problems, random_problem
from tests.refusals import assert_refused

checked = settings(max_examples=120, deadline=None)


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


@checked
@given(problems(), st.integers(1, 60))
def test_equals_stand_in_the_order_of_sorted_lists(problem: Problem, n: int) -> None:
    for rows in problem.rows():
        paths, log_p = nbest(problem.scores[rows], problem.chain, n)
        expected, values = naive_nbest(problem.scores[rows], problem.chain, n)
        assert [tuple(path) for path in paths.tolist()] == expected
        # All log probabilities are what is left of the scores: compared without what is taken off.
        assert np.diff(log_p).tolist() == pytest.approx(np.diff(values).tolist(), abs=1e-9)


@pytest.mark.parametrize("whole_numbers", [False, True])
@pytest.mark.parametrize(("order", "joint"), [(0, False), (1, False), (1, True), (2, True)])
def test_long_sequences_have_the_paths_of_sorted_lists(
    order: int, joint: bool, whole_numbers: bool
) -> None:
    problem = random_problem(
        5, order, 4, [60], joint=joint, scale=0.7, forbidden=0.1, whole_numbers=whole_numbers
    )
    paths, _ = nbest(problem.scores, problem.chain, 300)
    expected, _ = naive_nbest(problem.scores, problem.chain, 300)
    assert [tuple(path) for path in paths.tolist()] == expected


def test_the_ten_thousand_best_of_200_positions_are_different_and_in_order() -> None:
    problem = random_problem(1, 1, 9, [201], joint=False)
    paths, log_p = nbest(problem.scores, problem.chain, 10_000)
    assert len({path.tobytes() for path in paths}) == 10_000
    assert np.all(np.diff(log_p) <= 0.0)
    offsets = np.arange(len(paths) + 1) * 201
    stacked = np.tile(problem.scores, (len(paths), 1, 1))
    scores = path_scores(stacked, offsets, paths.ravel(), problem.chain)
    np.testing.assert_allclose(np.diff(scores), np.diff(log_p), atol=1e-6)


def test_nbest_probabilities_of_all_sequences_sum_to_one() -> None:
    problem = random_problem(3, 2, 3, [5], joint=True)
    _, log_probabilities = nbest(problem.scores, problem.chain, 10_000)
    assert len(log_probabilities) == 3**5
    assert np.exp(log_probabilities).sum() == pytest.approx(1.0, rel=1e-9)


def test_an_empty_sequence_has_one_labelling() -> None:
    paths, log_p = nbest(np.zeros((0, 1, 2), np.float32), Chain.free(2, 1), 5)
    assert paths.shape == (1, 0)
    assert log_p.tolist() == [0.0]


@pytest.mark.parametrize("n", [0, -1, MAX_NBEST + 1, 10**30, 1.5, "3", None, True])
def test_n_out_of_range_is_refused_with_the_range(n: object) -> None:
    scores = np.zeros((2, 1, 2), np.float32)
    assert_refused(lambda: nbest(scores, Chain.free(2, 1), n), "a whole number from 1 to 100000")  # type: ignore[arg-type]


def test_a_list_of_too_many_labels_is_refused_with_the_n_that_is_possible() -> None:
    length = MAX_NBEST_LABELS // 1000
    scores = np.zeros((length, 1, 2), np.float32)
    assert_refused(
        lambda: nbest(scores, Chain.free(2, 1), 2000), f"{length} positions", "most 1000"
    )
