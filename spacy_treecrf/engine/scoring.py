"""Scores of rows under many trees, by posting lists (QuickScorer's argument).

"Test is false" is always the left child, so a row that no test of a tree holds for falls into
its leftmost leaf. Only the tests that *hold* matter: each clears the leaves of its left subtree
from the tree's bit mask, and the lowest bit that remains is the row's leaf.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.intrinsics import lowest_bit
from spacy_treecrf.engine.splitting import CATEGORICAL, CONTEXT, LEAF, NUMERIC

MAX_MASK_LEAVES = 64
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Postings(NamedTuple):
    """Trees of at most 64 leaves, indexed by the tests in them."""

    tree_class: npt.NDArray[np.int32]  # shape: (n_trees,)
    leaf_first: npt.NDArray[np.int64]  # shape: (n_trees + 1,)
    leaf_value: npt.NDArray[np.float32]  # leaves of all trees, left to right
    constant: npt.NDArray[np.float32]  # shape: (n_labels,), sum of leftmost leaves per class
    feature_first: npt.NDArray[np.int32]  # shape: (n_features + 1,)
    feature_tree: npt.NDArray[np.int32]
    feature_mask: npt.NDArray[np.uint64]
    numeric_first: npt.NDArray[np.int32]  # shape: (n_numeric + 1,)
    numeric_threshold: npt.NDArray[np.int32]  # rising within a column
    numeric_tree: npt.NDArray[np.int32]
    numeric_mask: npt.NDArray[np.uint64]
    context_tree: npt.NDArray[np.int32]  # trees that test previous labels
    context_mask: npt.NDArray[np.uint64]  # shape: (len(context_tree), n_contexts)


@njit(nogil=True, cache=True)
def _tests_and_masks(
    tree_first: npt.NDArray[np.int64],
    kind: npt.NDArray[np.uint8],
    left: npt.NDArray[np.int32],
    right: npt.NDArray[np.int32],
    value: npt.NDArray[np.float32],
    leaf_first: npt.NDArray[np.int64],
    leaf_value: npt.NDArray[np.float32],
    mask: npt.NDArray[np.uint64],
) -> None:
    """Number the leaves of each tree from left to right; mask[node] clears its left subtree."""
    one = np.uint64(1)
    for tree in range(len(tree_first) - 1):
        first = tree_first[tree]
        n_nodes = tree_first[tree + 1] - first
        n_leaves_below = np.zeros(n_nodes, np.int64)
        for node in range(n_nodes - 1, -1, -1):  # children follow their parents
            if kind[first + node] == LEAF:
                n_leaves_below[node] = 1
            else:
                n_leaves_below[node] = (
                    n_leaves_below[left[first + node]] + n_leaves_below[right[first + node]]
                )
        leaf = np.zeros(n_nodes, np.int64)  # the leftmost leaf below each node
        for node in range(n_nodes):
            here = first + node
            if kind[here] == LEAF:
                leaf_value[leaf_first[tree] + leaf[node]] = value[here]
            else:
                n_left = n_leaves_below[left[here]]
                leaf[left[here]] = leaf[node]
                leaf[right[here]] = leaf[node] + n_left
                if n_leaves_below[0] <= MAX_MASK_LEAVES:
                    block = _ALL if n_left >= 64 else (one << np.uint64(n_left)) - one
                    mask[here] = ~(block << np.uint64(leaf[node]))


def build_postings(
    tree_first: npt.NDArray[np.int64],
    tree_class: npt.NDArray[np.int32],
    kind: npt.NDArray[np.uint8],
    feature: npt.NDArray[np.int32],
    threshold: npt.NDArray[np.int32],
    left: npt.NDArray[np.int32],
    right: npt.NDArray[np.int32],
    value: npt.NDArray[np.float32],
    n_labels: int,
    n_features: int,
    n_numeric: int,
    context_labels: npt.NDArray[np.int32],
) -> Postings:
    """Index trees given as flat node arrays (children as indices within their tree)."""
    n_trees = len(tree_class)
    sizes = np.diff(tree_first)
    leaf_first = np.concatenate([[0], np.cumsum((sizes + 1) // 2)]).astype(np.int64)
    leaf_value = np.zeros(int(leaf_first[-1]), np.float32)
    mask = np.zeros(len(kind), np.uint64)
    _tests_and_masks(tree_first, kind, left, right, value, leaf_first, leaf_value, mask)
    tree_of = np.repeat(np.arange(n_trees, dtype=np.int32), sizes)
    constant = np.zeros(n_labels, np.float32)
    if n_trees:
        np.add.at(constant, tree_class, leaf_value[leaf_first[:-1]])

    tests = np.flatnonzero(kind == CATEGORICAL)
    tests = tests[np.argsort(feature[tests], kind="stable")]
    bins = np.flatnonzero(kind == NUMERIC)
    bins = bins[np.lexsort((threshold[bins], feature[bins]))]
    context_tree = np.unique(tree_of[kind == CONTEXT]).astype(np.int32)
    context_mask = np.full((len(context_tree), len(context_labels)), _ALL, np.uint64)
    where = np.searchsorted(context_tree, tree_of)
    for node in np.flatnonzero(kind == CONTEXT):
        holds = context_labels[:, feature[node]] == threshold[node]
        context_mask[where[node], holds] &= mask[node]
    return Postings(
        tree_class=tree_class,
        leaf_first=leaf_first,
        leaf_value=leaf_value,
        constant=constant,
        feature_first=np.searchsorted(feature[tests], np.arange(n_features + 1)).astype(np.int32),
        feature_tree=tree_of[tests],
        feature_mask=mask[tests],
        numeric_first=np.searchsorted(feature[bins], np.arange(n_numeric + 1)).astype(np.int32),
        numeric_threshold=threshold[bins],
        numeric_tree=tree_of[bins],
        numeric_mask=mask[bins],
        context_tree=context_tree,
        context_mask=context_mask,
    )


@njit(nogil=True, cache=True)
def add_tree_scores(
    codes: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    first_row: int,
    last_row: int,
    lags: npt.NDArray[np.uint8],
    context_first: npt.NDArray[np.int64],
    n_labels: int,
    postings: Postings,
    scores: npt.NDArray[np.float32],
) -> None:
    """Add the trees' values of these rows to scores (n_rows, n_contexts, n_labels)."""
    n_trees = len(postings.tree_class)
    n_slots = codes.shape[1]
    n_features = len(postings.feature_first) - 1
    masks = np.full(n_trees, _ALL, np.uint64)
    touched = np.empty(n_trees + 1, np.int32)
    node_sum = np.empty(n_labels, np.float32)
    context_sensitive = np.zeros(n_trees, np.bool_)
    # A tree's leftmost value is part of the constant: store the others relative to it.
    relative = postings.leaf_value.copy()
    constant = postings.constant.copy()
    for tree in range(n_trees):
        base = postings.leaf_value[postings.leaf_first[tree]]
        for leaf in range(postings.leaf_first[tree], postings.leaf_first[tree + 1]):
            relative[leaf] -= base
    for i in range(len(postings.context_tree)):
        tree = postings.context_tree[i]
        context_sensitive[tree] = True
        constant[postings.tree_class[tree]] -= postings.leaf_value[postings.leaf_first[tree]]
    for row in range(first_row, last_row):
        n_touched = 0
        for slot in range(n_slots):
            feature = codes[row, slot]
            if 0 <= feature < n_features:
                for p in range(
                    postings.feature_first[feature], postings.feature_first[feature + 1]
                ):
                    tree = postings.feature_tree[p]
                    touched[n_touched] = tree
                    n_touched += masks[tree] == _ALL
                    masks[tree] &= postings.feature_mask[p]
        for column in range(numeric.shape[1]):
            bin_ = numeric[row, column]
            for p in range(postings.numeric_first[column], postings.numeric_first[column + 1]):
                if postings.numeric_threshold[p] >= bin_:
                    break
                tree = postings.numeric_tree[p]
                touched[n_touched] = tree
                n_touched += masks[tree] == _ALL
                masks[tree] &= postings.numeric_mask[p]
        node_sum[:] = constant
        n_valid = n_labels ** np.int64(lags[row])
        for i in range(len(postings.context_tree)):
            tree = postings.context_tree[i]
            base = postings.leaf_first[tree]
            for c in range(n_valid):
                context = context_first[lags[row]] + c
                leaf = lowest_bit(masks[tree] & postings.context_mask[i, context])
                scores[row, c, postings.tree_class[tree]] += postings.leaf_value[base + leaf]
        for i in range(n_touched):
            tree = touched[i]
            if not context_sensitive[tree]:
                leaf = postings.leaf_first[tree] + lowest_bit(masks[tree])
                node_sum[postings.tree_class[tree]] += relative[leaf]
            masks[tree] = _ALL
        for c in range(n_valid):
            for k in range(n_labels):
                scores[row, c, k] += node_sum[k]


