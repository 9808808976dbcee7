"""Scores under trees of 65 to 256 leaves, by posting lists whose masks have several words.

The argument is that of `posting_lists`. It matters more here: trees of indicator tests grow to
the left, and a walk to a leaf passes dozens of tests that do not hold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.intrinsics import lowest_bit
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.next_row import NOWHERE, next_row
from spacy_treecrf.engine.trees.contexts import Contexts
from spacy_treecrf.engine.trees.forest import Forest, TreeNodes
from spacy_treecrf.engine.trees.posting_lists import ALL_LEAVES, ScoredRows
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, CONTEXT, LEAF, NUMERIC

N_WORDS = 4  # of 64 bits, a bit for each leaf
MAX_WIDE_LEAVES = 64 * N_WORDS
# A tree has a mask for every context; where these are very many, walks take less memory.
MAX_WIDE_MASKS = 1 << 21  # of 32 bytes


class WidePostings(NamedTuple):
    """Trees of at most 256 leaves, indexed by the tests in them. A mask has N_WORDS words."""

    tree_class: npt.NDArray[np.int32]  # shape: (n_trees,)
    leaf_first: npt.NDArray[np.int64]  # shape: (n_trees + 1,)
    leaf_value: npt.NDArray[np.float32]  # values of all leaves, left to right
    feature_first: npt.NDArray[np.int32]  # shape: (n_features + 1,)
    feature_tree: npt.NDArray[np.int32]
    feature_mask: npt.NDArray[np.uint64]  # shape: (n_tests of features, N_WORDS)
    numeric_first: npt.NDArray[np.int32]  # shape: (n_numeric + 1,)
    numeric_threshold: npt.NDArray[np.int32]
    numeric_tree: npt.NDArray[np.int32]
    numeric_mask: npt.NDArray[np.uint64]  # shape: (n_tests of bins, N_WORDS)
    tests_context: npt.NDArray[np.bool_]  # shape: (n_trees,)
    context_mask: npt.NDArray[np.uint64]  # shape: (n_trees, n_contexts, N_WORDS)


@step
def _clear_leaves(mask: npt.NDArray[np.uint64], first: int, last: int) -> None:
    """Clear the bits first, ..., last - 1. mask: (N_WORDS,)"""
    one = np.uint64(1)
    for word in range(N_WORDS):
        low, high = max(0, first - 64 * word), min(64, last - 64 * word)
        if low < high:
            n = high - low
            block = ALL_LEAVES if n == 64 else (one << np.uint64(n)) - one
            mask[word] &= ~(block << np.uint64(low))


@kernel
def _number_wide_leaves(
    nodes: TreeNodes,
    leaf_first: npt.NDArray[np.int64],
    leaf_value: npt.NDArray[np.float32],
    mask: npt.NDArray[np.uint64],
) -> None:
    """Write the values of each tree's leaves from left to right, and the mask of each node.

    mask: (n_nodes, N_WORDS), all leaves before; a test's clears the leaves of its left subtree.
    """
    kind, left, right = nodes.kind, nodes.left, nodes.right
    for tree in range(len(nodes.tree_class)):
        first = nodes.tree_first[tree]
        n_nodes = nodes.tree_first[tree + 1] - first
        n_below = np.ones(n_nodes, np.int64)  # leaves
        for node in range(n_nodes - 1, -1, -1):  # children follow their parents
            if kind[first + node] != LEAF:
                n_below[node] = n_below[left[first + node]] + n_below[right[first + node]]
        leaf = np.zeros(n_nodes, np.int64)  # the leftmost leaf below each node
        for node in range(n_nodes):
            here = first + node
            if kind[here] == LEAF:
                leaf_value[leaf_first[tree] + leaf[node]] = nodes.value[here]
            else:
                middle = leaf[node] + n_below[left[here]]
                leaf[left[here]] = leaf[node]
                leaf[right[here]] = middle
                _clear_leaves(mask[here], leaf[node], middle)


def build_wide_postings(
    forest: Forest,
    n_features: int,
    n_numeric: int,
    context_labels: npt.NDArray[np.int32],
) -> WidePostings:
    """Index the trees of a forest, all of which have at most MAX_WIDE_LEAVES leaves."""
    kind, feature, threshold = forest.kind, forest.feature, forest.threshold
    sizes = np.diff(forest.tree_first)
    leaf_first = np.concatenate([[0], np.cumsum((sizes + 1) // 2)]).astype(np.int64)
    leaf_value = np.zeros(int(leaf_first[-1]), np.float32)
    mask = np.full((len(kind), N_WORDS), ALL_LEAVES, np.uint64)
    _number_wide_leaves(forest.nodes, leaf_first, leaf_value, mask)
    tree_of = np.repeat(np.arange(forest.n_trees, dtype=np.int32), sizes)

    tests = np.flatnonzero(kind == CATEGORICAL)
    tests = tests[np.argsort(feature[tests], kind="stable")]
    bins = np.flatnonzero(kind == NUMERIC)
    bins = bins[np.lexsort((threshold[bins], feature[bins]))]
    context_mask = np.full((forest.n_trees, len(context_labels), N_WORDS), ALL_LEAVES, np.uint64)
    of_labels = np.flatnonzero(kind == CONTEXT)
    for node in of_labels:
        holds = context_labels[:, feature[node]] == threshold[node]
        context_mask[tree_of[node], holds] &= mask[node]
    tests_context = np.zeros(forest.n_trees, np.bool_)
    tests_context[tree_of[of_labels]] = True
    return WidePostings(
        tree_class=forest.tree_class,
        leaf_first=leaf_first,
        leaf_value=leaf_value,
        feature_first=np.searchsorted(feature[tests], np.arange(n_features + 1)).astype(np.int32),
        feature_tree=tree_of[tests],
        feature_mask=mask[tests],
        numeric_first=np.searchsorted(feature[bins], np.arange(n_numeric + 1)).astype(np.int32),
        numeric_threshold=threshold[bins],
        numeric_tree=tree_of[bins],
        numeric_mask=mask[bins],
        tests_context=tests_context,
        context_mask=context_mask,
    )


@step
def _apply_tests(
    data: ScoredRows, row: int, postings: WidePostings, masks: npt.NDArray[np.uint64]
) -> None:
    """Clear from each tree's mask the leaves that the row's features and bins rule out."""
    feature_ids = data.feature_ids
    n_features = len(postings.feature_first) - 1
    at = np.int64(row)
    while at != NOWHERE:
        for slot in range(feature_ids.shape[1]):
            feature = feature_ids[at, slot]
            if 0 <= feature < n_features:
                for p in range(
                    postings.feature_first[feature], postings.feature_first[feature + 1]
                ):
                    for word in range(N_WORDS):
                        masks[postings.feature_tree[p], word] &= postings.feature_mask[p, word]
        at = next_row(feature_ids, at)
    for column in range(data.numeric.shape[1]):
        for p in range(postings.numeric_first[column], postings.numeric_first[column + 1]):
            if postings.numeric_threshold[p] >= data.numeric[row, column]:  # they rise
                break
            for word in range(N_WORDS):
                masks[postings.numeric_tree[p], word] &= postings.numeric_mask[p, word]


@step
def _first_leaf(mask: npt.NDArray[np.uint64], more: npt.NDArray[np.uint64]) -> np.uint64:
    """Return the lowest bit that is set in both masks (N_WORDS,), of which there is one."""
    word = 0
    while mask[word] & more[word] == 0:
        word += 1
    leaf: np.uint64 = np.uint64(64 * word) + lowest_bit(mask[word] & more[word])
    return leaf


@kernel
def add_wide_tree_scores(
    data: ScoredRows,
    first_row: int,
    last_row: int,
    contexts: Contexts,
    postings: WidePostings,
    scores: npt.NDArray[np.float32],
) -> None:
    """Add the trees' values of these rows to scores (n_rows, n_contexts, n_labels)."""
    n_trees = len(postings.tree_class)
    masks = np.empty((n_trees, N_WORDS), np.uint64)
    for row in range(first_row, last_row):
        for tree in range(n_trees):
            for word in range(N_WORDS):
                masks[tree, word] = ALL_LEAVES
        _apply_tests(data, row, postings, masks)
        lag = data.lags[row]
        first = contexts.first[lag]
        n_contexts = contexts.first[lag + 1] - first
        for tree in range(n_trees):
            k = postings.tree_class[tree]
            first_leaf = postings.leaf_first[tree]
            if postings.tests_context[tree]:
                for c in range(n_contexts):
                    leaf = _first_leaf(masks[tree], postings.context_mask[tree, first + c])
                    scores[row, c, k] += postings.leaf_value[first_leaf + np.int64(leaf)]
            else:
                leaf = _first_leaf(masks[tree], masks[tree])
                value = postings.leaf_value[first_leaf + np.int64(leaf)]
                for c in range(n_contexts):
                    scores[row, c, k] += value
