"""The best split of a node, read off its histograms, and the partition of its rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.block_bounds import BLOCK, BLOCK_BITS, MIN_FEATURES, may_reach, tighten
from spacy_treecrf.engine.histogram import N_BINS, add_row_contexts
from spacy_treecrf.engine.sampling import chosen

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


class SplitRule(NamedTuple):
    """What a split must satisfy, and the factors that turn fixed-point sums into floats."""

    inverse_g: float
    inverse_h: float
    penalty: float  # lambda of Hao 2009, eq. 3.1
    min_rows: int
    tree_columns: float  # share of the columns that the tree may test
    tree_seed: np.uint64
    node_columns: float  # share of the columns that each node may test


@njit(nogil=True, cache=True, error_model="numpy")
def may_test(rule: SplitRule, node_seed: np.uint64, column: int) -> bool:
    in_tree: bool = chosen(rule.tree_seed, column, rule.tree_columns)
    in_node: bool = chosen(node_seed, column, rule.node_columns)
    return in_tree and in_node


@njit(nogil=True, cache=True, error_model="numpy")
def no_split(min_gain: float) -> Split:
    return Split(min_gain, LEAF, -1, 0, 0.0, 0.0, 0.0)


@njit(nogil=True, cache=True, error_model="numpy")
def split_gain(
    g: float, h: float, right_g: float, right_h: float, penalty: float, unsplit: float
) -> float:
    """Fall of the penalised loss when the right side leaves; unsplit = g^2 / (h + penalty)."""
    left_g = g - right_g
    left_h = h - right_h + penalty
    right_h = right_h + penalty
    return (right_g * right_g * left_h + left_g * left_g * right_h) / (left_h * right_h) - unsplit


@njit(nogil=True, cache=True, error_model="numpy")
def best_categorical(
    node: npt.NDArray[np.float64],
    features: npt.NDArray[np.int32],
    sums: npt.NDArray[np.float64],
    quick: npt.NDArray[np.float32],
    bounds: npt.NDArray[np.float32],
    column_of: npt.NDArray[np.int32],
    rule: SplitRule,
    seed: np.uint64,
    best: Split,
) -> Split:
    """Ties go to the lowest id.

    node: (4,) its sums. features: those its rows touch, rising. sums: (3, n_features) gradient,
    hessian and count of each; quick: (2, n_features), see node_features. bounds: (n_blocks, 4), see
    block_bounds.
    """
    g = node[0] * rule.inverse_g
    h = node[1] * rule.inverse_h
    unsplit = g * g / (h + rule.penalty)
    right_g, right_h, right_n = sums
    top = best.gain
    where = -1
    node_g = np.float32(g)
    both_h = np.float32(h + 2.0 * rule.penalty)
    most_h = np.float32(0.9) * both_h
    bounded = len(features) >= MIN_FEATURES
    for first in range(0, len(features), BLOCK):
        last = min(first + BLOCK, len(features))
        bar = np.float32((top + unsplit) * (1.0 - SCAN_SLACK))
        if bounded:
            if not may_reach(bounds[first >> BLOCK_BITS], node_g, both_h, bar):
                continue
            tighten(bounds, quick, first, last)
        # Growing spends its time here: no branch, no division, single precision, so that the
        # compiler makes vectors of it. The slack covers the rounding, except where next to nothing
        # is left of the hessian. A block that may hold a larger gain, perhaps of a feature with
        # too few rows, is searched properly.
        hit = False
        for i in range(first, last):
            own_g = quick[0, i]
            own_h = quick[1, i]
            left_g = node_g - own_g
            left_h = both_h - own_h
            hit |= own_g * own_g * left_h + left_g * left_g * own_h >= bar * (left_h * own_h)
            hit |= own_h > most_h
        if not hit:
            continue
        for i in range(first, last):
            if right_n[i] < rule.min_rows or node[2] - right_n[i] < rule.min_rows:
                continue
            gain = split_gain(
                g,
                h,
                right_g[i] * rule.inverse_g,
                right_h[i] * rule.inverse_h,
                rule.penalty,
                unsplit,
            )
            if gain > top and may_test(rule, seed, column_of[features[i]]):
                top = gain
                where = i
    if where < 0:
        return best
    return Split(
        top,
        CATEGORICAL,
        np.int64(features[where]),
        0,
        right_g[where],
        right_h[where],
        right_n[where],
    )


@njit(nogil=True, cache=True, error_model="numpy")
def best_numeric(
    node: npt.NDArray[np.float64],
    sums: npt.NDArray[np.float64],
    first_column: int,
    rule: SplitRule,
    seed: np.uint64,
    best: Split,
) -> Split:
    """sums: (n_numeric, N_BINS, 4). Ties go to the first column, then to the highest threshold."""
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


@njit(nogil=True, cache=True, error_model="numpy")
def best_context(
    node: npt.NDArray[np.float64],
    sums: npt.NDArray[np.float64],
    member: npt.NDArray[np.bool_],
    context_labels: npt.NDArray[np.int32],
    n_labels: int,
    rule: SplitRule,
    best: Split,
) -> Split:
    """sums: (n_contexts, 4). Ties go to the nearest lag, then to the lowest label."""
    node_g = node[0] * rule.inverse_g
    node_h = node[1] * rule.inverse_h
    unsplit = node_g * node_g / (node_h + rule.penalty)
    label_sums = np.empty((n_labels + 1, 4))
    for lag in range(context_labels.shape[1]):
        label_sums[:] = 0
        for c in range(len(member)):
            if member[c]:
                label_sums[context_labels[c, lag]] += sums[c]
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


@njit(nogil=True, cache=True, error_model="numpy")
def partition_rows(
    columns: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    slots: npt.NDArray[np.int32],
    split: Split,
    rows: npt.NDArray[np.int32],
    sums_at: npt.NDArray[np.int32],
) -> int:
    """Reorder rows in place, those that hold the test last; returns how many do not.

    columns: (n_slots, n_rows) the codes, a slot after the other. slots: (2,) those that may hold
    the feature of a categorical test. sums_at: (n,) where each row's sums are; moves with it.
    """
    holds = np.zeros(len(rows), np.bool_)
    if split.kind == CATEGORICAL:
        feature = np.int32(split.feature)
        for slot in range(slots[0], min(slots[1], columns.shape[0])):
            column = columns[slot]
            for i in range(len(rows)):
                holds[i] |= column[np.uint32(rows[i])] == feature
    else:
        for i in range(len(rows)):
            holds[i] = numeric[rows[i], split.feature] > split.threshold
    # Few rows hold most features: swap those with the last ones that do not, and leave the rest.
    n_left = len(rows)
    for i in range(len(rows) - 1, -1, -1):
        if holds[i]:
            n_left -= 1
            rows[i], rows[n_left] = rows[n_left], rows[i]
            sums_at[i], sums_at[n_left] = sums_at[n_left], sums_at[i]
    return n_left


@njit(nogil=True, cache=True, error_model="numpy")
def divide_contexts(
    pair_g: npt.NDArray[np.float32],
    pair_h: npt.NDArray[np.float32],
    scales: npt.NDArray[np.float64],
    lags: npt.NDArray[np.uint8],
    context_first: npt.NDArray[np.int64],
    member: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int32],
    sums_at: npt.NDArray[np.int32],
    row_sums: npt.NDArray[np.float64],
    n_sums: int,
    right_rows: npt.NDArray[np.int32],
    right_at: npt.NDArray[np.int32],
) -> tuple[int, int]:
    """Split each row's sums by context: pairs in `member` (the right child's contexts) go right.

    A row with contexts on both sides stays in `rows` and is copied to `right_rows`, with new sums
    behind the n_sums there are. Returns the number of rows on the left (compacted in place) and on
    the right.
    """
    n_left = 0
    n_right = 0
    for i in range(len(rows)):
        row = rows[i]
        at = sums_at[i]
        here = row_sums[n_sums + n_right : n_sums + n_right + 1]
        here[:] = 0
        first = context_first[lags[row]]
        last = context_first[lags[row] + 1]
        add_row_contexts(pair_g, pair_h, scales, row, first, last, member, here)
        if row_sums[at, 2] - here[0, 2] > 0:
            rows[n_left] = row
            sums_at[n_left] = at
            for j in range(4):
                row_sums[at, j] -= here[0, j]
            n_left += 1
        if here[0, 2] > 0:
            right_rows[n_right] = row
            right_at[n_right] = n_sums + n_right
            n_right += 1
    return n_left, n_right
