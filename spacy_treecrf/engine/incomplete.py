"""Growth of a tree on rows with missing values: the same tree as `grow_tree` where none is missing.

A test is judged by the rows that know its answer. The others go to both children with a part of
their gradient, hessian and count (instance weighting), or to the one that surrogates name. Slower
than `grow_tree`: rows are copied from node to node, and their contexts summed up anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.grower import (
    Entries,
    Limits,
    Tree,
    TreeInput,
    add_split,
    finished,
    leaf_to_split,
    room_for_tree,
    split_rule,
)
from spacy_treecrf.engine.histogram import N_BINS, add_categorical, add_numeric, to_fixed
from spacy_treecrf.engine.routing import send
from spacy_treecrf.engine.sampling import mix
from spacy_treecrf.engine.sequences import MISSING_BIN
from spacy_treecrf.engine.splitting import (
    CATEGORICAL,
    CONTEXT,
    NUMERIC,
    Split,
    SplitRule,
    best_context,
    best_numeric,
    may_test,
    no_split,
    split_gain,
)
from spacy_treecrf.engine.surrogates import RIGHT, UNKNOWN

# Parts of rows are counted in whole steps of this size, so that sums of them are exact.
COUNT_STEP = 2.0**-16


class NodeSums(NamedTuple):
    """The histograms of a node. Sums are exact: those of two children add up to the parent's."""

    features: npt.NDArray[np.int32]  # rising; those that enough rows have
    by_feature: npt.NDArray[np.float64]  # shape: (len(features), 4)
    by_bin: npt.NDArray[np.float64]  # shape: (n_numeric, N_BINS, 4), without missing numbers
    unknown: npt.NDArray[np.float64]  # shape: (n_columns + n_numeric, 4), rows that lack a column


@njit(nogil=True, cache=True)
def _sum_up(
    data: TreeInput,
    missing: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int32],
    sums: npt.NDArray[np.float64],
    dense: npt.NDArray[np.float64],
    touched: npt.NDArray[np.int32],
) -> NodeSums:
    """The histograms of these rows.

    dense: (n_features, 4), zeros before, and then the sums of the features. touched: room.
    """
    at = np.arange(len(rows)).astype(np.int32)
    n_touched = add_categorical(data.codes, rows, at, sums, data.n_features, dense, touched)
    features = np.sort(touched[:n_touched])
    by_bin = np.zeros((data.numeric.shape[1], N_BINS, 4))
    add_numeric(data.numeric, rows, at, sums, by_bin)
    by_bin[:, MISSING_BIN] = 0.0
    unknown = np.zeros((missing.shape[1], 4))
    for i in range(len(rows)):
        for column in range(len(unknown)):
            if missing[rows[i], column]:
                for j in range(4):
                    unknown[column, j] += sums[i, j]
    return NodeSums(features, dense[features], by_bin, unknown)


@njit(nogil=True, cache=True)
def _without(node: NodeSums, part: NodeSums, dense: npt.NDArray[np.float64]) -> NodeSums:
    """What is left of a node when a part of it leaves. dense: the part's features."""
    return NodeSums(
        node.features,
        node.by_feature - dense[node.features],
        node.by_bin - part.by_bin,
        node.unknown - part.unknown,
    )


@njit(nogil=True, cache=True)
def _with_enough_rows(node: NodeSums, min_rows: int) -> NodeSums:
    """Without the features that neither this node nor one below it can test."""
    enough = node.by_feature[:, 2] >= min_rows
    return NodeSums(node.features[enough], node.by_feature[enough], node.by_bin, node.unknown)


@njit(nogil=True, cache=True)
def _best_known_categorical(
    known: npt.NDArray[np.float64],
    node: NodeSums,
    column_of: npt.NDArray[np.int32],
    rule: SplitRule,
    seed: np.uint64,
    best: Split,
) -> Split:
    """As `best_categorical`, each feature among the rows that know its column.

    known: (n_columns + n_numeric, 4), of the rows that know a column.
    """
    for i in range(len(node.features)):
        feature = node.features[i]
        column = column_of[feature]
        right_g, right_h, right_n = node.by_feature[i, :3]
        if right_n < rule.min_rows or known[column, 2] - right_n < rule.min_rows:
            continue
        g = known[column, 0] * rule.inverse_g
        h = known[column, 1] * rule.inverse_h
        unsplit = g * g / (h + rule.penalty)
        gain = split_gain(
            g, h, right_g * rule.inverse_g, right_h * rule.inverse_h, rule.penalty, unsplit
        )
        if gain > best.gain and may_test(rule, seed, column):
            best = Split(gain, CATEGORICAL, np.int64(feature), 0, right_g, right_h, right_n)
    return best


