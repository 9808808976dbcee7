"""Trees grown on rows with missing values: by hand, against a naive twin, and where none is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.missing_values.incomplete_growing import grow_incomplete_tree
from spacy_treecrf.engine.missing_values.routing import find_missing_branches
from spacy_treecrf.engine.trees.contexts import list_contexts
from spacy_treecrf.engine.trees.entries import collect
from spacy_treecrf.engine.trees.grower import grow_tree
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, LEAF
from spacy_treecrf.engine.trees.tree_input import TreeInput, TreeLimits
from tests.engine.naive_incomplete import grow_incomplete_naively, surrogates_of
from tests.engine.trees.test_grower import NO_HESSIAN, SEED, assert_same_tree, random_problem

X, Y, P, Q = 0, 1, 2, 3  # features: two values of the first column, two of the second


def small_problem(first, second, g):
    """Rows of two categorical columns, None where missing, and their gradients; no contexts."""
    feature_ids = np.array(
        [[-2 if v is None else v for v in row] for row in zip(first, second, strict=True)], np.int32
    )
    contexts = list_contexts(2, 0)
    data = TreeInput(
        feature_ids,
        np.ascontiguousarray(feature_ids.T),
        np.zeros((len(feature_ids), 0), np.uint8),
        4,
        np.array([[0, 1], [0, 1], [1, 2], [1, 2]], np.int32),
        np.array([0, 0, 1, 1], np.int32),
        2,
        np.zeros(len(feature_ids), np.uint8),
        contexts.first,
        contexts.labels,
        2,
    )
    pair_g = np.array(g, np.float32)[:, None]
    entries = collect(pair_g, NO_HESSIAN, data.lags, 2, 0.0, 1.0, SEED)
    return data, entries, feature_ids == -2


def grow(problem, leaves, surrogate):
    data, entries, missing = problem
    limits = TreeLimits(leaves, 0, 1, 1.0, 1e-9, 1.0, 1.0)
    tree = grow_incomplete_tree(data, entries, limits, SEED, missing, surrogate)
    return tree, find_missing_branches(tree, data, missing, surrogate)


def test_instance_weighting_by_hand():
    """Two rows have x, four y, two do not tell: a third of these goes with x."""
    first = [X, X, Y, Y, Y, Y, None, None]
    problem = small_problem(first, [P] * 8, [1, 1, -1, -1, -1, -1, 0.5, 0.5])
    tree, branches = grow(problem, 2, surrogate=False)
    assert (tree.kind[0], tree.feature[0]) == (CATEGORICAL, X)
    third = np.float64(np.float32(1 / 3))
    right = (2 + 2 * 0.5 * third) / (2 + 2 * third + 1)
    left = (-4 + 2 * 0.5 * (1 - third)) / (4 + 2 * (1 - third) + 1)
    np.testing.assert_allclose(tree.value[1:], [left, right], rtol=1e-6)
    assert tree.value[0] == pytest.approx(-1 / 9)
    # the gain is that of the six rows which know: from (2 - 4)^2 / 7 to 16 / 5 + 4 / 3
    assert tree.gain[0] == pytest.approx(16 / 5 + 4 / 3 - 4 / 7)
    assert branches.right_share.tolist() == [third, 0.0, 0.0]
    assert not len(branches.kind)


def test_parts_of_rows_are_split_again():
    """The rows without a first value know the second one: x; then p against q among the rest."""
    first = [X] * 4 + [Y] * 4 + [None] * 4
    second = [P, P, Q, Q, P, P, Q, Q, P, P, Q, Q]
    g = [4, 4, 4, 4, -3, -3, 1, 1, 0, 0, 0, 0]
    tree, branches = grow(small_problem(first, second, g), 3, surrogate=False)
    assert tree.feature[:2].tolist() == [X, P]
    assert tree.kind.tolist() == [CATEGORICAL, CATEGORICAL, LEAF, LEAF, LEAF]
    # half of each row without a first value is on either side
    expected = [-6 / (2 + 2 * 0.5 + 1), 2 / (2 + 2 * 0.5 + 1)]
    np.testing.assert_allclose(tree.value[[4, 3]], expected)
    assert tree.value[2] == pytest.approx(16 / (4 + 2 + 1))
    assert branches.right_share[:2].tolist() == [0.5, 0.5]


def test_surrogates_by_hand():
    """p goes with x in five of six rows that know both; the majority is right in four of them."""
    first = [X, X, Y, Y, Y, Y, None, None, None]
    second = [P, P, Q, Q, Q, P, P, Q, None]
    g = [3, 3, -3, -3, -3, -3, 0.6, 0.6, 0.6]
    problem = small_problem(first, second, g)
    tree, branches = grow(problem, 2, surrogate=True)
    assert tree.feature[0] == X
    # of the last three rows one has p and goes right, the others left: by q, and by majority
    np.testing.assert_allclose(tree.value[1:], [(-12 + 1.2) / 7, (6 + 0.6) / 4], rtol=1e-6)
    assert branches.n_surrogates.tolist() == [1, 0, 0]
    assert (branches.kind[0], branches.feature[0], branches.flip[0]) == (CATEGORICAL, P, False)
    assert branches.right_share[0] == np.float32(1 / 3)


def test_a_surrogate_may_point_the_other_way():
    first = [X, X, X, Y, Y, Y, None]
    second = [None, P, P, Q, Q, Q, Q]
    data, entries, missing = small_problem(first, second, [1, 1, 1, -1, -1, -1, -1])
    data.feature_ids[data.feature_ids == P] = -1  # a column that only knows q
    tree, branches = grow((data, entries, missing), 2, surrogate=True)
    assert tree.feature[0] == X
    assert (branches.feature[0], branches.flip[0]) == (Q, True)
    np.testing.assert_allclose(tree.value[1:], [-4 / 5, 3 / 4])


def test_no_surrogate_is_worse_than_the_majority():
    first = [X, Y, Y, Y, None]
    second = [P, P, Q, Q, P]
    tree, branches = grow(small_problem(first, second, [3, -1, -1, -1, -1]), 2, surrogate=True)
    assert tree.feature[0] == X
    assert branches.n_surrogates.tolist() == [0, 0, 0]
    np.testing.assert_allclose(tree.value[1:], [-4 / 5, 3 / 2])


def damaged(data, seed, rate):
    """Whether each column is missing, and feature_ids and numbers without the missing values."""
    rng = np.random.default_rng(seed)
    n_numeric = data.numeric.shape[1]
    missing = rng.random((len(data.feature_ids), data.n_columns + n_numeric)) < rate
    feature_ids, numeric = data.feature_ids.copy(), data.numeric.copy()
    of_slots = [0, 1, 2, 2]
    feature_ids[missing[:, of_slots]] = -2
    numeric[missing[:, data.n_columns :]] = 0
    missing[:, data.n_columns :] |= numeric == 0
    data = data._replace(
        feature_ids=feature_ids, columns=np.ascontiguousarray(feature_ids.T), numeric=numeric
    )
    return data, missing


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    order=st.integers(0, 2),
    n_labels=st.integers(1, 3),
    n_numeric=st.integers(0, 2),
    newton=st.booleans(),
    leaves=st.integers(1, 9),
    depth=st.sampled_from([0, 2]),
    min_rows=st.integers(1, 4),
    rate=st.sampled_from([0.1, 0.4]),
    surrogate=st.booleans(),
)
def test_grower_equals_naive_grower(
    seed, order, n_labels, n_numeric, newton, leaves, depth, min_rows, rate, surrogate
):
    data, pair_g, pair_h = random_problem(seed, 40, n_labels, order, n_numeric, newton)
    data, missing = damaged(data, seed, rate)
    entries = collect(pair_g, pair_h, data.lags, n_labels, 0.0, 1.0, SEED)
    limits = TreeLimits(leaves, depth, min_rows, 1.0, 1e-9, 1.0, 1.0)
    tree = grow_incomplete_tree(data, entries, limits, SEED, missing, surrogate)
    nodes = grow_incomplete_naively(data, entries, limits, missing, surrogate)
    assert_same_tree(tree, nodes)
    # what all rows together say of the tree's branches
    branches = find_missing_branches(tree, data, missing, surrogate)
    at = 0
    for i, node in enumerate(nodes):
        if node["kind"] in (LEAF, 3):
            assert branches.n_surrogates[i] == 0
            continue
        test = node["kind"], node["feature"], node["threshold"]
        rows = [row for row, _, _ in node["examples"]]
        amounts = [float(sums[2]) for _, sums, _ in node["examples"]]
        if surrogate:
            found = surrogates_of(data, missing, rows, amounts, test)
            assert branches.n_surrogates[i] == len(found)
            for (kind, feature, threshold), flip in found:
                assert branches.kind[at] == kind
                assert branches.feature[at] == feature
                assert branches.threshold[at] == threshold
                assert branches.flip[at] == flip
                at += 1
        known = [0.0, 0.0]
        for row, amount in zip(rows, amounts, strict=True):
            if not missing[row, column_tested(data, test)]:
                known[holds(data, test, row)] += amount
        assert branches.right_share[i] == pytest.approx(known[1] / sum(known), abs=1e-3)


def column_tested(data, test):
    return data.column_of[test[1]] if test[0] == CATEGORICAL else data.n_columns + test[1]


def holds(data, test, row):
    kind, feature, threshold = test
    if kind == CATEGORICAL:
        return int(feature in data.feature_ids[row])
    return int(data.numeric[row, feature] > threshold)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    order=st.integers(0, 2),
    n_labels=st.integers(1, 3),
    n_numeric=st.integers(0, 2),
    newton=st.booleans(),
    leaves=st.integers(1, 12),
    depth=st.sampled_from([0, 2]),
    min_rows=st.integers(1, 4),
    columns=st.sampled_from([(1.0, 1.0), (0.6, 1.0), (1.0, 0.6)]),
    surrogate=st.booleans(),
)
def test_where_nothing_is_missing_the_tree_is_the_plain_one(
    seed, order, n_labels, n_numeric, newton, leaves, depth, min_rows, columns, surrogate
):
    data, pair_g, pair_h = random_problem(seed, 40, n_labels, order, n_numeric, newton)
    data.numeric[data.numeric == 0] = 1
    entries = collect(pair_g, pair_h, data.lags, n_labels, 0.0, 0.9, SEED)
    limits = TreeLimits(leaves, depth, min_rows, 1.0, 1e-9, *columns)
    nothing = np.zeros((40, 3 + n_numeric), np.bool_)
    plain = grow_tree(data, entries, limits, SEED)
    entries = collect(pair_g, pair_h, data.lags, n_labels, 0.0, 0.9, SEED)
    tree = grow_incomplete_tree(data, entries, limits, SEED, nothing, surrogate)
    for name, expected, found in zip(plain._fields, plain, tree, strict=True):
        np.testing.assert_array_equal(found, expected, err_msg=name)


def test_trimmed_rows_follow_the_plain_tree():
    data, pair_g, pair_h = random_problem(7, 20_000, n_numeric=1)
    data.numeric[data.numeric == 0] = 1
    entries = collect(pair_g, pair_h, data.lags, 2, 0.2, 1.0, SEED)
    assert len(entries.rows) < 20_000
    limits = TreeLimits(20, 0, 3, 1.0, 1e-9, 1.0, 1.0)
    nothing = np.zeros((20_000, 4), np.bool_)
    plain = grow_tree(data, entries, limits, SEED)
    entries = collect(pair_g, pair_h, data.lags, 2, 0.2, 1.0, SEED)
    tree = grow_incomplete_tree(data, entries, limits, SEED, nothing, False)
    for expected, found in zip(plain, tree, strict=True):
        np.testing.assert_array_equal(found, expected)
    # and the shares are those of all rows
    share = find_missing_branches(tree, data, nothing, False).right_share[0]
    test = int(tree.kind[0]), int(tree.feature[0]), int(tree.threshold[0])
    assert share == pytest.approx(np.mean([holds(data, test, row) for row in range(20_000)]))
