"""Splits: what a node may test, and the best test of a node, read off its histograms.

A split is as good as the penalised loss falls by it (Hao 2009, eq. 3.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.sampling import chosen
from spacy_treecrf.engine.trees.block_bounds import (
    BLOCK,
    BLOCK_BITS,
    MIN_FEATURES,
    may_reach,
    tighten,
)
from spacy_treecrf.engine.trees.histogram import N_BINS
from spacy_treecrf.engine.trees.node_features import LeafFeatures

# What a node tests. "The test holds" always leads to the right child.
LEAF = 0
CATEGORICAL = 1  # the row has feature `feature`
NUMERIC = 2  # numeric column `feature` is in a bin above `threshold`
CONTEXT = 3  # the label `feature` + 1 positions back is `threshold`

# What rounding to single precision may take from a gain, with room to spare.
SCAN_SLACK = 1e-5


class Split(NamedTuple):
    """A test with its gain and the right child's sums; kind LEAF when no test gains enough."""

    gain: float
    kind: int
    feature: int | np.int64
    threshold: int
    g: float
    h: float
    n: float


class NodeTest(NamedTuple):
    """What a node tests."""

    kind: np.int64
    feature: np.int64
    threshold: np.int64


class SplitRule(NamedTuple):
    """What a split must satisfy, and the factors that turn fixed-point sums into floats."""

    inverse_g: float
    inverse_h: float
    penalty: float  # lambda of Hao 2009, eq. 3.1
    min_rows: int
    min_gain: float
    tree_columns: float  # share of the columns that the tree may test
    tree_seed: np.uint64
    node_columns: float  # share of the columns that each node may test


@step
def may_test(rule: SplitRule, node_seed: np.uint64, column: int) -> bool:
    """Return whether a column was drawn for the tree and for the node."""
    in_tree: bool = chosen(rule.tree_seed, column, rule.tree_columns)
    in_node: bool = chosen(node_seed, column, rule.node_columns)
    return in_tree and in_node


@kernel(error_model="numpy")
def no_split(min_gain: float) -> Split:
    """Return the split of a leaf, which any split of a larger gain replaces."""
    return Split(min_gain, LEAF, -1, 0, 0.0, 0.0, 0.0)


@step
def split_gain(
    g: float, h: float, right_g: float, right_h: float, penalty: float, unsplit: float
) -> float:
    """Return by how much the penalised loss falls when the right side is split off.

    g, h: of the node. unsplit: g^2 / (h + penalty).
    """
    left_g = g - right_g
    left_h = h - right_h + penalty
    right_h = right_h + penalty
    return (right_g * right_g * left_h + left_g * left_g * right_h) / (left_h * right_h) - unsplit


@step
def _may_hold_better(
    quick: npt.NDArray[np.float32],
    first: int,
    last: int,
    node_g: np.float32,
    both_h: np.float32,
    bar: np.float32,
) -> bool:
    """Return whether one of the features first, ..., last - 1 may reach the bar.

    both_h: the node's hessian with the penalties of both sides. bar: gain + that of the node.
    """
    # Growing spends its time here: no branch, no division, single precision, so that the
    # compiler makes vectors of it. The slack covers the rounding, except where next to nothing
    # is left of the hessian. A block that may hold a larger gain, perhaps of a feature with
    # too few rows, is searched properly.
    most_h = np.float32(0.9) * both_h
    hit = False
    for i in range(first, last):
        own_g = quick[0, i]
        own_h = quick[1, i]
        left_g = node_g - own_g
        left_h = both_h - own_h
        hit |= own_g * own_g * left_h + left_g * left_g * own_h >= bar * (left_h * own_h)
        hit |= own_h > most_h
    return hit


