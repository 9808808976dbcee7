"""Growth of a tree whose rows several workers have.

Each worker divides its rows and sums up those of smaller children (`divide_part`, `sum_part`). Each
owner of some features adds the workers' sums and finds the best split of these features
(`keep_part`, `best_of_part`). Leaves may be split ahead of their turn: `replay` makes the tree that
`grow_tree` would grow of the splits that were found, and tells which leaf it needs next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.trees.grower import best_split
from spacy_treecrf.engine.trees.growing_tree import (
    Family,
    FoundSplits,
    GrowingTree,
    Tree,
    add_split,
    divide_sums,
    finished_tree,
    keep_split,
    leaf_to_split,
    split_rule,
    start_tree,
)
from spacy_treecrf.engine.trees.histogram import N_BINS, add_categorical, add_numeric
from spacy_treecrf.engine.trees.node_features import (
    TouchedFeatures,
    Units,
    take_sums,
)
from spacy_treecrf.engine.trees.node_rows import (
    NodeRows,
    divide_pairs,
    divide_rows,
    rows_of_root,
)
from spacy_treecrf.engine.trees.open_leaves import (
    FeatureLists,
    OpenLeaves,
    Siblings,
    add_contexts,
    keep_features,
    replace_leaf,
    room_for_leaves,
    room_for_lists,
)
from spacy_treecrf.engine.trees.splitting import (
    CONTEXT,
    NodeTest,
    Split,
    SplitRule,
    copy_members,
    divide_members,
)
from spacy_treecrf.engine.trees.tree_input import Entries, TreeInput, TreeLimits


class NodeSums(NamedTuple):
    """The sums of a node's rows: those of the features that its rows touch, bins and contexts."""

    features: npt.NDArray[np.int32]  # shape: (n,), rising
    sums: npt.NDArray[np.float64]  # shape: (n, 3), gradient, hessian and count
    bins: npt.NDArray[np.float64]  # shape: (n_numeric, N_BINS, 4)
    contexts: npt.NDArray[np.float64]  # shape: (n_contexts, 4), or none without previous labels


class OwnedLeaves(NamedTuple):
    """The histograms of a tree's leaves, of the features that one worker owns."""

    leaves: OpenLeaves
    lists: FeatureLists


class AheadTree(NamedTuple):
    """The splits found so far, also of leaves whose turn may never come.

    Nodes are numbered in the order in which they were made.
    """

    found: FoundSplits  # kind LEAF where a node cannot be split
    children: npt.NDArray[np.int32]  # shape: (n_nodes, 2), -1: not split yet


@kernel
def _rule_of_tree(
    scales: npt.NDArray[np.float64], limits: TreeLimits, seed: np.uint64
) -> SplitRule:
    rule: SplitRule = split_rule(scales, limits, seed)
    return rule


def rule_of_tree(scales: npt.NDArray[np.float64], limits: TreeLimits, seed: np.uint64) -> SplitRule:
    """Return what the splits of a tree must satisfy, as `grow_tree` has it. scales: (2,)"""
    # numba hands back a Python int, which it would read as int64
    return _rule_of_tree(scales, limits, seed)._replace(tree_seed=seed)  # type: ignore[no-any-return]


@kernel
def rows_of_part(entries: Entries, n_nodes: int) -> NodeRows:
    """Return the entries of a worker, no copies, as rows of the root of so many nodes."""
    rows: NodeRows = rows_of_root(entries, n_nodes)
    return rows


@kernel
def divide_part(
    data: TreeInput,
    entries: Entries,
    node_rows: NodeRows,
    test: NodeTest,
    family: Family,
    member: npt.NDArray[np.bool_],
    of_children: npt.NDArray[np.bool_],
) -> NodeRows:
    """Divide a node's rows between its children; return all rows, perhaps moved.

    member: (n_contexts,) of the node; of_children: (2, n_contexts) to be filled. Both may be empty.
    """
    if test.kind == CONTEXT:
        divide_members(data.context_labels, test, member, of_children[0], of_children[1])
        node_rows = divide_pairs(data, entries, node_rows, of_children[1], family)
    else:
        divide_rows(data, node_rows, test, family)
        copy_members(member, of_children[0])
        copy_members(member, of_children[1])
    return node_rows


@kernel
def sum_part(
    data: TreeInput,
    entries: Entries,
    node_rows: NodeRows,
    touched: TouchedFeatures,
    node: int,
    member: npt.NDArray[np.bool_],
    room_for_features: npt.NDArray[np.int32],
    room_for_sums: npt.NDArray[np.float64],
) -> NodeSums:
    """Return the sums of a node's rows, in the room for them. touched: room, 0 before and after.

    room_for_features: (n_room,) and room_for_sums: (n_room, 3), for all features.
    """
    first, last = node_rows.first[node], node_rows.last[node]
    rows, sums_at = node_rows.rows[first:last], node_rows.sums_at[first:last]
    n_touched = add_categorical(
        data.feature_ids, rows, sums_at, node_rows.sums, touched.sums, touched.listed
    )
    features, sums = room_for_features[:n_touched], room_for_sums[:n_touched]
    take_sums(touched, n_touched, features, sums)
    bins = np.zeros((data.numeric.shape[1], N_BINS, 4))
    add_numeric(data.numeric, rows, sums_at, node_rows.sums, bins)
    contexts = np.zeros((len(member), 4))
    if len(member):
        add_contexts(data, entries, node_rows, node, member, contexts)
    return NodeSums(features, sums, bins, contexts)


