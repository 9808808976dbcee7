"""Scores of rows under many trees, by posting lists (QuickScorer's argument).

"Test is false" is always the left child, so a row that no test of a tree holds for falls into
its leftmost leaf. Only the tests that *hold* matter: each clears the leaves of its left subtree
from the tree's bit mask, and the lowest bit that remains is the row's leaf. A feature that many
trees test has its masks for all trees in one row, which are applied as vectors. Tests of bins, of
which half hold, are tried one by one instead, each for several rows at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.fixed_grid import GRID
from spacy_treecrf.engine.intrinsics import (
    LANES,
    WORDS_AT_ONCE,
    and_rows,
    lowest_bit,
    masks_of_lanes,
)
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.next_row import NOWHERE, next_row
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, CONTEXT, LEAF, NUMERIC

# Trees that fit: one bit for each leaf, and values whose grid steps fit into 32 bits.
MAX_MASK_LEAVES = 64
MAX_MASK_VALUE = 2.0**14
ALL_LEAVES = np.uint64(0xFFFFFFFFFFFFFFFF)
# A feature tested in more than one of so many trees is applied to all trees at once.
DENSE_SHARE = 8
# Rows that are scored together, tree by tree, so that a tree's leaves are in the nearest cache.
ROWS_AT_ONCE = 32


class ScoredRows(NamedTuple):
    """The columns of rows that are scored, and how many previous labels their contexts hold."""

    feature_ids: npt.NDArray[np.int32]  # shape: (n_rows, n_slots)
    numeric: npt.NDArray[np.uint8]  # shape: (n_rows, n_numeric)
    lags: npt.NDArray[np.uint8]  # shape: (n_rows,)


class Postings(NamedTuple):
    """Trees of at most 64 leaves, indexed by the tests in them.

    Trees are sorted: first those that test no previous label, by class, then the others, by how
    many tests of previous labels they have.
    """

    tree_class: npt.NDArray[np.int32]  # shape: (n_trees,)
    leaf_first: npt.NDArray[np.uint64]  # shape: (n_trees + 1,)
    leaf_units: npt.NDArray[np.int32]  # values of all leaves, left to right, in steps of the grid
    class_first: npt.NDArray[np.int64]  # shape: (n_labels + 1,), of the trees without contexts
    dense_of: npt.NDArray[np.int32]  # shape: (n_features,), row of `dense`, or -1
    dense: npt.NDArray[np.uint64]  # shape: (n_dense, n_trees)
    feature_first: npt.NDArray[np.int32]  # shape: (n_features + 1,), of the other features
    feature_tree: npt.NDArray[np.uint32]
    feature_mask: npt.NDArray[np.uint64]
    numeric_first: npt.NDArray[np.int32]  # shape: (n_trees + 1,), of the tests of bins
    numeric_column: npt.NDArray[np.int32]
    numeric_threshold: npt.NDArray[np.uint8]
    numeric_mask: npt.NDArray[np.uint64]
    context_mask: npt.NDArray[np.uint64]  # shape: (n_trees with contexts, n_contexts)
    # The same without contexts in which no test of the tree holds: most are such.
    held_first: npt.NDArray[np.int32]  # shape: (n_trees with contexts + 1,)
    held_context: npt.NDArray[np.int32]  # rising within a tree
    held_mask: npt.NDArray[np.uint64]
    # What trees with contexts give to a row for which no other test of theirs holds.
    held_units: npt.NDArray[np.int32]  # beside what the tree gives without a context
    usual_units: npt.NDArray[np.int64]  # shape: (n_labels,), without a context
    context_units: npt.NDArray[np.int64]  # shape: (n_contexts, n_labels), beside it


def _number_leaves(
    forest: Forest, leaf_first: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint64]]:
    """Return the values of each tree's leaves from left to right, and the mask of each node.

    The mask of a node clears the leaves of its left subtree. Trees have 64 leaves at most.
    """
    is_leaf = forest.kind == LEAF
    tree_of = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_first))
    root_of = forest.tree_first[tree_of]
    left, right = root_of + forest.left, root_of + forest.right
    levels = []  # the nodes with children, level by level in all trees at once
    nodes = forest.tree_first[:-1]
    while len(nodes := nodes[~is_leaf[nodes]]):
        levels.append(nodes)
        nodes = np.concatenate([left[nodes], right[nodes]])
    n_leaves_below = is_leaf.astype(np.uint64)
    for nodes in reversed(levels):
        n_leaves_below[nodes] = n_leaves_below[left[nodes]] + n_leaves_below[right[nodes]]
    leaf = np.zeros(len(is_leaf), np.uint64)  # the leftmost leaf below each node
    mask = np.zeros(len(is_leaf), np.uint64)
    one = np.uint64(1)
    for nodes in levels:
        n_left = n_leaves_below[left[nodes]]
        leaf[left[nodes]] = leaf[nodes]
        leaf[right[nodes]] = leaf[nodes] + n_left
        mask[nodes] = ~(((one << n_left) - one) << leaf[nodes])
    leaf_value = np.zeros(int(leaf_first[-1]), np.float32)
    place = leaf_first[tree_of[is_leaf]] + leaf[is_leaf].astype(np.int64)
    leaf_value[place] = forest.value[is_leaf]
    return leaf_value, mask


def posting_order(forest: Forest) -> npt.NDArray[np.int64]:
    """Return the order of trees in postings: by how many tests of labels they have, then class."""
    tree_of = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_first))
    n_tests = np.bincount(tree_of[forest.kind == CONTEXT], minlength=forest.n_trees)
    return np.lexsort((forest.tree_class, n_tests))


def _dense_masks(
    forest: Forest,
    tests: npt.NDArray[np.int64],
    tree_of: npt.NDArray[np.int32],
    mask: npt.NDArray[np.uint64],
    n_features: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint64]]:
    """Return the `dense_of` and `dense` of postings. tests: the nodes that test a feature."""
    feature = forest.feature
    often = np.bincount(feature[tests], minlength=n_features) * DENSE_SHARE > forest.n_trees
    dense_of = np.where(often, np.cumsum(often) - 1, -1).astype(np.int32)
    dense = np.full((int(often.sum()), forest.n_trees), ALL_LEAVES, np.uint64)
    for node in tests[often[feature[tests]]]:
        dense[dense_of[feature[node]], tree_of[node]] &= mask[node]
    return dense_of, dense


def _lowest_bits(masks: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the index of the lowest set bit of each mask, none of which is 0."""
    return np.array([(mask & -mask).bit_length() - 1 for mask in masks.tolist()], np.int64)


