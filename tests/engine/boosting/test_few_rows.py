"""Few rows by numpy alone: the scores and labels of kernels, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.boosting.few_rows import (
    are_few,
    labels_of_few,
    linear_scores_of_few,
    tree_scores_of_few,
)
from spacy_treecrf.engine.boosting.linear import LinearScorer, LinearWeights
from spacy_treecrf.engine.boosting.potentials import ForestScorer
from spacy_treecrf.engine.chain.chain import step_potentials
from spacy_treecrf.engine.chain.decoding import viterbi
from spacy_treecrf.engine.sequences import ABSENT, MISSING
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import count_lags, list_contexts
from spacy_treecrf.engine.wide_rows import GOES_ON
from tests.engine.enumeration import random_problem
from tests.engine.random_forest import random_forest
from tests.engine.trees.test_posting_lists import (
    N_FEATURES,
    N_LABELS,
    N_NUMERIC,
    by_scorer,
    random_rows,
)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.sampled_from([1, 2, 3, 9, 31, 64]), min_size=0, max_size=30),
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    n_numeric=st.sampled_from([0, N_NUMERIC]),
    order=st.integers(0, 2),
)
def test_trees_give_the_scores_of_kernels(seed, sizes, lengths, n_numeric, order):
    data = random_rows(seed, lengths, n_numeric=n_numeric)
    forest = random_forest(seed, sizes, N_FEATURES, n_numeric, N_LABELS, order)
    found = by_numpy(forest, data, order)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, by_scorer(forest, data, order))


def by_numpy(forest, data, order):
    contexts, n_numeric = list_contexts(N_LABELS, order), data.numeric.shape[1]
    trees = ForestScorer(forest, N_LABELS, N_FEATURES, n_numeric, contexts)
    rows = count_lags(data.offsets, order), data.feature_ids, data.numeric
    return tree_scores_of_few(trees.postings, contexts, *rows, N_LABELS)


def test_features_of_many_trees_and_of_few_both_count():
    data = random_rows(3, [6, 9])
    often = random_forest(3, [9] * 12, n_features=2, n_numeric=0)
    seldom = random_forest(4, [31], n_features=N_FEATURES)
    for forest in (often, seldom):
        found = by_numpy(forest, data, 0)
        np.testing.assert_array_equal(found, by_scorer(forest, data, 0))
        assert len(np.unique(found)) > 1


@pytest.mark.parametrize("n_numeric", [0, N_NUMERIC])
def test_weights_give_the_scores_of_kernels(n_numeric):
    rng = np.random.default_rng(0)
    data = random_rows(5, [20, 1, 3], n_numeric=n_numeric)
    weights = LinearWeights(
        rng.normal(size=(N_FEATURES, N_LABELS)).astype(np.float32),
        rng.normal(size=(n_numeric, N_LABELS)).astype(np.float32),
    )
    linear = LinearScorer(weights, rng.normal(size=(n_numeric, 256)))
    found = linear_scores_of_few(linear, data.feature_ids, data.numeric)
    np.testing.assert_array_equal(found, linear.score(data, Workers(1)))


def test_no_weights_give_zeros():
    data = random_rows(5, [3])
    linear = LinearScorer(
        LinearWeights.nothing(N_FEATURES, N_NUMERIC, N_LABELS), np.zeros((N_NUMERIC, 256))
    )
    assert not linear_scores_of_few(linear, data.feature_ids, data.numeric).any()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_labels=st.integers(1, 6),
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    forbidden=st.sampled_from([0.0, 0.4, 0.9]),
    whole_numbers=st.booleans(),
    joint=st.booleans(),
)
def test_labels_are_those_of_kernels(seed, n_labels, lengths, forbidden, whole_numbers, joint):
    problem = random_problem(
        seed,
        1,
        n_labels,
        lengths,
        joint=joint,
        forbidden=forbidden,
        whole_numbers=whole_numbers,
    )
    expected, _ = viterbi(problem.scores, problem.offsets, problem.chain)
    steps = step_potentials(problem.chain)
    found = labels_of_few(problem.scores.astype(np.float32), problem.offsets, steps)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)


def test_many_rows_and_wide_ones_are_not_few():
    rows = np.full((3, 2), ABSENT, np.int32)
    rows[1] = MISSING
    assert are_few(rows, 3)
    assert not are_few(rows, 2)
    assert not are_few(rows[:0], 3)
    rows[0, 1] = GOES_ON - 3
    assert not are_few(rows, 3)
