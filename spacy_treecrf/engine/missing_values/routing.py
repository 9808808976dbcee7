"""Which way rows go at a node whose test they cannot answer.

They are sent while a tree grows, and once more, all of them, to find a grown tree's branches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.missing_values.surrogates import (
    LEFT,
    RIGHT,
    UNKNOWN,
    Surrogates,
    find_surrogates,
    room_for_surrogates,
)
from spacy_treecrf.engine.trees.growing_tree import Tree, node_test
from spacy_treecrf.engine.trees.missing_branches import MAX_SURROGATES, TreeBranches
from spacy_treecrf.engine.trees.splitting import (
    CATEGORICAL,
    CONTEXT,
    LEAF,
    NodeTest,
    copy_members,
    divide_members,
)
from spacy_treecrf.engine.trees.tree_input import TreeInput


class WeightedRows(NamedTuple):
    """The rows of a node, and how much of each is there."""

    rows: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float64]


@step
def column_tested(data: TreeInput, test: NodeTest) -> int:
    """Return the column that a categorical or numeric test asks for."""
    if test.kind == CATEGORICAL:
        return int(data.column_of[test.feature])
    return int(data.n_columns + test.feature)


@step
def answer(data: TreeInput, missing: npt.NDArray[np.bool_], test: NodeTest, row: int) -> int:
    """Return LEFT, RIGHT (the test holds) or UNKNOWN."""
    if missing[row, column_tested(data, test)]:
        return UNKNOWN
    if test.kind == CATEGORICAL:
        last = min(data.slot_range[test.feature, 1], data.feature_ids.shape[1])
        for slot in range(data.slot_range[test.feature, 0], last):
            if data.feature_ids[row, slot] == test.feature:
                return RIGHT
        return LEFT
    return RIGHT if data.numeric[row, test.feature] > test.threshold else LEFT


@step
def stand_in(
    data: TreeInput, missing: npt.NDArray[np.bool_], surrogates: Surrogates, row: int
) -> int:
    """Return the way that the first surrogate with an answer shows, or UNKNOWN."""
    for i in range(len(surrogates.kind)):
        kind, feature = np.int64(surrogates.kind[i]), np.int64(surrogates.feature[i])
        test = NodeTest(kind, feature, np.int64(surrogates.threshold[i]))
        side = answer(data, missing, test, row)
        if side != UNKNOWN:
            return int(RIGHT - side if surrogates.flip[i] else side)
    return UNKNOWN


@step
def send(
    data: TreeInput,
    missing: npt.NDArray[np.bool_],
    test: NodeTest,
    rows: npt.NDArray[np.int32],
    amount: npt.NDArray[np.float64],
    surrogate: bool,
    side: npt.NDArray[np.int8],
) -> tuple[float, Surrogates]:
    """Set the side of each row; return n_right / (n_left + n_right) of the rows with an answer.

    amount: (n,) how much each row counts. With surrogates, which are returned too, every row gets
    a side, in the end that of the majority; without, those that cannot answer stay UNKNOWN.
    """
    total = np.zeros(2)
    for i in range(len(rows)):
        side[i] = answer(data, missing, test, rows[i])
        if side[i] != UNKNOWN:
            total[side[i]] += amount[i]
    both = total[LEFT] + total[RIGHT]
    share = np.float64(np.float32(total[RIGHT] / both)) if both > 0.0 else 0.0
    if not surrogate:
        return share, room_for_surrogates(0)
    found = find_surrogates(data, missing, rows, amount, side, column_tested(data, test))
    for i in range(len(rows)):
        if side[i] == UNKNOWN:
            side[i] = stand_in(data, missing, found, rows[i])
            if side[i] == UNKNOWN:
                side[i] = RIGHT if share > 0.5 else LEFT
    return share, found


@step
def contexts_in(data: TreeInput, member: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return how many contexts a node has of a row with so many lags. shape: (order + 1,)

    member: (n_contexts,) the node's contexts.
    """
    n = np.zeros(len(data.context_first) - 1, np.int64)
    for lag in range(len(n)):
        for c in range(data.context_first[lag], data.context_first[lag + 1]):
            n[lag] += member[c]
    return n


@step
def _go_by_context(
    data: TreeInput,
    rows: npt.NDArray[np.int32],
    left_member: npt.NDArray[np.bool_],
    right_member: npt.NDArray[np.bool_],
    shares: npt.NDArray[np.float64],
) -> None:
    """Send each row to the children that have contexts of it, as a whole. shares: (2, n)"""
    n_left, n_right = contexts_in(data, left_member), contexts_in(data, right_member)
    for i in range(len(rows)):
        shares[LEFT, i] = 1.0 if n_left[data.lags[rows[i]]] else 0.0
        shares[RIGHT, i] = 1.0 if n_right[data.lags[rows[i]]] else 0.0