# Long: it fills one table after another, each of which the next ones need.
def build_postings(
    forest: Forest,
    n_labels: int,
    n_features: int,
    context_labels: npt.NDArray[np.int32],
) -> Postings:
    """Index the trees of a forest."""
    forest = forest.reordered(posting_order(forest))
    kind, feature, threshold = forest.kind, forest.feature, forest.threshold
    sizes = np.diff(forest.tree_first)
    n_trees = forest.n_trees
    leaf_first = np.concatenate([[0], np.cumsum((sizes + 1) // 2)]).astype(np.int64)
    leaf_value, mask = _number_leaves(forest, leaf_first)
    tree_of = np.repeat(np.arange(n_trees, dtype=np.int32), sizes)

    tests = np.flatnonzero(kind == CATEGORICAL)
    tests = tests[np.argsort(feature[tests], kind="stable")]
    dense_of, dense = _dense_masks(forest, tests, tree_of, mask, n_features)
    tests = tests[dense_of[feature[tests]] < 0]
    bins = np.flatnonzero(kind == NUMERIC)
    n_plain = n_trees - len(np.unique(tree_of[kind == CONTEXT]))
    context_mask = np.full((n_trees - n_plain, len(context_labels)), ALL_LEAVES, np.uint64)
    for node in np.flatnonzero(kind == CONTEXT):
        holds = context_labels[:, feature[node]] == threshold[node]
        context_mask[tree_of[node] - n_plain, holds] &= mask[node]
    held_tree, held_context = np.nonzero(context_mask != ALL_LEAVES)
    # Whole numbers, because integer sums need not wait for each other as float sums do.
    leaf_units = np.rint(leaf_value * np.float64(GRID)).astype(np.int32)
    held_mask = context_mask[held_tree, held_context]
    usual = leaf_units[leaf_first[n_plain:-1]]
    leaves = leaf_first[n_plain + held_tree] + _lowest_bits(held_mask)
    held_units = leaf_units[leaves] - usual[held_tree]
    class_of = forest.tree_class[n_plain:]
    usual_units = np.zeros(n_labels, np.int64)
    np.add.at(usual_units, class_of, usual)
    context_units = np.zeros((len(context_labels), n_labels), np.int64)
    np.add.at(context_units, (held_context, class_of[held_tree]), held_units)
    return Postings(
        tree_class=forest.tree_class,
        leaf_first=leaf_first.astype(np.uint64),
        leaf_units=leaf_units,
        class_first=np.searchsorted(forest.tree_class[:n_plain], np.arange(n_labels + 1)),
        dense_of=dense_of,
        dense=dense,
        feature_first=np.searchsorted(feature[tests], np.arange(n_features + 1)).astype(np.int32),
        feature_tree=tree_of[tests].astype(np.uint32),
        feature_mask=mask[tests],
        numeric_first=np.searchsorted(tree_of[bins], np.arange(n_trees + 1)).astype(np.int32),
        numeric_column=feature[bins],
        numeric_threshold=threshold[bins].astype(np.uint8),
        numeric_mask=mask[bins],
        context_mask=context_mask,
        held_first=np.searchsorted(held_tree, np.arange(len(context_mask) + 1)).astype(np.int32),
        held_context=held_context.astype(np.int32),
        held_mask=held_mask,
        held_units=held_units,
        usual_units=usual_units,
        context_units=context_units,
    )


@step
def apply_features(
    feature_ids: npt.NDArray[np.int32],
    row: int,
    postings: Postings,
    dense: npt.NDArray[np.int64],
    masks: npt.NDArray[np.uint64],
) -> None:
    """Clear from each tree's mask the leaves that the row's features rule out.

    dense: Scratch of the length of a row, for features that are applied together.
    """
    n_features = len(postings.dense_of)
    at = np.int64(row)
    while at != NOWHERE:
        n = 0
        for slot in range(feature_ids.shape[1]):
            feature = feature_ids[at, slot]
            if 0 <= feature < n_features:
                if postings.dense_of[feature] >= 0:
                    dense[n] = postings.dense_of[feature]
                    n += 1
                else:
                    for p in range(
                        postings.feature_first[feature], postings.feature_first[feature + 1]
                    ):
                        masks[postings.feature_tree[p]] &= postings.feature_mask[p]
        _apply_dense(postings, dense, n, masks)
        at = next_row(feature_ids, at)


@kernel(no_cpython_wrapper=True)
def _apply_dense(
    postings: Postings, dense: npt.NDArray[np.int64], n: int, masks: npt.NDArray[np.uint64]
) -> None:
    """Apply the first n features of `dense` to all trees."""
    if len(masks) >= WORDS_AT_ONCE:
        and_rows(postings.dense, dense, n, masks)
        return
    for i in range(n):
        for tree in range(len(masks)):
            masks[tree] &= postings.dense[dense[i], tree]


@step
def apply_bins(
    numeric: npt.NDArray[np.uint8], row: int, postings: Postings, masks: npt.NDArray[np.uint64]
) -> None:
    """Clear from each tree's mask the leaves that the row's bins rule out."""
    for tree in range(len(masks)):
        for p in range(postings.numeric_first[tree], postings.numeric_first[tree + 1]):
            holds = numeric[row, postings.numeric_column[p]] > postings.numeric_threshold[p]
            masks[tree] &= postings.numeric_mask[p] if holds else ALL_LEAVES


@step
def _same_bins(numeric: npt.NDArray[np.uint8], row: int, other: int) -> bool:
    """Return whether two rows agree in all numeric columns."""
    same = True
    for column in range(numeric.shape[1]):
        same &= numeric[row, column] == numeric[other, column]
    return same


@step
def _share_lanes(
    numeric: npt.NDArray[np.uint8],
    rows: npt.NDArray[np.int64],
    start: int,
    lane_of: npt.NDArray[np.int64],
    bins: npt.NDArray[np.uint8],
) -> int:
    """Give the rows from the start on their lanes and write these lanes' bins (n_columns, LANES).

    Rows of the same bins that follow each other share a lane. Returns the first row, or the number
    of all, for which no lane is left.
    """
    lane = -1
    i = start
    while i < len(rows):
        if i == start or not _same_bins(numeric, rows[i], rows[i - 1]):
            lane += 1
            if lane == LANES:
                break
            for column in range(numeric.shape[1]):
                bins[column, lane] = numeric[rows[i], column]
        lane_of[i] = lane
        i += 1
    return i


@step
def _apply_lanes(
    postings: Postings, bins: npt.NDArray[np.uint8], masks: npt.NDArray[np.uint64]
) -> None:
    """Set masks (LANES, n_trees) to the leaves that the bins of each lane leave."""
    found = np.empty(LANES, np.uint64)
    for tree in range(masks.shape[1]):
        masks_of_lanes(
            postings.numeric_column,
            postings.numeric_threshold,
            postings.numeric_mask,
            bins,
            found,
            postings.numeric_first[tree],
            postings.numeric_first[tree + 1],
        )
        for lane in range(LANES):
            masks[lane, tree] = found[lane]


@step
def _add_plain_trees(
    postings: Postings, masks: npt.NDArray[np.uint64], n: int, units: npt.NDArray[np.int64]
) -> None:
    """Set units (n_rows, n_labels) to the sums of trees that test no label, for the first n rows.

    masks: (n_rows, n_trees).
    """
    for k in range(units.shape[1]):
        for i in range(n):
            units[i, k] = 0
        for tree in range(postings.class_first[k], postings.class_first[k + 1]):
            first = postings.leaf_first[tree]
            for i in range(n):
                units[i, k] += postings.leaf_units[first + lowest_bit(masks[i, tree])]


@step
def _add_context_trees(
    postings: Postings,
    n_plain: int,
    first_context: int,
    n_valid: int,
    masks: npt.NDArray[np.uint64],
    units: npt.NDArray[np.int64],
    more: npt.NDArray[np.int64],
) -> None:
    """Add the leaves of the trees that test previous labels, for the contexts of a row.

    units: (n_labels,), what every context gets. more: (n_contexts, n_labels), what some get beside.
    Trees of which no feature or bin rules out a leaf are added all at once.
    """
    n_labels = len(units)
    for k in range(n_labels):
        units[k] += postings.usual_units[k]
        for c in range(n_valid):
            more[c, k] = postings.context_units[first_context + c, k]
    for tree in range(n_plain, len(masks)):
        mask = masks[tree]
        if mask == ALL_LEAVES:
            continue
        k = postings.tree_class[tree]
        first = postings.leaf_first[tree]
        usual = np.int64(postings.leaf_units[first + lowest_bit(mask)])
        units[k] += usual - postings.leaf_units[first]
        for p in range(
            postings.held_first[tree - n_plain], postings.held_first[tree - n_plain + 1]
        ):
            c = postings.held_context[p] - first_context
            if 0 <= c < n_valid:
                leaf = postings.leaf_units[first + lowest_bit(mask & postings.held_mask[p])]
                more[c, k] += np.int64(leaf) - usual - postings.held_units[p]


@kernel
def add_tree_scores(
    data: ScoredRows,
    rows: npt.NDArray[np.int64],
    context_first: npt.NDArray[np.int64],
    n_labels: int,
    postings: Postings,
    scores: npt.NDArray[np.float32],
) -> None:
    """Add the trees' values of these rows to scores (n_rows, n_contexts, n_labels).

    Rows of the same bins that follow each other share the work for them: most numeric columns
    describe the word, and words repeat.
    """
    n_trees = len(postings.tree_class)
    n_plain = postings.class_first[n_labels]
    n_numeric = data.numeric.shape[1]
    masks = np.empty((min(ROWS_AT_ONCE, len(rows)), n_trees), np.uint64)
    bins = np.zeros((n_numeric, LANES), np.uint8)
    lane_of = np.zeros(len(rows), np.int64)
    dense = np.empty(data.feature_ids.shape[1], np.int64)
    bin_masks = np.empty((LANES if n_numeric else 1, n_trees), np.uint64)
    for tree in range(n_trees):
        bin_masks[0, tree] = ALL_LEAVES
    units = np.empty((ROWS_AT_ONCE, n_labels), np.int64)  # of rows, after any context
    more = np.zeros((scores.shape[1], n_labels), np.int64)  # beside it, after some
    shared = len(rows) if n_numeric == 0 else 0  # rows before it have their lanes
    start = 0
    while start < len(rows):
        if start == shared:
            shared = _share_lanes(data.numeric, rows, start, lane_of, bins)
            _apply_lanes(postings, bins, bin_masks)
        n = min(ROWS_AT_ONCE, shared - start)
        for i in range(start, start + n):
            own, of_bins = masks[i - start], bin_masks[lane_of[i]]
            for tree in range(n_trees):  # a slice would take seconds to compile
                own[tree] = of_bins[tree]
            apply_features(data.feature_ids, rows[i], postings, dense, own)
        _add_plain_trees(postings, masks, n, units)
        for i in range(n):
            row = rows[start + i]
            lag = np.int64(data.lags[row])
            n_valid = n_labels**lag
            if n_plain < n_trees:
                first = context_first[lag]
                _add_context_trees(postings, n_plain, first, n_valid, masks[i], units[i], more)
            for c in range(n_valid):
                for k in range(n_labels):
                    scores[row, c, k] += np.float32((units[i, k] + more[c, k]) / GRID)
        start += n
