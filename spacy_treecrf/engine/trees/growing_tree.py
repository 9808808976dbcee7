"""A tree while it grows: its nodes, their sums, and the best split that was found for each leaf.

Every split adds two nodes, so a tree of n leaves has the nodes 0, ..., 2n - 2. The grower for
complete rows and the one for rows with missing values share these steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import step
from spacy_treecrf.engine.trees.splitting import LEAF, NodeTest, Split, SplitRule
from spacy_treecrf.engine.trees.tree_input import Entries, TreeLimits


class Tree(NamedTuple):
    """Nodes of a tree; 0 is the root, children follow their parents, left is "test is false"."""

    kind: npt.NDArray[np.uint8]
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: npt.NDArray[np.float64]  # of every node: what it would predict as a leaf
    gain: npt.NDArray[np.float64]
    rows: npt.NDArray[np.float64]  # pairs of rows and contexts that reached the node


class Family(NamedTuple):
    """A node that has been split, and its children."""

    parent: int
    left: int
    right: int


class FoundSplits(NamedTuple):
    """The best split of each node, as arrays of the fields of `Split`. shapes: (n_nodes,)"""

    gain: npt.NDArray[np.float64]
    kind: npt.NDArray[np.uint8]  # LEAF where no split was found
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    right: npt.NDArray[np.float64]  # shape: (n_nodes, 4), the right child's sums


class GrowingTree(NamedTuple):
    """A tree with room for all nodes that it may get."""

    nodes: Tree
    depth: npt.NDArray[np.int32]  # shape: (n_nodes,)
    sums: npt.NDArray[np.float64]  # shape: (n_nodes, 4), over the rows and contexts of a node
    found: FoundSplits


@step
def split_rule(entries: Entries, limits: TreeLimits, seed: np.uint64) -> SplitRule:
    """Return what the splits of a tree on these entries must satisfy."""
    return SplitRule(
        1.0 / entries.scales[0],
        1.0 / entries.scales[1],
        limits.penalty,
        limits.min_rows,
        limits.min_gain,
        limits.tree_columns,
        seed,
        limits.node_columns,
    )


@step
def start_tree(totals: npt.NDArray[np.float64], limits: TreeLimits) -> GrowingTree:
    """Return a tree that is one leaf, the root, of these sums. totals: (4,)"""
    n_nodes = 2 * limits.leaves - 1
    nodes = Tree(
        np.zeros(n_nodes, np.uint8),
        np.full(n_nodes, -1, np.int32),
        np.zeros(n_nodes, np.int32),
        np.full(n_nodes, -1, np.int32),
        np.full(n_nodes, -1, np.int32),
        np.zeros(n_nodes),
        np.zeros(n_nodes),
        np.zeros(n_nodes),
    )
    found = FoundSplits(
        np.zeros(n_nodes),
        np.zeros(n_nodes, np.uint8),
        np.zeros(n_nodes, np.int32),
        np.zeros(n_nodes, np.int32),
        np.zeros((n_nodes, 4)),
    )
    sums = np.zeros((n_nodes, 4))
    for j in range(4):
        sums[0, j] = totals[j]
    return GrowingTree(nodes, np.zeros(n_nodes, np.int32), sums, found)


@step
def may_split(growing: GrowingTree, node: int, limits: TreeLimits) -> bool:
    """Return whether a new leaf is neither too deep nor too small to be split."""
    if limits.depth and growing.depth[node] >= limits.depth:
        return False
    return bool(growing.sums[node, 2] >= 2 * limits.min_rows)


@step
def keep_split(growing: GrowingTree, node: int, split: Split) -> None:
    """Remember the best split of a leaf until it is that leaf's turn."""
    found = growing.found
    found.gain[node] = split.gain
    found.kind[node] = split.kind
    found.feature[node] = split.feature
    found.threshold[node] = split.threshold
    found.right[node, 0] = split.g
    found.right[node, 1] = split.h
    found.right[node, 2] = split.n


@step
def leaf_to_split(growing: GrowingTree, n_leaves: int) -> int:
    """Return the leaf whose split gains most, the first of equals; -1 if no leaf has one."""
    found = growing.found
    best = -1
    for node in range(2 * n_leaves - 1):
        if (
            found.kind[node] != LEAF
            and growing.nodes.kind[node] == LEAF
            and (best < 0 or found.gain[node] > found.gain[best])
        ):
            best = node
    return best


@step
def add_split(growing: GrowingTree, parent: int, n_leaves: int) -> Family:
    """Split a leaf of a tree of n_leaves as was found best."""
    nodes, found = growing.nodes, growing.found
    left = 2 * n_leaves - 1
    right = 2 * n_leaves
    nodes.kind[parent] = found.kind[parent]
    nodes.feature[parent] = found.feature[parent]
    nodes.threshold[parent] = found.threshold[parent]
    nodes.gain[parent] = found.gain[parent]
    nodes.left[parent] = left
    nodes.right[parent] = right
    growing.depth[left] = growing.depth[right] = growing.depth[parent] + 1
    return Family(parent, left, right)


@step
def divide_sums(growing: GrowingTree, family: Family, right_sums: npt.NDArray[np.float64]) -> None:
    """Give the right child these sums (4,) and the left child what they leave of the parent's."""
    for j in range(4):
        growing.sums[family.right, j] = right_sums[j]
        growing.sums[family.left, j] = growing.sums[family.parent, j] - right_sums[j]


@step
def node_test(tree: Tree, node: int) -> NodeTest:
    """Return the test of a node that has been split."""
    kind, feature, threshold = tree.kind[node], tree.feature[node], tree.threshold[node]
    return NodeTest(np.int64(kind), np.int64(feature), np.int64(threshold))


@step
def finished_tree(growing: GrowingTree, n_leaves: int, rule: SplitRule) -> Tree:
    """Return the nodes that are used, with their values (Hao 2009, eq. 3.1)."""
    n_used = 2 * n_leaves - 1
    nodes, sums = growing.nodes, growing.sums
    for node in range(n_used):
        nodes.rows[node] = sums[node, 2]
        curvature = sums[node, 1] * rule.inverse_h + rule.penalty
        if curvature > 0.0:
            nodes.value[node] = sums[node, 0] * rule.inverse_g / curvature
    return Tree(
        nodes.kind[:n_used],
        nodes.feature[:n_used],
        nodes.threshold[:n_used],
        nodes.left[:n_used],
        nodes.right[:n_used],
        nodes.value[:n_used],
        nodes.gain[:n_used],
        nodes.rows[:n_used],
    )