@step
def _go_by_input(
    data: TreeInput,
    missing: npt.NDArray[np.bool_],
    test: NodeTest,
    here: WeightedRows,
    member: npt.NDArray[np.bool_],
    surrogate: bool,
    shares: npt.NDArray[np.float64],
) -> tuple[float, Surrogates]:
    """Send each row by its answer, or in parts both ways. shares: (2, n)

    A row counts as many times as the node has contexts of it. Returns what `send` returns.
    """
    rows = here.rows
    n_contexts = contexts_in(data, member)
    amount = np.empty(len(rows))
    for i in range(len(rows)):
        amount[i] = here.weight[i] * n_contexts[data.lags[rows[i]]]
    side = np.zeros(len(rows), np.int8)
    share, found = send(data, missing, test, rows, amount, surrogate, side)
    for i in range(len(rows)):
        if side[i] == UNKNOWN:
            shares[LEFT, i] = 1.0 - share
            shares[RIGHT, i] = share
        else:
            shares[LEFT, i] = 1.0 if side[i] == LEFT else 0.0
            shares[RIGHT, i] = 1.0 if side[i] == RIGHT else 0.0
    return share, found


@step
def _all_rows(n_rows: int) -> WeightedRows:
    """Return all rows of the training, each with weight 1."""
    rows = np.empty(n_rows, np.int32)
    for row in range(n_rows):
        rows[row] = row
    return WeightedRows(rows, np.ones(n_rows))


@step
def _part_of(here: WeightedRows, share: npt.NDArray[np.float64]) -> WeightedRows:
    """Return the rows of which a share goes to a child. share: (n,)"""
    rows, weight = np.empty_like(here.rows), np.empty_like(here.weight)
    n = 0
    for i in range(len(share)):
        if share[i] > 0.0:
            rows[n] = here.rows[i]
            weight[n] = here.weight[i] * share[i]
            n += 1
    return WeightedRows(rows[:n], weight[:n])


@step
def _add_surrogates(found: Surrogates, kept: Surrogates, n_kept: int) -> int:
    """Write a node's surrogates behind the n_kept there are; return how many there are then."""
    for i in range(len(found.kind)):
        kept.kind[n_kept] = found.kind[i]
        kept.feature[n_kept] = found.feature[i]
        kept.threshold[n_kept] = found.threshold[i]
        kept.flip[n_kept] = found.flip[i]
        n_kept += 1
    return n_kept


@kernel
def find_missing_branches(
    tree: Tree, data: TreeInput, missing: npt.NDArray[np.bool_], surrogate: bool
) -> TreeBranches:
    """Send all rows down the tree, those that trimming or sampling left out of it included.

    Rows go as they will in predictions: those that cannot answer go both ways, or where the
    surrogates say. A node counts pairs of a row and a context.
    """
    n_nodes = len(tree.kind)
    right_share = np.zeros(n_nodes, np.float32)
    n_surrogates = np.zeros(n_nodes, np.int32)
    kept = room_for_surrogates(n_nodes * MAX_SURROGATES if surrogate else 0)
    n_kept = 0
    nothing = WeightedRows(np.zeros(0, np.int32), np.zeros(0))
    rows_of = [nothing for _ in range(n_nodes)]
    rows_of[0] = _all_rows(len(data.feature_ids))
    member = np.ones((n_nodes, data.context_labels.shape[0]), np.bool_)
    for node in range(n_nodes):  # children follow their parents
        here = rows_of[node]
        rows_of[node] = nothing
        if tree.kind[node] == LEAF:
            continue
        left, right = tree.left[node], tree.right[node]
        test = node_test(tree, node)
        shares = np.empty((2, len(here.rows)))
        if test.kind == CONTEXT:
            divide_members(data.context_labels, test, member[node], member[left], member[right])
            _go_by_context(data, here.rows, member[left], member[right], shares)
        else:
            copy_members(member[node], member[left])
            copy_members(member[node], member[right])
            share, found = _go_by_input(data, missing, test, here, member[node], surrogate, shares)
            right_share[node] = share
            n_surrogates[node] = len(found.kind)
            n_kept = _add_surrogates(found, kept, n_kept)
        rows_of[left] = _part_of(here, shares[LEFT])
        rows_of[right] = _part_of(here, shares[RIGHT])
    return TreeBranches(
        right_share,
        n_surrogates,
        kept.kind[:n_kept],
        kept.feature[:n_kept],
        kept.threshold[:n_kept],
        kept.flip[:n_kept],
    )
