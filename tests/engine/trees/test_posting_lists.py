"""Scores by posting lists, by traversal, and by the obvious walk: the same bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.boosting.linear import LinearWeights, linear_scores
from spacy_treecrf.engine.boosting.potentials import ForestScorer, Potentials, Scorer
from spacy_treecrf.engine.sequences import ABSENT, CHUNK_ROWS, FEW_ROWS, MISSING, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import count_lags, list_contexts
from spacy_treecrf.engine.trees.posting_lists import MAX_MASK_LEAVES, ScoredRows
from spacy_treecrf.engine.trees.traversal import add_tree_scores_by_traversal
from tests.engine.random_forest import random_forest, walk

N_FEATURES, N_NUMERIC, N_LABELS = 12, 2, 3


def random_rows(seed, lengths, n_slots=4, n_numeric=N_NUMERIC) -> Sequences:
    """Two slots of their own, the others shared: any of the last features, none of them twice."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n_rows = int(offsets[-1])
    feature_ids = np.full((n_rows, n_slots), ABSENT, np.int32)
    feature_ids[:, 0] = rng.choice([ABSENT, MISSING, 0, 1, 2, 3], n_rows)
    feature_ids[:, 1] = rng.choice([ABSENT, MISSING, 4, 5, 6, 7], n_rows)
    for row in range(n_rows):  # ids of 12 and more are unknown to the trees
        bag = rng.permutation(np.arange(8, 16))[: rng.integers(0, n_slots - 1)]
        feature_ids[row, 2 : 2 + len(bag)] = bag
    numeric = rng.integers(0, 256, (n_rows, n_numeric)).astype(np.uint8)
    numeric[rng.random(numeric.shape) < 0.2] = 0
    return Sequences(
        offsets, feature_ids, numeric, np.zeros(n_rows, np.int32), np.ones(n_rows, np.float32)
    )


def by_scorer(forest, data, order, workers=None):
    scores = np.zeros((data.n_rows, N_LABELS**order, N_LABELS), np.float32)
    contexts = list_contexts(N_LABELS, order)
    scorer = ForestScorer(forest, N_LABELS, N_FEATURES, data.numeric.shape[1], contexts)
    scorer.add(data, count_lags(data.offsets, order), scores, workers or Workers(1))
    return scores


def by_traversal(forest, data, order):
    scores = np.zeros((data.n_rows, N_LABELS**order, N_LABELS), np.float32)
    contexts = list_contexts(N_LABELS, order)
    add_tree_scores_by_traversal(
        ScoredRows(data.feature_ids, data.numeric, count_lags(data.offsets, order)),
        0,
        data.n_rows,
        contexts,
        N_FEATURES,
        forest.nodes,
        scores,
    )
    return scores


def by_walking(forest, data, order):
    scores = np.zeros((data.n_rows, N_LABELS**order, N_LABELS))
    for s in range(data.n_sequences):
        for t, row in enumerate(range(*data.offsets[s : s + 2])):
            for c in range(N_LABELS ** min(t, order)):
                before = [c // N_LABELS**lag % N_LABELS for lag in range(min(t, order))]
                before += [N_LABELS] * (order - len(before))
                for tree in range(forest.n_trees):
                    leaf = walk(forest, tree, data.feature_ids[row], data.numeric[row], before)
                    scores[row, c, forest.tree_class[tree]] += forest.value[leaf]
    return scores


def assert_all_agree(forest, data, order):
    expected = by_walking(forest, data, order)
    np.testing.assert_array_equal(by_traversal(forest, data, order), expected)
    np.testing.assert_array_equal(by_scorer(forest, data, order), expected)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    order=st.integers(0, 2),
    sizes=st.lists(st.sampled_from([1, 2, 3, 9, 31]), min_size=0, max_size=8),
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    n_numeric=st.sampled_from([0, N_NUMERIC]),
)
def test_all_ways_to_score_agree(seed, order, sizes, lengths, n_numeric):
    data = random_rows(seed, lengths, n_numeric=n_numeric)
    forest = random_forest(seed, sizes, N_FEATURES, n_numeric, N_LABELS, order)
    assert_all_agree(forest, data, order)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(
    "sizes",
    [[1], [63], [64], [65], [64, 1, 64], [200], [255], [256], [257], [1, 64, 65, 7, 100, 300]],
)
def test_trees_at_and_beyond_the_size_of_a_mask_agree(order, sizes):
    assert MAX_MASK_LEAVES == 64
    data = random_rows(1, [6, 1, 5])
    assert_all_agree(random_forest(2, sizes, order=order), data, order)


def chain_tree(to_the_right, n_leaves):
    """A forest of one tree that splits again and again on one side, each time by another bin."""
    forest = random_forest(0, [n_leaves], n_features=0, n_numeric=1, rounds=1)
    inner = np.arange(n_leaves - 1)
    kind = np.zeros(2 * n_leaves - 1, np.uint8)
    nodes = np.concatenate([[0], 2 * inner[1:] - (0 if to_the_right else 1)])
    kind[nodes] = 2
    for name, values in (
        ("feature", 0 * inner),
        ("threshold", inner if to_the_right else 200 - inner),
        ("left", 2 * inner + 1),
        ("right", 2 * inner + 2),
    ):
        getattr(forest, name)[nodes] = values
    forest.kind[:] = kind
    return forest