@njit(nogil=True, cache=True)
def _contexts_in(data: TreeInput, member: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """How many contexts a node has of a row with so many previous labels. shape: (order + 1,)"""
    n = np.zeros(len(data.context_first) - 1, np.int64)
    for lag in range(len(n)):
        for c in range(data.context_first[lag], data.context_first[lag + 1]):
            n[lag] += member[c]
    return n


@njit(nogil=True, cache=True)
def _pair(entries: Entries, row: int, c: int, weight: float) -> tuple[float, float]:
    """Gradient and hessian of a row's pair, in fixed point, for a row of this weight."""
    g = to_fixed(entries.pair_g[row, c] * weight, entries.scales[0])
    if entries.pair_h.shape[0]:
        return g, to_fixed(entries.pair_h[row, c] * weight, entries.scales[1])
    return g, to_fixed(weight, entries.scales[1])


@njit(nogil=True, cache=True)
def _context_sums(
    data: TreeInput,
    entries: Entries,
    member: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int32],
    sums: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """The node's sums for each context. shape: (n_contexts, 4)"""
    total = np.zeros((len(member), 4))
    n_contexts = _contexts_in(data, member)
    for i in range(len(rows)):
        row = rows[i]
        n = np.rint(sums[i, 2] / n_contexts[data.lags[row]] / COUNT_STEP) * COUNT_STEP
        first = data.context_first[data.lags[row]]
        for c in range(data.context_first[data.lags[row] + 1] - first):
            if member[first + c]:
                g, h = _pair(entries, row, c, weight[i])
                total[first + c, 0] += g
                total[first + c, 1] += h
                total[first + c, 2] += n
    return total


@njit(nogil=True, cache=True)
def _keep_whole(sums: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> None:
    """Do not tear off a part that is too small to be counted."""
    if right[2] <= 0.0:
        right[:] = 0.0
    elif right[2] >= sums[2]:
        right[:] = sums


@njit(nogil=True, cache=True)
def _split_by_context(
    data: TreeInput,
    entries: Entries,
    member: npt.NDArray[np.bool_],
    to_right: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int32],
    sums: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
) -> None:
    """The sums of the pairs that go right, for each row. right: (n, 4)"""
    n_contexts = _contexts_in(data, member)
    for i in range(len(rows)):
        row = rows[i]
        first = data.context_first[data.lags[row]]
        n = 0
        for c in range(data.context_first[data.lags[row] + 1] - first):
            if to_right[first + c]:
                g, h = _pair(entries, row, c, weight[i])
                right[i, 0] += g
                right[i, 1] += h
                n += 1
        share = n / n_contexts[data.lags[row]]
        right[i, 2] = np.rint(sums[i, 2] * share / COUNT_STEP) * COUNT_STEP
        _keep_whole(sums[i], right[i])


@njit(nogil=True, cache=True)
def _split_by_test(
    data: TreeInput,
    missing: npt.NDArray[np.bool_],
    split: Split,
    surrogate: bool,
    rows: npt.NDArray[np.int32],
    sums: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
    to_right: npt.NDArray[np.float64],
) -> None:
    """The sums of what goes right, for each row (n, 4), and its share of the row (n,)."""
    side = np.zeros(len(rows), np.int8)
    share, _ = send(
        data,
        missing,
        split.kind,
        split.feature,
        split.threshold,
        rows,
        sums[:, 2].copy(),
        surrogate,
        side,
    )
    for i in range(len(rows)):
        if side[i] == UNKNOWN:
            right[i, 0] = np.rint(sums[i, 0] * share)
            right[i, 1] = np.rint(sums[i, 1] * share)
            right[i, 2] = np.rint(sums[i, 2] * share / COUNT_STEP) * COUNT_STEP
            _keep_whole(sums[i], right[i])
            to_right[i] = share
        elif side[i] == RIGHT:
            right[i] = sums[i]
            to_right[i] = 1.0


@njit(nogil=True, cache=True)
def grow_incomplete_tree(
    data: TreeInput,
    entries: Entries,
    limits: Limits,
    seed: np.uint64,
    missing: npt.NDArray[np.bool_],
    surrogate: bool,
) -> Tree:
    """As `grow_tree`; missing: (n_rows, n_columns + n_numeric)."""
    order = data.context_labels.shape[1]
    n_contexts = data.context_labels.shape[0]
    n_numeric = data.numeric.shape[1]
    n_nodes = 2 * limits.leaves - 1
    tree = room_for_tree(n_nodes)
    rule = split_rule(entries, limits, seed)
    splits = [no_split(limits.min_gain) for _ in range(n_nodes)]
    depth = np.zeros(n_nodes, np.int32)
    totals = np.zeros((n_nodes, 4))
    totals[0] = entries.totals
    member = np.zeros((n_nodes, n_contexts), np.bool_)
    member[0] = True
    rows_of = [entries.rows[:0] for _ in range(n_nodes)]
    sums_of = [entries.sums[:0] for _ in range(n_nodes)]
    weight_of = [np.zeros(0) for _ in range(n_nodes)]  # what is here of each row
    rows_of[0] = entries.rows
    sums_of[0] = entries.sums
    weight_of[0] = np.ones(len(entries.rows))

    dense = np.zeros((data.n_features, 4))
    touched = np.empty(data.n_features + 1, np.int32)
    root = _sum_up(data, missing, entries.rows, entries.sums, dense, touched)
    node_sums = [root for _ in range(n_nodes)]
    dense[root.features] = 0.0
    n_used = 1
    n_leaves = 1
    new = 0  # the nodes from here on have not been looked at
    while n_leaves < limits.leaves:
        for node in range(new, n_used):
            if limits.depth and depth[node] >= limits.depth:
                continue
            if totals[node, 2] < 2 * limits.min_rows:
                continue
            node_seed = mix(seed, np.uint64(node))
            here = node_sums[node]
            known = totals[node] - here.unknown
            best = _best_known_categorical(
                known, here, data.column_of, rule, node_seed, splits[node]
            )
            for d in range(n_numeric):
                column = data.n_columns + d
                found = best_numeric(
                    known[column], here.by_bin[d : d + 1], column, rule, node_seed, best
                )
                if found.gain > best.gain:
                    best = Split(found.gain, NUMERIC, d, found.threshold, found.g, found.h, found.n)
            if order:
                best = best_context(
                    totals[node],
                    _context_sums(
                        data, entries, member[node], rows_of[node], sums_of[node], weight_of[node]
                    ),
                    member[node],
                    data.context_labels,
                    data.n_labels,
                    rule,
                    best,
                )
            splits[node] = best
        new = n_used

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

        rows, sums, weight = rows_of[parent], sums_of[parent], weight_of[parent]
        right_sums = np.zeros_like(sums)
        to_right = np.zeros(len(rows))
        if split.kind == CONTEXT:
            for c in range(n_contexts):
                holds = data.context_labels[c, split.feature] == split.threshold
                member[right, c] = member[parent, c] and holds
                member[left, c] = member[parent, c] and not holds
            _split_by_context(
                data, entries, member[parent], member[right], rows, sums, weight, right_sums
            )
        else:
            member[left] = member[parent]
            member[right] = member[parent]
            _split_by_test(data, missing, split, surrogate, rows, sums, right_sums, to_right)
        left_sums = sums - right_sums
        goes_left = left_sums[:, 2] > 0.0
        goes_right = right_sums[:, 2] > 0.0
        for i in range(len(rows)):
            for j in range(4):
                totals[right, j] += right_sums[i, j]
        totals[left] = totals[parent] - totals[right]
        rows_of[left] = rows[goes_left]
        rows_of[right] = rows[goes_right]
        sums_of[left] = left_sums[goes_left]
        sums_of[right] = right_sums[goes_right]
        if split.kind == CONTEXT:
            weight_of[left] = weight[goes_left]
            weight_of[right] = weight[goes_right]
        else:
            weight_of[left] = (weight * (1.0 - to_right))[goes_left]
            weight_of[right] = (weight * to_right)[goes_right]
        rows_of[parent] = rows[:0]
        sums_of[parent] = sums[:0]
        weight_of[parent] = weight[:0]
        if n_leaves == limits.leaves:
            break
        # The child of fewer rows is summed up; the other one is what that leaves of the parent.
        small, big = (left, right) if len(rows_of[left]) < len(rows_of[right]) else (right, left)
        part = _sum_up(data, missing, rows_of[small], sums_of[small], dense, touched)
        rest = _without(node_sums[parent], part, dense)
        dense[part.features] = 0.0
        node_sums[small] = _with_enough_rows(part, limits.min_rows)
        node_sums[big] = _with_enough_rows(rest, limits.min_rows)
        node_sums[parent] = root

    grown: Tree = finished(tree, totals[:n_used], rule)
    return grown
