"""Scores of rows with missing values: posting lists, and a walk in the trees that ask for them.

A walk takes both ways at a test without an answer, and the tree's value is the average of the
leaves it reaches (Hao 2009, section 4.2); or it asks the surrogates (section 4.3). Values are
rounded to the grid tree by tree, as the sums of all trees must not depend on their order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.missing_methods import Incomplete
from spacy_treecrf.engine.fixed_grid import GRID
from spacy_treecrf.engine.intrinsics import lowest_bit
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.trees.contexts import Contexts
from spacy_treecrf.engine.trees.forest import Forest, TreeNodes
from spacy_treecrf.engine.trees.missing_branches import MissingBranches
from spacy_treecrf.engine.trees.posting_lists import (
    ALL_LEAVES,
    Postings,
    ScoredRows,
    apply_bins,
    apply_features,
)
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, CONTEXT, LEAF
from spacy_treecrf.engine.trees.traversal import note_features


class SurrogateTests(NamedTuple):
    """The surrogates of all nodes. shapes: (n_surrogates,) where not said"""

    first: npt.NDArray[np.int64]  # shape: (n_nodes + 1,)
    kind: npt.NDArray[np.uint8]
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    column: npt.NDArray[np.int32]
    flip: npt.NDArray[np.bool_]


class WalkedTrees(NamedTuple):
    """Trees as they are walked, and which of them ask for a column."""

    nodes: TreeNodes
    column: npt.NDArray[np.int32]  # shape: (n_nodes,), -1 for leaves and contexts
    right_share: npt.NDArray[np.float32]  # shape: (n_nodes,)
    averages: bool  # else surrogates decide
    surrogates: SurrogateTests
    tests_context: npt.NDArray[np.bool_]  # shape: (n_trees,)
    column_first: npt.NDArray[np.int64]  # shape: (n_columns + n_numeric + 1,)
    column_tree: npt.NDArray[np.int32]  # trees with a test of the column


class Walk(NamedTuple):
    """What walks need to remember, and room for it."""

    last_row_with: npt.NDArray[np.int64]  # shape: (n_features,), the last row that has a feature
    last_row_of: npt.NDArray[np.int64]  # shape: (n_trees,), the last row for which a tree is walked
    waiting: npt.NDArray[np.int64]  # shape: (most nodes of a tree,), nodes still to be visited
    weights: npt.NDArray[np.float64]  # how much of the row is at each of them


def walked_trees(forest: Forest, incomplete: Incomplete, n_numeric: int) -> WalkedTrees:
    """Prepare a forest for walks."""
    branches = forest.missing_branches or MissingBranches.all_left(len(forest.kind))
    columns = incomplete.columns
    n_trees = forest.n_trees
    tree_of = np.repeat(np.arange(n_trees), np.diff(forest.tree_first))
    tests_context = np.zeros(n_trees, np.bool_)
    tests_context[tree_of[forest.kind == CONTEXT]] = True

    def column_of(
        kind: npt.NDArray[np.uint8], feature: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """Return the column that each test asks for, -1 for leaves and contexts."""
        column = np.where((kind == LEAF) | (kind == CONTEXT), -1, columns.n_columns + feature)
        categorical = kind == CATEGORICAL
        column[categorical] = columns.column_of[feature[categorical]]
        return column.astype(np.int32)

    column = column_of(forest.kind, forest.feature)
    asking = column >= 0
    pairs = np.unique(column[asking].astype(np.int64) * n_trees + tree_of[asking])
    asked, asking_tree = np.divmod(pairs, max(n_trees, 1))
    first = np.searchsorted(asked, np.arange(columns.n_columns + n_numeric + 1))
    surrogates = SurrogateTests(
        branches.first,
        branches.kind,
        branches.feature,
        branches.threshold,
        column_of(branches.kind, branches.feature),
        branches.flip,
    )
    return WalkedTrees(
        forest.nodes,
        column,
        branches.right_share,
        incomplete.averages,
        surrogates,
        tests_context,
        first.astype(np.int64),
        asking_tree.astype(np.int32),
    )


@step
def _room_for_walk(nodes: TreeNodes, n_features: int) -> Walk:
    """Return what walks remember before the first one."""
    n_trees = len(nodes.tree_class)
    most = 1
    for tree in range(n_trees):
        most = max(most, nodes.tree_first[tree + 1] - nodes.tree_first[tree])
    return Walk(
        np.full(n_features, -1, np.int64),
        np.full(n_trees, -1, np.int64),
        np.empty(most, np.int64),
        np.empty(most),
    )


@step
def _holds(
    kind: int,
    feature: int,
    threshold: int,
    numeric: npt.NDArray[np.uint8],
    row: int,
    last_row_with: npt.NDArray[np.int64],
) -> bool:
    """Return whether a row holds a test of a value that it has."""
    if kind == CATEGORICAL:
        return bool(last_row_with[feature] == row)
    return bool(numeric[row, feature] > threshold)


@step
def _by_surrogates(
    tests: SurrogateTests,
    node: int,
    majority: bool,
    numeric: npt.NDArray[np.uint8],
    missing: npt.NDArray[np.bool_],
    row: int,
    last_row_with: npt.NDArray[np.int64],
) -> bool:
    """Return whether a row goes right by the first surrogate with an answer, or the majority."""
    for s in range(tests.first[node], tests.first[node + 1]):
        if not missing[row, tests.column[s]]:
            kind, feature, threshold = tests.kind[s], tests.feature[s], tests.threshold[s]
            holds = _holds(kind, feature, threshold, numeric, row, last_row_with)
            return bool(tests.flip[s] != holds)
    return majority


@step
def _tree_value(
    trees: WalkedTrees,
    tree: int,
    numeric: npt.NDArray[np.uint8],
    missing: npt.NDArray[np.bool_],
    row: int,
    labels: npt.NDArray[np.int32],
    walk: Walk,
) -> float:
    """Return the value of a tree for a row after these previous labels."""
    nodes = trees.nodes
    kind, feature, threshold = nodes.kind, nodes.feature, nodes.threshold
    first = nodes.tree_first[tree]
    total = 0.0
    walk.waiting[0] = first
    walk.weights[0] = 1.0
    n = 1
    while n:
        n -= 1
        node = walk.waiting[n]
        weight = walk.weights[n]
        while kind[node] != LEAF:
            left, right = first + nodes.left[node], first + nodes.right[node]
            column = trees.column[node]
            if column < 0:
                holds = labels[feature[node]] == threshold[node]
            elif not missing[row, column]:
                holds = _holds(
                    kind[node], feature[node], threshold[node], numeric, row, walk.last_row_with
                )
            elif trees.averages:
                share = np.float64(trees.right_share[node])
                holds = share == 1.0
                if 0.0 < share < 1.0:  # both ways: the right one has to wait
                    walk.waiting[n] = right
                    walk.weights[n] = weight * share
                    n += 1
                    weight *= 1.0 - share
            else:
                majority = trees.right_share[node] > 0.5
                holds = _by_surrogates(
                    trees.surrogates, node, majority, numeric, missing, row, walk.last_row_with
                )
            node = right if holds else left
        total += weight * nodes.value[node]
    return total


@step
def _note_row(
    data: ScoredRows, missing: npt.NDArray[np.bool_], row: int, trees: WalkedTrees, walk: Walk
) -> None:
    """Remember the features of a row, and which trees ask for a value that it lacks."""
    note_features(data.feature_ids, row, walk.last_row_with)
    for column in range(missing.shape[1]):
        if missing[row, column]:
            for i in range(trees.column_first[column], trees.column_first[column + 1]):
                walk.last_row_of[trees.column_tree[i]] = row


@kernel
def add_scores_of_incomplete_rows(
    data: ScoredRows,
    missing: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int64],
    contexts: Contexts,
    postings: Postings,
    by_postings: bool,
    trees: WalkedTrees,
    scores: npt.NDArray[np.float32],
) -> None:
    """Add the trees' values of these rows to scores (n_rows, n_contexts, n_labels).

    missing: (n_rows, n_columns + n_numeric). by_postings: the postings are of these very trees, in
    this order; only trees that ask for a missing value are walked. Otherwise all of them are.
    """
    n_trees = len(trees.nodes.tree_class)
    n_plain = n_trees - trees.tests_context.sum()
    walk = _room_for_walk(trees.nodes, len(postings.dense_of))
    masks = np.empty(n_trees if by_postings else 0, np.uint64)
    dense = np.empty(data.feature_ids.shape[1], np.int64)
    for row in rows:
        _note_row(data, missing, row, trees, walk)
        if by_postings:
            for tree in range(n_trees):
                masks[tree] = ALL_LEAVES
            apply_bins(data.numeric, row, postings, masks)
            apply_features(data.feature_ids, row, postings, dense, masks)
        first = contexts.first[data.lags[row]]
        n_valid = contexts.first[data.lags[row] + 1] - first
        for tree in range(n_trees):
            by_walk = walk.last_row_of[tree] == row or not by_postings
            units = np.int64(0)
            for c in range(n_valid):
                if c == 0 or trees.tests_context[tree]:
                    if by_walk:
                        labels = contexts.labels[first + c]
                        value = _tree_value(trees, tree, data.numeric, missing, row, labels, walk)
                        units = np.int64(np.rint(value * GRID))
                    else:
                        mask = masks[tree]
                        if trees.tests_context[tree]:
                            mask &= postings.context_mask[tree - n_plain, first + c]
                        leaf = postings.leaf_first[tree] + lowest_bit(mask)
                        units = np.int64(postings.leaf_units[leaf])
                scores[row, c, trees.nodes.tree_class[tree]] += np.float32(units / GRID)