@njit(nogil=True, cache=True)
def add_tree_scores_by_traversal(
    codes: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    first_row: int,
    last_row: int,
    lags: npt.NDArray[np.uint8],
    context_first: npt.NDArray[np.int64],
    context_labels: npt.NDArray[np.int32],
    n_features: int,
    tree_first: npt.NDArray[np.int64],
    tree_class: npt.NDArray[np.int32],
    kind: npt.NDArray[np.uint8],
    feature: npt.NDArray[np.int32],
    threshold: npt.NDArray[np.int32],
    left: npt.NDArray[np.int32],
    right: npt.NDArray[np.int32],
    value: npt.NDArray[np.float32],
    scores: npt.NDArray[np.float32],
) -> None:
    """The same sums as `add_tree_scores`, node by node; for trees of more than 64 leaves."""
    last_row_with = np.full(n_features, -1, np.int64)
    for row in range(first_row, last_row):
        for slot in range(codes.shape[1]):
            if 0 <= codes[row, slot] < n_features:
                last_row_with[codes[row, slot]] = row
        first = context_first[lags[row]]
        for c in range(context_first[lags[row] + 1] - first):
            for tree in range(len(tree_class)):
                node = tree_first[tree]
                while kind[node] != LEAF:
                    test = feature[node]
                    if kind[node] == CATEGORICAL:
                        holds = last_row_with[test] == row
                    elif kind[node] == NUMERIC:
                        holds = numeric[row, test] > threshold[node]
                    else:
                        holds = context_labels[first + c, test] == threshold[node]
                    node = tree_first[tree] + (right[node] if holds else left[node])
                scores[row, c, tree_class[tree]] += value[node]
