"""The histograms of the leaves that may still be split, and how children come by theirs.

The smaller child's histograms are summed up from its rows; the bigger one takes over its parent's
and subtracts those.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import step
from spacy_treecrf.engine.trees.block_bounds import forget, number_of_blocks
from spacy_treecrf.engine.trees.histogram import (
    N_BINS,
    add_categorical,
    add_numeric,
    add_row_contexts,
)
from spacy_treecrf.engine.trees.node_features import (
    LeafFeatures,
    TouchedFeatures,
    Units,
    mark,
    move,
    number_of_words,
    subtract,
)
from spacy_treecrf.engine.trees.node_rows import NodeRows
from spacy_treecrf.engine.trees.tree_input import Entries, TreeInput


class Siblings(NamedTuple):
    """Two new leaves. The root counts as a smaller child without a sibling."""

    small: int
    big: int  # -1: there is none


class FeatureLists(NamedTuple):
    """The features that open leaves keep, list after list (see node_features)."""

    features: npt.NDArray[np.int32]  # shape: (room,)
    sums: npt.NDArray[np.float64]  # shape: (3, room)
    quick: npt.NDArray[np.float32]  # shape: (2, room)
    n_used: npt.NDArray[np.int64]  # shape: (1,), how much of the room


class OpenLeaves(NamedTuple):
    """Where the list of each leaf is, and its other histograms, which are small and dense."""

    list_first: npt.NDArray[np.int64]  # shape: (n_nodes,)
    list_last: npt.NDArray[np.int64]  # shape: (n_nodes,)
    place: npt.NDArray[np.int64]  # shape: (n_nodes,), of an open leaf in the arrays below
    words: npt.NDArray[np.uint64]  # shape: (n_leaves, n_words), see node_features
    before: npt.NDArray[np.int32]  # shape: (n_leaves, n_words)
    bounds: npt.NDArray[np.float32]  # shape: (n_leaves, n_blocks, 4), see block_bounds
    bins: npt.NDArray[np.float64]  # shape: (n_leaves, n_numeric, N_BINS, 4)
    contexts: npt.NDArray[np.float64]  # shape: (n_leaves, n_contexts, 4)
    member: npt.NDArray[np.bool_]  # shape: (n_leaves, n_contexts), the contexts of a leaf


@step
def room_for_leaves(data: TreeInput, n_leaves: int) -> OpenLeaves:
    """Return room for so many leaves, of which the root has all contexts."""
    n_nodes = 2 * n_leaves - 1
    n_words = number_of_words(data.n_features)
    n_contexts, order = data.context_labels.shape
    n_numeric = data.numeric.shape[1]
    with_contexts = n_leaves if order else 0
    leaves = OpenLeaves(
        np.zeros(n_nodes, np.int64),
        np.zeros(n_nodes, np.int64),
        np.zeros(n_nodes, np.int64),
        np.zeros((n_leaves, n_words), np.uint64),
        np.zeros((n_leaves, n_words), np.int32),
        np.empty((n_leaves, number_of_blocks(data.n_features), 4), np.float32),
        np.empty((n_leaves if n_numeric else 0, n_numeric, N_BINS, 4)),
        np.empty((with_contexts, n_contexts, 4)),
        np.zeros((with_contexts, n_contexts), np.bool_),
    )
    if order:
        for c in range(n_contexts):
            leaves.member[0, c] = True
    return leaves


@step
def room_for_lists(n_features: int) -> FeatureLists:
    """Return room for the lists of the first leaves; it grows with the number of leaves."""
    room = 2 * n_features + 1
    return FeatureLists(
        np.empty(room, np.int32),
        np.empty((3, room)),
        np.empty((2, room), np.float32),
        np.zeros(1, np.int64),
    )


@step
def _longer(lists: FeatureLists, room: int) -> FeatureLists:
    """Return the same lists with more room behind them."""
    features = np.empty(room, np.int32)
    sums = np.empty((3, room))
    quick = np.empty((2, room), np.float32)
    n_used = lists.n_used[0]
    for i in range(n_used):
        features[i] = lists.features[i]
    for j in range(3):
        for i in range(n_used):
            sums[j, i] = lists.sums[j, i]
    for j in range(2):
        for i in range(n_used):
            quick[j, i] = lists.quick[j, i]
    return FeatureLists(features, sums, quick, lists.n_used)


@step
def features_of(leaves: OpenLeaves, lists: FeatureLists, leaf: int) -> LeafFeatures:
    """Return the features of a leaf, to be read or changed."""
    first, last = leaves.list_first[leaf], leaves.list_last[leaf]
    place = leaves.place[leaf]
    return LeafFeatures(
        lists.features[first:last],
        lists.sums[:, first:last],
        lists.quick[:, first:last],
        leaves.words[place],
        leaves.before[place],
        leaves.bounds[place],
    )


@step
def sum_up_features(
    data: TreeInput,
    node_rows: NodeRows,
    leaves: OpenLeaves,
    lists: FeatureLists,
    touched: TouchedFeatures,
    new: Siblings,
    min_rows: int,
    units: Units,
) -> FeatureLists:
    """Make the categorical histograms of two new leaves; return the lists, perhaps moved.

    touched: room, 0 before and after.
    """
    first, last = node_rows.first[new.small], node_rows.last[new.small]
    n_touched = add_categorical(
        data.feature_ids,
        node_rows.rows[first:last],
        node_rows.sums_at[first:last],
        node_rows.sums,
        touched.sums,
        touched.listed,
    )
    kept: FeatureLists = keep_features(leaves, lists, touched, n_touched, new, min_rows, units)
    return kept


@step
def keep_features(
    leaves: OpenLeaves,
    lists: FeatureLists,
    touched: TouchedFeatures,
    n_touched: int,
    new: Siblings,
    min_rows: int,
    units: Units,
) -> FeatureLists:
    """Make the touched features those of the smaller leaf, and take them from the bigger one's.

    n_touched: how many are listed. Returns the lists, perhaps moved.
    """
    mark(touched.listed[:n_touched], touched.words)
    if new.big >= 0:
        subtract(touched, features_of(leaves, lists, new.big), units)
    n_used = lists.n_used[0]
    room = len(lists.features)
    if n_used + n_touched >= room:
        lists = _longer(lists, 2 * room + n_touched)
    leaves.list_first[new.small] = n_used
    leaves.list_last[new.small] = len(lists.features)
    leaf = features_of(leaves, lists, new.small)
    forget(leaf.bounds)
    lists.n_used[0] = n_used + move(touched, leaf, min_rows, units)
    leaves.list_last[new.small] = lists.n_used[0]
    return lists


@step
def sum_up_bins(data: TreeInput, node_rows: NodeRows, leaves: OpenLeaves, new: Siblings) -> None:
    """Make the numeric histograms of two new leaves."""
    first, last = node_rows.first[new.small], node_rows.last[new.small]
    own = leaves.bins[leaves.place[new.small]]
    for column in range(own.shape[0]):
        for bin_ in range(N_BINS):
            for j in range(4):
                own[column, bin_, j] = 0.0
    add_numeric(
        data.numeric,
        node_rows.rows[first:last],
        node_rows.sums_at[first:last],
        node_rows.sums,
        own,
    )
    if new.big >= 0:
        rest = leaves.bins[leaves.place[new.big]]
        for column in range(own.shape[0]):
            for bin_ in range(N_BINS):
                for j in range(4):
                    rest[column, bin_, j] -= own[column, bin_, j]


@step
def add_contexts(
    data: TreeInput,
    entries: Entries,
    node_rows: NodeRows,
    node: int,
    member: npt.NDArray[np.bool_],
    sums: npt.NDArray[np.float64],
) -> None:
    """Add the pairs of a node's rows to sums (n_contexts, 4). member: (n_contexts,)"""
    rows, lags, first = node_rows.rows, data.lags, data.context_first
    pair_g, pair_h, scales = entries.pair_g, entries.pair_h, entries.scales
    for i in range(node_rows.first[node], node_rows.last[node]):
        row = rows[i]
        begin, end = first[lags[row]], first[lags[row] + 1]
        add_row_contexts(pair_g, pair_h, scales, row, begin, end, member, sums)


@step
def sum_up_contexts(
    data: TreeInput, entries: Entries, node_rows: NodeRows, leaves: OpenLeaves, new: Siblings
) -> None:
    """Make the histograms of previous labels of two new leaves."""
    member = leaves.member[leaves.place[new.small]]
    own = leaves.contexts[leaves.place[new.small]]
    for c in range(len(own)):
        for j in range(4):
            own[c, j] = 0.0
    add_contexts(data, entries, node_rows, new.small, member, own)
    if new.big >= 0:
        # After an input split both sides have all contexts of their parent; after a context
        # split each context, with all its sums, is on one side.
        others = leaves.member[leaves.place[new.big]]
        rest = leaves.contexts[leaves.place[new.big]]
        for c in range(len(own)):
            if others[c] and member[c]:
                for j in range(4):
                    rest[c, j] -= own[c, j]


@step
def replace_leaf(leaves: OpenLeaves, parent: int, new: Siblings, free_place: int) -> None:
    """Give the bigger child the histograms of its parent, and the smaller one room for its own."""
    leaves.place[new.big] = leaves.place[parent]
    leaves.place[new.small] = free_place
    leaves.list_first[new.big] = leaves.list_first[parent]
    leaves.list_last[new.big] = leaves.list_last[parent]
