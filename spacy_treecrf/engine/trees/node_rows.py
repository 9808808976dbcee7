"""The rows of every node of a growing tree, and how a split divides them between its children.

The children of an input split share their parent's range of rows. A context split keeps rows on
both sides: its right child gets a new range at the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import step
from spacy_treecrf.engine.next_row import NOWHERE, next_row
from spacy_treecrf.engine.trees.growing_tree import Family
from spacy_treecrf.engine.trees.histogram import add_row_contexts
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, NodeTest
from spacy_treecrf.engine.trees.tree_input import Entries, TreeInput


class NodeRows(NamedTuple):
    """The rows of all nodes, in one range for each open leaf."""

    rows: npt.NDArray[np.int32]  # shape: (room,)
    sums_at: npt.NDArray[np.int32]  # shape: (room,), where in `sums` each row's are
    sums: npt.NDArray[np.float64]  # shape: (room, 4), over the leaf's contexts of a row
    first: npt.NDArray[np.int64]  # shape: (n_nodes,)
    last: npt.NDArray[np.int64]  # shape: (n_nodes,)
    n_used: npt.NDArray[np.int64]  # shape: (1,), how much of the room


@step
def rows_of_root(entries: Entries, n_nodes: int) -> NodeRows:
    """Return all entries as the rows of node 0, whose arrays they give up to the tree."""
    n = len(entries.rows)
    rows = NodeRows(
        entries.rows,
        np.empty(n, np.int32),
        entries.sums,
        np.zeros(n_nodes, np.int64),
        np.zeros(n_nodes, np.int64),
        np.full(1, n, np.int64),
    )
    for i in range(n):
        rows.sums_at[i] = i
    rows.last[0] = n
    return rows


@step
def _longer(node_rows: NodeRows, room: int) -> NodeRows:
    """Return the same rows with more room behind them."""
    rows = np.empty(room, np.int32)
    sums_at = np.empty(room, np.int32)
    sums = np.empty((room, 4))
    for i in range(node_rows.n_used[0]):
        rows[i] = node_rows.rows[i]
        sums_at[i] = node_rows.sums_at[i]
        for j in range(4):
            sums[i, j] = node_rows.sums[i, j]
    return NodeRows(rows, sums_at, sums, node_rows.first, node_rows.last, node_rows.n_used)


@step
def _look_further(
    feature_ids: npt.NDArray[np.int32],
    feature: np.int32,
    rows: npt.NDArray[np.int32],
    holds: npt.NDArray[np.bool_],
) -> None:
    """Note which of the rows hold the feature in the rows where they go on."""
    for i in range(len(rows)):
        at = next_row(feature_ids, np.int64(rows[i]))
        while at != NOWHERE:
            for slot in range(feature_ids.shape[1]):
                holds[i] |= feature_ids[at, slot] == feature
            at = next_row(feature_ids, at)


@step
def partition_rows(
    data: TreeInput,
    test: NodeTest,
    rows: npt.NDArray[np.int32],
    sums_at: npt.NDArray[np.int32],
) -> int:
    """Reorder rows in place, those that hold an input test last; return how many do not."""
    holds = np.zeros(len(rows), np.bool_)
    if test.kind == CATEGORICAL:
        feature = np.int32(test.feature)
        end = min(data.slot_range[feature, 1], data.columns.shape[0])
        for slot in range(data.slot_range[feature, 0], end):
            column = data.columns[slot]
            for i in range(len(rows)):
                holds[i] |= column[np.uint32(rows[i])] == feature
        if len(data.feature_ids) > len(data.lags) and end == data.columns.shape[0]:
            _look_further(data.feature_ids, feature, rows, holds)
    else:
        for i in range(len(rows)):
            holds[i] = data.numeric[rows[i], test.feature] > test.threshold
    # Few rows hold most features: swap those with the last ones that do not, and leave the rest.
    n_left = len(rows)
    for i in range(len(rows) - 1, -1, -1):
        if holds[i]:
            n_left -= 1
            rows[i], rows[n_left] = rows[n_left], rows[i]
            sums_at[i], sums_at[n_left] = sums_at[n_left], sums_at[i]
    return n_left


@step
def divide_rows(data: TreeInput, node_rows: NodeRows, test: NodeTest, family: Family) -> None:
    """Divide the rows of a node between its children, by a test of an input."""
    first, last = node_rows.first[family.parent], node_rows.last[family.parent]
    rows, sums_at = node_rows.rows[first:last], node_rows.sums_at[first:last]
    middle = first + partition_rows(data, test, rows, sums_at)
    node_rows.first[family.left] = first
    node_rows.last[family.left] = node_rows.first[family.right] = middle
    node_rows.last[family.right] = last


@step
def divide_pairs(
    data: TreeInput,
    entries: Entries,
    node_rows: NodeRows,
    member: npt.NDArray[np.bool_],
    family: Family,
) -> NodeRows:
    """Divide the pairs of a node's rows and contexts between its children; return all rows.

    member: (n_contexts,) the right child's contexts. A row with contexts on both sides stays in
    the left child's range and is copied to the right child's, with sums of its own there.
    """
    first, last = node_rows.first[family.parent], node_rows.last[family.parent]
    n_used = node_rows.n_used[0]
    if n_used + last - first > len(node_rows.rows):
        node_rows = _longer(node_rows, 2 * len(node_rows.rows) + last - first)
    rows, sums_at, sums = node_rows.rows, node_rows.sums_at, node_rows.sums
    lags, context_first = data.lags, data.context_first
    pair_g, pair_h, scales = entries.pair_g, entries.pair_h, entries.scales
    at_left = first
    at_right = n_used
    for i in range(first, last):
        row = rows[i]
        at = sums_at[i]
        here = sums[at_right : at_right + 1]
        here[0, 0] = here[0, 1] = here[0, 2] = here[0, 3] = 0.0
        begin, end = context_first[lags[row]], context_first[lags[row] + 1]
        add_row_contexts(pair_g, pair_h, scales, row, begin, end, member, here)
        if sums[at, 2] - here[0, 2] > 0:
            rows[at_left] = row
            sums_at[at_left] = at
            for j in range(4):
                sums[at, j] -= here[0, j]
            at_left += 1
        if here[0, 2] > 0:
            rows[at_right] = row
            sums_at[at_right] = at_right
            at_right += 1
    node_rows.first[family.left] = first
    node_rows.last[family.left] = at_left
    node_rows.first[family.right] = n_used
    node_rows.last[family.right] = node_rows.n_used[0] = at_right
    return node_rows
