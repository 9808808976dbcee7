"""Best-first growth of one regression tree (Hao 2009, table 3.1) on gradients and hessians.

A node is a product (rows) x (contexts of previous labels): a split tests either an input feature
or a previous label, so input features are scored on sums over contexts and labels on sums over
rows. The result is the tree that the table with one example per (row, context) would give.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.block_bounds import forget, number_of_blocks
from spacy_treecrf.engine.histogram import (
    N_BINS,
    add_categorical,
    add_numeric,
    add_row_contexts,
)
from spacy_treecrf.engine.node_features import Units, mark, move, number_of_words, subtract
from spacy_treecrf.engine.sampling import mix
from spacy_treecrf.engine.splitting import (
    CATEGORICAL,
    CONTEXT,
    LEAF,
    Split,
    SplitRule,
    best_categorical,
    best_context,
    best_numeric,
    divide_contexts,
    no_split,
    partition_rows,
)


class Tree(NamedTuple):
    """Nodes of a tree; 0 is the root, children follow their parents, left is "test is false"."""

    kind: npt.NDArray[np.uint8]
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: npt.NDArray[np.float64]  # of every node: what it would predict as a leaf
    gain: npt.NDArray[np.float64]


class TreeInput(NamedTuple):
    """The columns trees are grown on; the same for every tree of a training."""

    codes: npt.NDArray[np.int32]  # shape: (n_rows, n_slots)
    columns: npt.NDArray[np.int32]  # the same, transposed: to test one slot of many rows
    numeric: npt.NDArray[np.uint8]  # shape: (n_rows, n_numeric)
    n_features: int  # ids below this are frequent enough to be tested
    slot_range: npt.NDArray[np.int32]  # shape: (n_features, 2)
    column_of: npt.NDArray[np.int32]  # shape: (n_features,)
    n_columns: int  # categorical columns; numeric column c is column n_columns + c
    lags: npt.NDArray[np.uint8]  # shape: (n_rows,), previous labels in the row's contexts
    context_first: npt.NDArray[np.int64]
    context_labels: npt.NDArray[np.int32]
    n_labels: int


class Entries(NamedTuple):
    """The rows one tree is grown on, after sampling and trimming."""

    rows: npt.NDArray[np.int32]  # shape: (n_entries,)
    sums: npt.NDArray[np.float64]  # shape: (n_entries, 4), over all contexts of a row
    totals: npt.NDArray[np.float64]  # shape: (4,), of the entries and of the rows trimmed away
    scales: npt.NDArray[np.float64]  # shape: (2,), of gradient and hessian
    pair_g: npt.NDArray[np.float32]  # shape: (n_rows, n_row_contexts)
    pair_h: npt.NDArray[np.float32]  # the same, or (0, 0) for hessian 1


class Limits(NamedTuple):
    leaves: int
    depth: int  # 0: no limit
    min_rows: int
    penalty: float
    min_gain: float
    tree_columns: float  # share of the columns drawn for the tree
    node_columns: float  # share of the columns drawn for every node


@njit(nogil=True, cache=True)
def split_rule(entries: Entries, limits: Limits, seed: np.uint64) -> SplitRule:
    return SplitRule(
        1.0 / entries.scales[0],
        1.0 / entries.scales[1],
        limits.penalty,
        limits.min_rows,
        limits.tree_columns,
        seed,
        limits.node_columns,
    )


@njit(nogil=True, cache=True)
def room_for_tree(n_nodes: int) -> Tree:
    return Tree(
        np.zeros(n_nodes, np.uint8),
        np.full(n_nodes, -1, np.int32),
        np.zeros(n_nodes, np.int32),
        np.full(n_nodes, -1, np.int32),
        np.full(n_nodes, -1, np.int32),
        np.zeros(n_nodes),
        np.zeros(n_nodes),
    )


@njit(nogil=True, cache=True)
def leaf_to_split(tree: Tree, splits: list[Split], n_used: int) -> int:
    """The leaf whose best split gains most, the first of equals; -1 if no leaf has one."""
    best = -1
    for node in range(n_used):
        if (
            splits[node].kind != LEAF
            and tree.kind[node] == LEAF
            and (best < 0 or splits[node].gain > splits[best].gain)
        ):
            best = node
    return best


@njit(nogil=True, cache=True)
def add_split(tree: Tree, parent: int, split: Split, left: int, right: int) -> None:
    tree.kind[parent] = split.kind
    tree.feature[parent] = split.feature
    tree.threshold[parent] = split.threshold
    tree.left[parent] = left
    tree.right[parent] = right
    tree.gain[parent] = split.gain


@njit(nogil=True, cache=True)
def finished(tree: Tree, sums: npt.NDArray[np.float64], rule: SplitRule) -> Tree:
    """The nodes that are used, with their values. sums: (n_used, 4)"""
    n_used = len(sums)
    for node in range(n_used):
        curvature = sums[node, 1] * rule.inverse_h + rule.penalty
        if curvature > 0.0:
            tree.value[node] = sums[node, 0] * rule.inverse_g / curvature
    return Tree(
        tree.kind[:n_used],
        tree.feature[:n_used],
        tree.threshold[:n_used],
        tree.left[:n_used],
        tree.right[:n_used],
        tree.value[:n_used],
        tree.gain[:n_used],
    )


@njit(nogil=True, cache=True)
def _longer(array: npt.NDArray[np.int32], size: int) -> npt.NDArray[np.int32]:
    longer = np.empty(size, np.int32)
    longer[: len(array)] = array
    return longer


@njit(nogil=True, cache=True)
def _longer_sums(array: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    longer = np.empty((size, 4))
    longer[: len(array)] = array
    return longer


@njit(nogil=True, cache=True)
def _wider_sums(array: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    wider = np.empty((3, size))
    wider[:, : array.shape[1]] = array
    return wider


@njit(nogil=True, cache=True)
def _wider_quick(array: npt.NDArray[np.float32], size: int) -> npt.NDArray[np.float32]:
    wider = np.empty((2, size), np.float32)
    wider[:, : array.shape[1]] = array
    return wider


@njit(nogil=True, cache=True)
def grow_tree(data: TreeInput, entries: Entries, limits: Limits, seed: np.uint64) -> Tree:
    """Rows that trimming left out have no entry: they follow the left side of every split."""
    order = data.context_labels.shape[1]
    n_contexts = data.context_labels.shape[0]
    n_numeric = data.numeric.shape[1]
    n_nodes = 2 * limits.leaves - 1
    tree = room_for_tree(n_nodes)
    rule = split_rule(entries, limits, seed)
    splits = [no_split(limits.min_gain) for _ in range(n_nodes)]
    depth = np.zeros(n_nodes, np.int32)
    sums = np.zeros((n_nodes, 4))
    sums[0] = entries.totals

    # Rows of all nodes: the children of an input split share their parent's range. A context
    # split keeps rows on both sides: its right child gets a new range at the end.
    rows = entries.rows.copy()
    row_sums = entries.sums.copy()
    sums_at = np.arange(len(rows)).astype(np.int32)
    n_rows = len(rows)
    row_first = np.zeros(n_nodes, np.int64)
    row_last = np.zeros(n_nodes, np.int64)
    row_last[0] = n_rows

    # Categorical histograms are built in one dense array and kept as lists (node_features).
    dense = np.zeros((data.n_features, 4))
    touched = np.empty(data.n_features + 1, np.int32)
    n_words = number_of_words(data.n_features)
    marks = np.zeros(n_words, np.uint64)
    words = np.zeros((limits.leaves, n_words), np.uint64)
    before = np.zeros((limits.leaves, n_words), np.int32)
    kept = np.empty(2 * data.n_features + 1, np.int32)
    kept_sums = np.empty((3, 2 * data.n_features + 1))
    kept_quick = np.empty((2, 2 * data.n_features + 1), np.float32)
    bounds = np.empty((limits.leaves, number_of_blocks(data.n_features), 4), np.float32)
    units = Units(rule.inverse_g, rule.inverse_h, limits.penalty)
    n_kept = 0
    kept_first = np.zeros(n_nodes, np.int64)
    kept_last = np.zeros(n_nodes, np.int64)
    # The other histograms are small and dense: one place for each open leaf.
    bin_sums = np.empty((limits.leaves if n_numeric else 0, n_numeric, N_BINS, 4))
    context_sums = np.empty((limits.leaves if order else 0, n_contexts, 4))
    member = np.zeros((limits.leaves if order else 0, n_contexts), np.bool_)
    if order:
        member[0] = True
    place = np.zeros(n_nodes, np.int64)

    no_slots = np.zeros(2, np.int32)
    n_used = 1
    n_leaves = 1
    # The smaller child's histogram comes from its rows; the bigger one takes over the parent's
    # and subtracts that. The root counts as a smaller child without a sibling.
    small = 0
    big = -1
    while n_leaves < limits.leaves:
        mine = slice(row_first[small], row_last[small])
        n_touched = add_categorical(
            data.codes, rows[mine], sums_at[mine], row_sums, data.n_features, dense, touched
        )
        mark(touched[:n_touched], marks)
        if big >= 0:
            mine = slice(kept_first[big], kept_last[big])
            subtract(
                marks,
                dense,
                words[place[big]],
                before[place[big]],
                kept_sums[:, mine],
                kept_quick[:, mine],
                bounds[place[big]],
                units,
            )
        if n_kept + n_touched >= len(kept):
            kept = _longer(kept, 2 * len(kept) + n_touched)
            kept_sums = _wider_sums(kept_sums, len(kept))
            kept_quick = _wider_quick(kept_quick, len(kept))
        forget(bounds[place[small]])
        kept_first[small] = n_kept
        n_kept += move(
            marks,
            dense,
            limits.min_rows,
            words[place[small]],
            before[place[small]],
            kept[n_kept:],
            kept_sums[:, n_kept:],
            kept_quick[:, n_kept:],
            units,
        )
        kept_last[small] = n_kept
        if n_numeric:
            bin_sums[place[small]] = 0
            mine = slice(row_first[small], row_last[small])
            add_numeric(data.numeric, rows[mine], sums_at[mine], row_sums, bin_sums[place[small]])
            if big >= 0:
                bin_sums[place[big]] -= bin_sums[place[small]]
        if order:
            context_sums[place[small]] = 0
            for i in range(row_first[small], row_last[small]):
                add_row_contexts(
                    entries.pair_g,
                    entries.pair_h,
                    entries.scales,
                    rows[i],
                    data.context_first[data.lags[rows[i]]],
                    data.context_first[data.lags[rows[i]] + 1],
                    member[place[small]],
                    context_sums[place[small]],
                )
            if big >= 0:
                # After an input split both sides have all contexts of their parent; after a
                # context split each context, with all its sums, is on one side.
                for c in range(n_contexts):
                    if member[place[big], c] and member[place[small], c]:
                        context_sums[place[big], c] -= context_sums[place[small], c]

        for node in (small, big):
            if node < 0 or (limits.depth and depth[node] >= limits.depth):
                continue
            if sums[node, 2] < 2 * limits.min_rows:
                continue
            node_seed = mix(seed, np.uint64(node))
            mine = slice(kept_first[node], kept_last[node])
            best = best_categorical(
                sums[node],
                kept[mine],
                kept_sums[:, mine],
                kept_quick[:, mine],
                bounds[place[node]],
                data.column_of,
                rule,
                node_seed,
                splits[node],
            )
            if n_numeric:
                best = best_numeric(
                    sums[node], bin_sums[place[node]], data.n_columns, rule, node_seed, best
                )
            if order:
                best = best_context(
                    sums[node],
                    context_sums[place[node]],
                    member[place[node]],
                    data.context_labels,
                    data.n_labels,
                    rule,
                    best,
                )
            splits[node] = best

        parent = leaf_to_split(tree, splits, n_used)
        if parent < 0:
            break
        split = splits[parent]
        left = n_used
        right = n_used + 1
        n_used += 2
        n_leaves += 1
        add_split(tree, parent, split, left, right)
        depth[left] = depth[right] = depth[parent] + 1
        sums[right, 0] = split.g
        sums[right, 1] = split.h
        sums[right, 2] = split.n
        sums[left] = sums[parent] - sums[right]
        if n_leaves == limits.leaves:
            break
        small = right
        big = left
        row_first[left] = row_first[parent]
        mine = slice(row_first[parent], row_last[parent])
        n_parent = row_last[parent] - row_first[parent]
        new_place = n_leaves - 1
        if split.kind == CONTEXT:
            for c in range(n_contexts):
                goes = data.context_labels[c, split.feature] == split.threshold
                member[new_place, c] = member[place[parent], c] and goes
                member[place[parent], c] = member[place[parent], c] and not goes
            if n_rows + n_parent > len(rows):
                rows = _longer(rows, 2 * len(rows) + n_parent)
                sums_at = _longer(sums_at, len(rows))
                row_sums = _longer_sums(row_sums, len(rows))
            n_left, n_right = divide_contexts(
                entries.pair_g,
                entries.pair_h,
                entries.scales,
                data.lags,
                data.context_first,
                member[new_place],
                rows[mine],
                sums_at[mine],
                row_sums,
                n_rows,
                rows[n_rows:],
                sums_at[n_rows:],
            )
            row_first[right] = n_rows
            row_last[right] = n_rows + n_right
            n_rows += n_right
        else:
            slots = data.slot_range[split.feature] if split.kind == CATEGORICAL else no_slots
            n_left = partition_rows(
                data.columns, data.numeric, slots, split, rows[mine], sums_at[mine]
            )
            row_first[right] = row_first[parent] + n_left
            row_last[right] = row_last[parent]
            if 2 * n_left < n_parent:
                small = left
                big = right
            if order:
                member[new_place] = member[place[parent]]
        row_last[left] = row_first[left] + n_left
        place[big] = place[parent]
        place[small] = new_place
        kept_first[big] = kept_first[parent]
        kept_last[big] = kept_last[parent]

    grown: Tree = finished(tree, sums[:n_used], rule)
    return grown