@pytest.mark.parametrize("to_the_right", [False, True])
@pytest.mark.parametrize("n_leaves", [2, 63, 64, 65, 128, 130, 192, 193])
def test_degenerate_trees_agree(to_the_right, n_leaves):
    forest = chain_tree(to_the_right, n_leaves)
    rows = random_rows(3, [256], n_numeric=1)
    rows.numeric[:, 0] = np.arange(256)
    assert len(np.unique(by_walking(forest, rows, 0).sum(axis=(1, 2)))) == n_leaves
    assert_all_agree(forest, rows, 0)


@pytest.mark.parametrize("feature", [ABSENT, MISSING, N_FEATURES, N_FEATURES + 1, 2**31 - 1])
def test_rows_without_any_known_feature_fall_into_the_leftmost_leaves(feature):
    data = random_rows(4, [3, 2])
    data.feature_ids[:] = feature
    data.numeric[:] = 0
    forest = random_forest(5, [1, 8, 64, 70], n_numeric=0)
    expected = np.zeros(N_LABELS)
    for tree in range(forest.n_trees):
        node = first = forest.tree_first[tree]
        while forest.kind[node]:
            node = first + forest.left[node]
        expected[forest.tree_class[tree]] += forest.value[node]
    np.testing.assert_array_equal(by_scorer(forest, data, 0), np.tile(expected, (5, 1, 1)))
    assert_all_agree(forest, data, 0)


def test_a_feature_in_two_slots_of_a_row_counts_once():
    data = random_rows(6, [8])
    data.feature_ids[:, 2] = data.feature_ids[:, 3] = 9
    assert_all_agree(random_forest(7, [20] * 5), data, 0)


@pytest.mark.parametrize("n_bins", [1, 2, 40])
def test_rows_that_share_their_bins_and_those_that_do_not_agree(n_bins):
    """More than LANES different bins, and runs of rows of the same ones."""
    data = random_rows(5, [FEW_ROWS + 9], n_numeric=3)
    data.numeric[:] = data.numeric[np.arange(data.n_rows) % n_bins].copy()
    forest = random_forest(5, [30, 64, 1, 17], N_FEATURES, 3, N_LABELS, 0)
    expected = by_traversal(forest, data, 0)
    np.testing.assert_array_equal(by_scorer(forest, data, 0), expected)


def test_chunks_and_threads_do_not_matter():
    data = random_rows(8, [300] * 40)
    assert len(data.chunks) > 2
    assert data.n_rows > 2 * CHUNK_ROWS
    forest = random_forest(9, [5, 40, 80, 260], order=1)
    one = by_scorer(forest, data, 1)
    with Workers(4) as workers:
        np.testing.assert_array_equal(by_scorer(forest, data, 1, workers), one)


def test_contexts_that_cannot_occur_keep_their_scores():
    data = random_rows(10, [3, 1])
    scores = by_scorer(random_forest(11, [5] * 9, order=2), data, 2)
    for row, n_contexts in enumerate([1, 3, 9, 1]):
        assert not scores[row, n_contexts:].any()


def test_the_order_of_trees_does_not_matter():
    data = random_rows(12, [5, 3])
    forest = random_forest(13, [9] * 12)
    odd = np.arange(forest.n_trees) % 2 == 1
    parts = by_scorer(forest.select(odd), data, 0) + by_scorer(forest.select(~odd), data, 0)
    np.testing.assert_array_equal(parts, by_scorer(forest, data, 0))


@pytest.mark.parametrize("order", [0, 2])
def test_scorer_adds_the_linear_part_to_every_context(order):
    data = random_rows(14, [4, 2])
    rng = np.random.default_rng(0)
    linear = LinearWeights(
        np.rint(rng.normal(size=(N_FEATURES, N_LABELS)) * 64).astype(np.float32) / 64,
        np.rint(rng.normal(size=(N_NUMERIC, N_LABELS)) * 64).astype(np.float32) / 64,
    )
    forest = random_forest(15, [5, 9, 70], order=order)
    edges = np.zeros((N_LABELS + 1, N_LABELS), np.float32)
    bin_values = rng.normal(size=(N_NUMERIC, 256))
    scorer = Scorer(Potentials(edges, linear, linear, (forest,), 2), bin_values, order)
    with Workers(1) as workers:
        found = scorer.score(data, workers)
        expected = linear_scores(data, linear, bin_values, workers)[:, None]
    np.testing.assert_array_equal(found, expected + by_scorer(forest, data, order))


def test_nothing_learned_gives_zero_scores():
    data = random_rows(16, [2, 3])
    scorer = Scorer(Potentials.zeros(N_LABELS, N_FEATURES, 1), np.zeros((1, 256)), 1)
    scores = scorer.score(data, Workers(1))
    assert scores.shape == (5, N_LABELS, N_LABELS)
    assert not scores.any()