@kernel
def room_for_part(data: TreeInput, n_leaves: int) -> OwnedLeaves:
    """Return room for the histograms of so many leaves."""
    return OwnedLeaves(room_for_leaves(data, n_leaves), room_for_lists(data.n_features))


@kernel
def add_part(touched: TouchedFeatures, part: NodeSums, first: int, n_touched: int) -> int:
    """Add a worker's sums of features to those touched; return how many are listed now.

    first: the first feature that is owned.
    """
    sums, listed = touched.sums, touched.listed
    for i in range(len(part.features)):
        f = part.features[i] - first
        listed[n_touched] = f
        n_touched += sums[f, 2] == 0.0
        for j in range(3):
            sums[f, j] += part.sums[i, j]
    return n_touched


@kernel
def keep_part(
    data: TreeInput,
    owned: OwnedLeaves,
    touched: TouchedFeatures,
    bins: npt.NDArray[np.float64],
    contexts: npt.NDArray[np.float64],
    n_touched: int,
    new: Siblings,
    rule: SplitRule,
) -> OwnedLeaves:
    """Make all histograms of two new leaves of the touched features, bins and contexts.

    bins, contexts: as in `NodeSums`, of the smaller leaf's rows on all workers.
    """
    units = Units(rule.inverse_g, rule.inverse_h, rule.penalty)
    leaves = owned.leaves
    lists = keep_features(leaves, owned.lists, touched, n_touched, new, rule.min_rows, units)
    if data.numeric.shape[1]:
        own = leaves.bins[leaves.place[new.small]]
        own[:] = bins
        if new.big >= 0:
            leaves.bins[leaves.place[new.big]] -= own
    if data.context_labels.shape[1]:
        leaves.contexts[leaves.place[new.small]][:] = contexts
        if new.big >= 0:
            member = leaves.member[leaves.place[new.small]]
            others = leaves.member[leaves.place[new.big]]
            rest = leaves.contexts[leaves.place[new.big]]
            for c in range(len(member)):
                if others[c] and member[c]:
                    rest[c] -= contexts[c]
    return OwnedLeaves(leaves, lists)


@kernel
def replace_part(
    data: TreeInput,
    owned: OwnedLeaves,
    test: NodeTest,
    parent: int,
    new: Siblings,
    free_place: int,
) -> None:
    """Put two new leaves in the place of their parent, and the smaller one in a free place."""
    leaves = owned.leaves
    if len(leaves.member):
        member, other = leaves.member[leaves.place[parent]], leaves.member[free_place]
        if test.kind == CONTEXT:
            divide_members(data.context_labels, test, member, member, other)
        else:
            copy_members(member, other)
    replace_leaf(leaves, parent, new, free_place)


@kernel
def best_of_part(
    data: TreeInput,
    owned: OwnedLeaves,
    node: int,
    sums: npt.NDArray[np.float64],
    rule: SplitRule,
) -> Split:
    """Return the best split of a leaf among the features that are here. sums: (4,) of the leaf"""
    split: Split = best_split(data, owned.leaves, owned.lists, node, sums, rule)
    return split


@step
def _keep(growing: GrowingTree, node: int, found: FoundSplits, at: int) -> None:
    """Remember the split of a leaf that was found at a node of `AheadTree`."""
    right = found.right[at]
    split = Split(
        found.gain[at],
        int(found.kind[at]),
        np.int64(found.feature[at]),
        int(found.threshold[at]),
        right[0],
        right[1],
        right[2],
    )
    keep_split(growing, node, split)


@kernel
def replay(
    totals: npt.NDArray[np.float64], limits: TreeLimits, rule: SplitRule, ahead: AheadTree
) -> tuple[int, Tree]:
    """Return the leaf that must be split next, -1 if none, and the tree as far as it is known.

    totals: (4,) sums of the root.
    """
    growing = start_tree(totals, limits)
    found, children = ahead
    node_of = np.zeros(len(growing.depth), np.int32)  # of `ahead`
    n_leaves = 1
    needed = -1
    _keep(growing, 0, found, 0)
    while n_leaves < limits.leaves:
        parent = leaf_to_split(growing, n_leaves)
        if parent < 0:
            break
        split = children[node_of[parent], 0] >= 0
        if not split and n_leaves + 1 < limits.leaves:
            needed = int(node_of[parent])
            break
        family = add_split(growing, parent, n_leaves)
        divide_sums(growing, family, growing.found.right[parent])
        n_leaves += 1
        if split:
            node_of[family.left] = children[node_of[parent], 0]
            node_of[family.right] = children[node_of[parent], 1]
            _keep(growing, family.left, found, node_of[family.left])
            _keep(growing, family.right, found, node_of[family.right])
    return needed, finished_tree(growing, n_leaves, rule)
