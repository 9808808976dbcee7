"""Scores of rows with missing values, against a walk that recurs at every node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.boosting import potentials as potentials_module
from spacy_treecrf.engine.boosting.potentials import ForestScorer
from spacy_treecrf.engine.encoding.missing_cells import missing_cells
from spacy_treecrf.engine.encoding.missing_methods import ColumnMap, Incomplete
from spacy_treecrf.engine.fixed_grid import GRID
from spacy_treecrf.engine.sequences import ABSENT, MISSING, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import count_lags, list_contexts
from spacy_treecrf.engine.trees.forest import Forest, join_forests
from spacy_treecrf.engine.trees.missing_branches import MissingBranches
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, CONTEXT, LEAF, NUMERIC
from tests.engine.random_forest import random_forest
from tests.engine.trees.test_posting_lists import (
    N_FEATURES,
    N_LABELS,
    N_NUMERIC,
    by_scorer,
    random_rows,
)

# Two columns with slots of their own, one of which is the second; a bag; and another, of features
# 10 and 11, in shared slots.
COLUMNS = ColumnMap(
    np.array([0] * 4 + [1] * 4 + [2] * 2 + [3] * 2, np.int32), np.array([0, 1], np.int32), 4
)


def with_missing_branches(forest: Forest, seed, n_numeric, surrogates: bool) -> Forest:
    rng = np.random.default_rng(seed)
    n_nodes = len(forest.kind)
    lengths = rng.integers(0, 4, n_nodes) * surrogates * (forest.kind != LEAF)
    n = int(lengths.sum())
    kind = rng.choice([CATEGORICAL] + [NUMERIC] * bool(n_numeric), n).astype(np.uint8)
    feature = np.where(
        kind == CATEGORICAL, rng.integers(0, N_FEATURES, n), rng.integers(0, max(1, n_numeric), n)
    )
    branches = MissingBranches(
        rng.choice([0.0, 0.25, 0.5, 0.3, 1.0, 1 / 3], n_nodes).astype(np.float32),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        kind,
        feature.astype(np.int32),
        np.where(kind == NUMERIC, rng.integers(0, 256, n), 0).astype(np.int32),
        rng.random(n) < 0.5,
    )
    return replace(forest, missing_branches=branches)


def incomplete_rows(seed, lengths, n_numeric) -> Sequences:
    """Rows of `random_rows`, some with a mark for a missing column in a shared slot."""
    data = random_rows(seed, lengths, n_slots=6, n_numeric=n_numeric)
    rng = np.random.default_rng(seed)
    for row in range(data.n_rows):
        if rng.random() < 0.3:
            column = int(rng.integers(2, 4))
            gone = [8, 9] if column == 2 else [10, 11]
            data.feature_ids[row, 2:][np.isin(data.feature_ids[row, 2:], gone)] = ABSENT
            data.feature_ids[row, 5] = MISSING - 1 - column
    return data


def missing_columns(data, row) -> set[int]:
    found = set()
    for slot, feature in enumerate(data.feature_ids[row].tolist()):
        if feature == MISSING:
            found.add(slot)
        elif feature < MISSING:
            found.add(MISSING - 1 - feature)
    return found | {4 + d for d, bin_ in enumerate(data.numeric[row].tolist()) if bin_ == 0}


def holds(kind, feature, threshold, data, row):
    if kind == CATEGORICAL:
        return feature in data.feature_ids[row]
    return data.numeric[row, feature] > threshold


def value_at(forest, node, first, data, row, gone, previous, averages) -> float:
    """The average of what is below a node, weighted with the shares of its ways."""
    kind, feature = int(forest.kind[node]), int(forest.feature[node])
    threshold = int(forest.threshold[node])
    if kind == LEAF:
        return float(forest.value[node])
    left, right = (
        lambda child=child: value_at(
            forest, first + int(child), first, data, row, gone, previous, averages
        )
        for child in (forest.left[node], forest.right[node])
    )
    if kind == CONTEXT:
        return right() if previous[feature] == threshold else left()
    column = int(COLUMNS.column_of[feature]) if kind == CATEGORICAL else 4 + feature
    if column not in gone:
        return right() if holds(kind, feature, threshold, data, row) else left()
    branches = forest.missing_branches
    share = float(branches.right_share[node])
    if averages:
        return (1.0 - share) * left() + share * right()
    for s in range(branches.first[node], branches.first[node + 1]):
        kind, feature = int(branches.kind[s]), int(branches.feature[s])
        column = int(COLUMNS.column_of[feature]) if kind == CATEGORICAL else 4 + feature
        if column not in gone:
            answer = holds(kind, feature, int(branches.threshold[s]), data, row)
            return right() if bool(answer) != bool(branches.flip[s]) else left()
    return right() if share > 0.5 else left()


def by_recursion(forest, data, order, averages):
    scores = np.zeros((data.n_rows, N_LABELS**order, N_LABELS))
    for s in range(data.n_sequences):
        for t, row in enumerate(range(*data.offsets[s : s + 2])):
            gone = missing_columns(data, row)
            for c in range(N_LABELS ** min(t, order)):
                before = [c // N_LABELS**lag % N_LABELS for lag in range(min(t, order))]
                before += [N_LABELS] * (order - len(before))
                for tree, first in enumerate(forest.tree_first[:-1].tolist()):
                    value = value_at(forest, first, first, data, row, gone, before, averages)
                    scores[row, c, forest.tree_class[tree]] += np.rint(value * GRID) / GRID
    return scores


def by_walks(forest, data, order, averages, workers=None):
    scores = np.zeros((data.n_rows, N_LABELS**order, N_LABELS), np.float32)
    contexts = list_contexts(N_LABELS, order)
    scorer = ForestScorer(
        forest,
        N_LABELS,
        N_FEATURES,
        data.numeric.shape[1],
        contexts,
        Incomplete(COLUMNS, averages),
    )
    lags = count_lags(data.offsets, order)
    scorer.add(data, lags, scores, workers or Workers(1), missing_cells(data, COLUMNS))
    return scores


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    order=st.integers(0, 2),
    sizes=st.lists(st.sampled_from([1, 2, 3, 9, 31, 70]), min_size=0, max_size=6),
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    n_numeric=st.sampled_from([0, N_NUMERIC]),
    averages=st.booleans(),
)
def test_scores_equal_those_of_a_recursive_walk(seed, order, sizes, lengths, n_numeric, averages):
    data = incomplete_rows(seed, lengths, n_numeric)
    forest = random_forest(seed, sizes, N_FEATURES, n_numeric, N_LABELS, order)
    forest = with_missing_branches(forest, seed, n_numeric, surrogates=not averages)
    expected = by_recursion(forest, data, order, averages)
    found = by_walks(forest, data, order, averages)
    # sums of products may be rounded in another order, and then to another step of the grid
    np.testing.assert_allclose(found, expected, atol=1.0 / GRID)
    assert np.mean(found == expected) > 0.99
    reverted = found + by_walks(forest.scaled(-1.0), data, order, averages)
    np.testing.assert_array_equal(reverted, 0.0)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("averages", [True, False])
def test_complete_rows_are_scored_as_ever(order, averages):
    data = random_rows(5, [6, 4], n_numeric=N_NUMERIC)
    data.feature_ids[data.feature_ids == MISSING] = ABSENT
    data.numeric[data.numeric == 0] = 1
    assert missing_cells(data, COLUMNS) is None
    forest = random_forest(6, [3, 20, 64, 90], order=order)
    plain = by_scorer(forest, data, order)
    treated = with_missing_branches(forest, 1, N_NUMERIC, surrogates=not averages)
    np.testing.assert_array_equal(by_walks(treated, data, order, averages), plain)
    # and beside rows that are not complete
    data.feature_ids[0, 0] = MISSING
    np.testing.assert_array_equal(by_walks(treated, data, order, averages)[1:], plain[1:])


def test_only_trees_that_ask_for_a_missing_value_are_walked(monkeypatch):
    """Trees that do not ask for it are scored by postings: their walked leaves may be nonsense."""
    data = random_rows(7, [12], n_numeric=0)
    data.feature_ids[:, 0] = MISSING
    data.feature_ids[:, 1] = 4
    forest = random_forest(8, [8, 8], n_numeric=0, rounds=1)
    asks = np.repeat([True, False], 15)
    forest.feature[:] = np.where(asks, forest.feature % 4, 4 + forest.feature % 8)
    forest = with_missing_branches(forest, 2, 0, surrogates=False)
    expected = by_recursion(forest, data, 0, True)
    walked = potentials_module.walked_trees

    def without_values(some, *rest):
        trees = walked(some, *rest)
        value = trees.nodes.value.copy()
        for tree, first in enumerate(some.tree_first[:-1]):
            nodes = slice(first, some.tree_first[tree + 1])
            if trees.column[nodes].max() > 0 or trees.column[nodes][0] > 0:
                value[nodes] = 1e3
        return trees._replace(nodes=trees.nodes._replace(value=value))

    monkeypatch.setattr(potentials_module, "walked_trees", without_values)
    np.testing.assert_allclose(by_walks(forest, data, 0, True), expected, atol=1.0 / GRID)


def test_threads_do_not_matter():
    data = incomplete_rows(9, [400] * 25, N_NUMERIC)
    forest = with_missing_branches(
        random_forest(10, [9, 31, 80], order=1), 3, N_NUMERIC, surrogates=False
    )
    one = by_walks(forest, data, 1, True)
    with Workers(4) as workers:
        np.testing.assert_array_equal(by_walks(forest, data, 1, True, workers), one)


def test_missing_branches_go_with_their_trees():
    forest = with_missing_branches(random_forest(11, [3, 9, 5, 31]), 4, N_NUMERIC, surrogates=True)
    plain = random_forest(12, [4], rounds=1)
    joined = join_forests([forest, plain, forest])
    assert joined.missing_branches.first[-1] == 2 * forest.missing_branches.first[-1]
    data = incomplete_rows(13, [5, 5], N_NUMERIC)
    last = joined.select(np.arange(9) >= 5)
    for name, array in last.missing_branches.to_state().items():
        np.testing.assert_array_equal(array, getattr(forest.missing_branches, name))
    turned = forest.reordered(np.array([2, 0, 3, 1]))
    np.testing.assert_array_equal(
        by_walks(turned, data, 0, False), by_walks(forest, data, 0, False)
    )
    left = plain.with_missing_branches()
    assert not left.missing_branches.right_share.any()
    assert forest.with_missing_branches().missing_branches is forest.missing_branches