@kernel(error_model="numpy")
def best_categorical(
    node: npt.NDArray[np.float64],
    leaf: LeafFeatures,
    column_of: npt.NDArray[np.int32],
    rule: SplitRule,
    seed: np.uint64,
    best: Split,
) -> Split:
    """Return the best split by a feature if it gains more than `best`; ties go to the lowest id.

    node: (4,) its sums.
    """
    g = node[0] * rule.inverse_g
    h = node[1] * rule.inverse_h
    unsplit = g * g / (h + rule.penalty)
    right_g, right_h, right_n = leaf.sums
    n_features = len(leaf.features)
    top = best.gain
    where = -1
    node_g = np.float32(g)
    both_h = np.float32(h + 2.0 * rule.penalty)
    bounded = n_features >= MIN_FEATURES
    for first in range(0, n_features, BLOCK):
        last = min(first + BLOCK, n_features)
        bar = np.float32((top + unsplit) * (1.0 - SCAN_SLACK))
        if bounded:
            if not may_reach(leaf.bounds[first >> BLOCK_BITS], node_g, both_h, bar):
                continue
            tighten(leaf.bounds, leaf.quick, first, last)
        if not _may_hold_better(leaf.quick, first, last, node_g, both_h, bar):
            continue
        for i in range(first, last):
            if right_n[i] < rule.min_rows or node[2] - right_n[i] < rule.min_rows:
                continue
            own_g, own_h = right_g[i] * rule.inverse_g, right_h[i] * rule.inverse_h
            gain = split_gain(g, h, own_g, own_h, rule.penalty, unsplit)
            if gain > top and may_test(rule, seed, column_of[leaf.features[i]]):
                top = gain
                where = i
    if where < 0:
        return best
    feature = np.int64(leaf.features[where])
    return Split(top, CATEGORICAL, feature, 0, right_g[where], right_h[where], right_n[where])


@step
def best_numeric(
    node: npt.NDArray[np.float64],
    sums: npt.NDArray[np.float64],
    first_column: int,
    rule: SplitRule,
    seed: np.uint64,
    best: Split,
) -> Split:
    """Return the best split by a numeric column if it gains more than `best`.

    node: (4,) its sums. sums: (n_numeric, N_BINS, 4). Ties go to the first column, then to the
    highest threshold.
    """
    node_g = node[0] * rule.inverse_g
    node_h = node[1] * rule.inverse_h
    unsplit = node_g * node_g / (node_h + rule.penalty)
    for column in range(sums.shape[0]):
        if not may_test(rule, seed, first_column + column):
            continue
        g = 0.0
        h = 0.0
        n = 0.0
        for threshold in range(N_BINS - 2, -1, -1):
            g += sums[column, threshold + 1, 0]
            h += sums[column, threshold + 1, 1]
            n += sums[column, threshold + 1, 2]
            if sums[column, threshold + 1, 2] == 0 or n < rule.min_rows:
                continue
            if node[2] - n < rule.min_rows:
                break
            gain = split_gain(
                node_g, node_h, g * rule.inverse_g, h * rule.inverse_h, rule.penalty, unsplit
            )
            if gain > best.gain:
                best = Split(gain, NUMERIC, column, threshold, g, h, n)
    return best


@step
def best_context(
    node: npt.NDArray[np.float64],
    sums: npt.NDArray[np.float64],
    member: npt.NDArray[np.bool_],
    context_labels: npt.NDArray[np.int32],
    n_labels: int,
    rule: SplitRule,
    best: Split,
) -> Split:
    """Return the best split by a previous label if it gains more than `best`.

    node: (4,) its sums. sums: (n_contexts, 4). Ties go to the nearest lag, then to the lowest
    label.
    """
    node_g = node[0] * rule.inverse_g
    node_h = node[1] * rule.inverse_h
    unsplit = node_g * node_g / (node_h + rule.penalty)
    label_sums = np.empty((n_labels + 1, 4))
    for lag in range(context_labels.shape[1]):
        for label in range(n_labels + 1):
            for j in range(4):
                label_sums[label, j] = 0.0
        for c in range(len(member)):
            if member[c]:
                for j in range(4):
                    label_sums[context_labels[c, lag], j] += sums[c, j]
        for label in range(n_labels + 1):
            g, h, n = label_sums[label, 0], label_sums[label, 1], label_sums[label, 2]
            if n < rule.min_rows or node[2] - n < rule.min_rows:
                continue
            gain = split_gain(
                node_g, node_h, g * rule.inverse_g, h * rule.inverse_h, rule.penalty, unsplit
            )
            if gain > best.gain:
                best = Split(gain, CONTEXT, lag, label, g, h, n)
    return best


@step
def copy_members(member: npt.NDArray[np.bool_], child: npt.NDArray[np.bool_]) -> None:
    """Give a child the contexts of its parent, as a test of an input does.

    member, child: (n_contexts,)
    """
    for c in range(len(member)):
        child[c] = member[c]


@step
def divide_members(
    context_labels: npt.NDArray[np.int32],
    test: NodeTest,
    member: npt.NDArray[np.bool_],
    left: npt.NDArray[np.bool_],
    right: npt.NDArray[np.bool_],
) -> None:
    """Divide the contexts of a node between its children, by a test of a previous label.

    member, left, right: (n_contexts,); left may be the same array as member.
    """
    for c in range(len(member)):
        holds = context_labels[c, test.feature] == test.threshold
        right[c] = member[c] and holds
        left[c] = member[c] and not holds
