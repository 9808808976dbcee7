"""Scores of rows with missing values: posting lists, and a walk in the trees that ask for them.

A walk takes both ways at a test without an answer, and the tree's value is the average of the
leaves it reaches (Hao 2009, section 4.2); or it asks the surrogates (section 4.3). Values are
rounded to the grid tree by tree, as the sums of all trees must not depend on their order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.detours import Detours
from spacy_treecrf.engine.fixed_grid import GRID
from spacy_treecrf.engine.forest import Forest
from spacy_treecrf.engine.intrinsics import lowest_bit
from spacy_treecrf.engine.missing import Incomplete
from spacy_treecrf.engine.scoring import ALL_LEAVES, Postings, apply_bins, apply_features
from spacy_treecrf.engine.splitting import CATEGORICAL, CONTEXT, LEAF


class WalkedTrees(NamedTuple):
    """Trees as they are walked, and which of them ask for a column."""

    tree_first: npt.NDArray[np.int64]
    tree_class: npt.NDArray[np.int32]
    tests_context: npt.NDArray[np.bool_]  # shape: (n_trees,)
    kind: npt.NDArray[np.uint8]
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    column: npt.NDArray[np.int32]  # shape: (n_nodes,), -1 for leaves and contexts
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]
    right_share: npt.NDArray[np.float32]
    averages: bool  # else surrogates decide
    surrogate_first: npt.NDArray[np.int64]
    surrogate_kind: npt.NDArray[np.uint8]
    surrogate_feature: npt.NDArray[np.int32]
    surrogate_threshold: npt.NDArray[np.int32]
    surrogate_column: npt.NDArray[np.int32]
    surrogate_flip: npt.NDArray[np.bool_]
    column_first: npt.NDArray[np.int64]  # shape: (n_columns + n_numeric + 1,)
    column_tree: npt.NDArray[np.int32]  # trees with a test of the column


def walked_trees(forest: Forest, incomplete: Incomplete, n_numeric: int) -> WalkedTrees:
    detours = forest.detours or Detours.none(len(forest.kind))
    columns = incomplete.columns
    n_trees = forest.n_trees
    tree_of = np.repeat(np.arange(n_trees), np.diff(forest.tree_first))
    tests_context = np.zeros(n_trees, np.bool_)
    tests_context[tree_of[forest.kind == CONTEXT]] = True

    def column_of(
        kind: npt.NDArray[np.uint8], feature: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        column = np.where((kind == LEAF) | (kind == CONTEXT), -1, columns.n_columns + feature)
        categorical = kind == CATEGORICAL
        column[categorical] = columns.column_of[feature[categorical]]
        return column.astype(np.int32)

    column = column_of(forest.kind, forest.feature)
    asks = np.unique(np.stack([column, tree_of])[:, column >= 0], axis=1)
    first = np.searchsorted(asks[0], np.arange(columns.n_columns + n_numeric + 1))
    return WalkedTrees(
        forest.tree_first,
        forest.tree_class,
        tests_context,
        forest.kind,
        forest.feature,
        forest.threshold,
        column,
        forest.left,
        forest.right,
        forest.value,
        detours.right_share,
        incomplete.averages,
        detours.first,
        detours.kind,
        detours.feature,
        detours.threshold,
        column_of(detours.kind, detours.feature),
        detours.flip,
        first.astype(np.int64),
        asks[1].astype(np.int32),
    )


@njit(nogil=True, cache=True)
def _holds(
    kind: int,
    feature: int,
    threshold: int,
    numeric: npt.NDArray[np.uint8],
    row: int,
    last_row_with: npt.NDArray[np.int64],
) -> bool:
    """Whether a row holds a test of a value that it has."""
    if kind == CATEGORICAL:
        return bool(last_row_with[feature] == row)
    return bool(numeric[row, feature] > threshold)


@njit(nogil=True, cache=True)
def _tree_value(
    trees: WalkedTrees,
    tree: int,
    numeric: npt.NDArray[np.uint8],
    missing: npt.NDArray[np.bool_],
    row: int,
    last_row_with: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int32],
    waiting: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
) -> float:
    """The value of a tree for a row after these previous labels.

    last_row_with: (n_features,) of each feature the last row that has it.
    waiting, weights: room for the nodes that are still to be visited, one for each leaf.
    """
    first = trees.tree_first[tree]
    total = 0.0
    waiting[0] = first
    weights[0] = 1.0
    n = 1
    while n:
        n -= 1
        node = waiting[n]
        weight = weights[n]
        while trees.kind[node] != LEAF:
            left = first + trees.left[node]
            right = first + trees.right[node]
            column = trees.column[node]
            if column < 0:
                holds = labels[trees.feature[node]] == trees.threshold[node]
            elif not missing[row, column]:
                holds = _holds(
                    trees.kind[node],
                    trees.feature[node],
                    trees.threshold[node],
                    numeric,
                    row,
                    last_row_with,
                )
            elif trees.averages:
                share = np.float64(trees.right_share[node])
                if 0.0 < share < 1.0:
                    waiting[n] = right
                    weights[n] = weight * share
                    n += 1
                    weight *= 1.0 - share
                    holds = False
                else:
                    holds = share == 1.0
            else:
                holds = trees.right_share[node] > 0.5
                for s in range(trees.surrogate_first[node], trees.surrogate_first[node + 1]):
                    if not missing[row, trees.surrogate_column[s]]:
                        holds = trees.surrogate_flip[s] != _holds(
                            trees.surrogate_kind[s],
                            trees.surrogate_feature[s],
                            trees.surrogate_threshold[s],
                            numeric,
                            row,
                            last_row_with,
                        )
                        break
            node = right if holds else left
        total += weight * trees.value[node]
    return total


@njit(nogil=True, cache=True)
def add_scores_of_incomplete_rows(
    codes: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    missing: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int64],
    lags: npt.NDArray[np.uint8],
    context_first: npt.NDArray[np.int64],
    context_labels: npt.NDArray[np.int32],
    n_features: int,
    postings: Postings,
    by_postings: bool,
    trees: WalkedTrees,
    scores: npt.NDArray[np.float32],
) -> None:
    """Add the trees' values of these rows to scores (n_rows, n_contexts, n_labels).

    missing: (n_rows, n_columns + n_numeric). by_postings: the postings are of these very trees, in
    this order; only trees that ask for a missing value are walked. Otherwise all of them are.
    """
    n_trees = len(trees.tree_class)
    n_plain = n_trees - trees.tests_context.sum()
    most = 1
    for tree in range(n_trees):
        most = max(most, trees.tree_first[tree + 1] - trees.tree_first[tree])
    waiting = np.empty(most, np.int64)
    weights = np.empty(most)
    last_row_with = np.full(n_features, -1, np.int64)
    walked = np.full(n_trees, -1, np.int64)  # the last row for which a tree is walked
    masks = np.empty(n_trees if by_postings else 0, np.uint64)
    for row in rows:
        for slot in range(codes.shape[1]):
            if 0 <= codes[row, slot] < n_features:
                last_row_with[codes[row, slot]] = row
        for column in range(missing.shape[1]):
            if missing[row, column]:
                for i in range(trees.column_first[column], trees.column_first[column + 1]):
                    walked[trees.column_tree[i]] = row
        if by_postings:
            for tree in range(n_trees):
                masks[tree] = ALL_LEAVES
            apply_bins(numeric, row, postings, masks)
            apply_features(codes, row, postings, masks)
        first = context_first[lags[row]]
        n_valid = context_first[lags[row] + 1] - first
        for tree in range(n_trees):
            label = trees.tree_class[tree]
            by_walk = walked[tree] == row or not by_postings
            units = np.int64(0)
            for c in range(n_valid):
                if c == 0 or trees.tests_context[tree]:
                    if by_walk:
                        value = _tree_value(
                            trees,
                            tree,
                            numeric,
                            missing,
                            row,
                            last_row_with,
                            context_labels[first + c],
                            waiting,
                            weights,
                        )
                        units = np.int64(np.rint(value * GRID))
                    else:
                        mask = masks[tree]
                        if trees.tests_context[tree]:
                            mask &= postings.context_mask[tree - n_plain, first + c]
                        leaf = postings.leaf_first[tree] + lowest_bit(mask)
                        units = np.int64(postings.leaf_units[leaf])
                scores[row, c, label] += np.float32(units / GRID)
