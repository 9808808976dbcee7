"""Histograms of a node whose rows may lack values, or be there only in part.

Both children's are made here: one is summed up, the other is what that leaves of the parent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import step
from spacy_treecrf.engine.missing_values.routing import contexts_in
from spacy_treecrf.engine.sequences import MISSING_BIN
from spacy_treecrf.engine.trees.histogram import N_BINS, add_categorical, add_numeric, to_fixed
from spacy_treecrf.engine.trees.node_features import (
    TouchedFeatures,
    clear_sums,
    rising_features,
)
from spacy_treecrf.engine.trees.tree_input import Entries, TreeInput

# Parts of rows are counted in whole steps of this size, so that sums of them are exact.
COUNT_STEP = 2.0**-16


class RowParts(NamedTuple):
    """The rows of a node, and what is there of each."""

    rows: npt.NDArray[np.int32]  # shape: (n,)
    sums: npt.NDArray[np.float64]  # shape: (n, 4)
    weight: npt.NDArray[np.float64]  # shape: (n,), 1 for a row that has not been divided


class NodeSums(NamedTuple):
    """The histograms of a node. Sums are exact: those of two children add up to the parent's."""

    features: npt.NDArray[np.int32]  # rising; those that enough rows have
    by_feature: npt.NDArray[np.float64]  # shape: (len(features), 4)
    by_bin: npt.NDArray[np.float64]  # shape: (n_numeric, N_BINS, 4), without missing numbers
    unknown: npt.NDArray[np.float64]  # shape: (n_columns + n_numeric, 4), rows that lack a column


@step
def sum_up(
    data: TreeInput, missing: npt.NDArray[np.bool_], parts: RowParts, touched: TouchedFeatures
) -> NodeSums:
    """Return the histograms of some rows. touched: 0 before, and then their features' sums."""
    rows, sums = parts.rows, parts.sums
    at = np.empty(len(rows), np.int32)
    for i in range(len(rows)):
        at[i] = i
    n = add_categorical(data.feature_ids, rows, at, sums, touched.sums, touched.listed)
    features = rising_features(touched, n)
    by_feature = np.empty((n, 4))
    for i in range(n):
        for j in range(4):
            by_feature[i, j] = touched.sums[features[i], j]
    by_bin = np.zeros((data.numeric.shape[1], N_BINS, 4))
    add_numeric(data.numeric, rows, at, sums, by_bin)
    for d in range(len(by_bin)):
        for j in range(4):
            by_bin[d, MISSING_BIN, j] = 0.0
    unknown = np.zeros((missing.shape[1], 4))
    for i in range(len(rows)):
        for column in range(len(unknown)):
            if missing[rows[i], column]:
                for j in range(4):
                    unknown[column, j] += sums[i, j]
    return NodeSums(features, by_feature, by_bin, unknown)


@step
def _without(node: NodeSums, part: NodeSums, touched: TouchedFeatures) -> NodeSums:
    """Return what is left of a node when a part of it leaves. touched: the part's sums."""
    by_feature = np.empty_like(node.by_feature)
    for i in range(len(node.features)):
        for j in range(4):
            by_feature[i, j] = node.by_feature[i, j] - touched.sums[node.features[i], j]
    by_bin = np.empty_like(node.by_bin)
    for d in range(len(by_bin)):
        for bin_ in range(N_BINS):
            for j in range(4):
                by_bin[d, bin_, j] = node.by_bin[d, bin_, j] - part.by_bin[d, bin_, j]
    unknown = np.empty_like(node.unknown)
    for column in range(len(unknown)):
        for j in range(4):
            unknown[column, j] = node.unknown[column, j] - part.unknown[column, j]
    return NodeSums(node.features, by_feature, by_bin, unknown)


@step
def _with_enough_rows(node: NodeSums, min_rows: int) -> NodeSums:
    """Return the histograms without features that neither this node nor one below can test."""
    features = np.empty(len(node.features), np.int32)
    by_feature = np.empty_like(node.by_feature)
    n = 0
    for i in range(len(features)):
        if node.by_feature[i, 2] >= min_rows:
            features[n] = node.features[i]
            for j in range(4):
                by_feature[n, j] = node.by_feature[i, j]
            n += 1
    return NodeSums(features[:n], by_feature[:n], node.by_bin, node.unknown)


@step
def sum_up_children(
    data: TreeInput,
    missing: npt.NDArray[np.bool_],
    left: RowParts,
    right: RowParts,
    parent: NodeSums,
    touched: TouchedFeatures,
    min_rows: int,
) -> tuple[NodeSums, NodeSums]:
    """Return the histograms of both children.

    The child of fewer rows is summed up; the other one is what that leaves of the parent.
    """
    left_is_small = len(left.rows) < len(right.rows)
    part = sum_up(data, missing, left if left_is_small else right, touched)
    rest = _with_enough_rows(_without(parent, part, touched), min_rows)
    clear_sums(touched, part.features)
    part = _with_enough_rows(part, min_rows)
    return (part, rest) if left_is_small else (rest, part)


@step
def pair_sums(entries: Entries, row: int, c: int, weight: float) -> tuple[float, float]:
    """Return gradient and hessian of a row's pair, in fixed point, for a row of this weight."""
    g = to_fixed(entries.pair_g[row, c] * weight, entries.scales[0])
    if entries.pair_h.shape[0]:
        return g, to_fixed(entries.pair_h[row, c] * weight, entries.scales[1])
    return g, to_fixed(weight, entries.scales[1])


@step
def sum_up_contexts(
    data: TreeInput,
    entries: Entries,
    member: npt.NDArray[np.bool_],
    parts: RowParts,
) -> npt.NDArray[np.float64]:
    """Return the node's sums for each context. shape: (n_contexts, 4)"""
    rows, sums, weight = parts.rows, parts.sums, parts.weight
    total = np.zeros((len(member), 4))
    n_contexts = contexts_in(data, member)
    for i in range(len(rows)):
        row = rows[i]
        n = np.rint(sums[i, 2] / n_contexts[data.lags[row]] / COUNT_STEP) * COUNT_STEP
        first = data.context_first[data.lags[row]]
        for c in range(data.context_first[data.lags[row] + 1] - first):
            if member[first + c]:
                g, h = pair_sums(entries, row, c, weight[i])
                total[first + c, 0] += g
                total[first + c, 1] += h
                total[first + c, 2] += n
    return total
