"""Which way rows with missing values go at a node, and the detours of a tree that is grown."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.detours import MAX_SURROGATES, TreeDetours
from spacy_treecrf.engine.grower import Tree, TreeInput
from spacy_treecrf.engine.splitting import CATEGORICAL, CONTEXT, LEAF
from spacy_treecrf.engine.surrogates import LEFT, RIGHT, UNKNOWN, Surrogates, find_surrogates


@njit(nogil=True, cache=True)
def column_tested(data: TreeInput, kind: int, feature: int) -> int:
    """The column that a categorical or numeric test asks for."""
    if kind == CATEGORICAL:
        return int(data.column_of[feature])
    return data.n_columns + feature


@njit(nogil=True, cache=True)
def answer(
    data: TreeInput,
    missing: npt.NDArray[np.bool_],
    kind: int,
    feature: int,
    threshold: int,
    row: int,
) -> int:
    """LEFT, RIGHT (the test holds) or UNKNOWN."""
    if missing[row, column_tested(data, kind, feature)]:
        return UNKNOWN
    if kind == CATEGORICAL:
        last = min(data.slot_range[feature, 1], data.codes.shape[1])
        for slot in range(data.slot_range[feature, 0], last):
            if data.codes[row, slot] == feature:
                return RIGHT
        return LEFT
    return RIGHT if data.numeric[row, feature] > threshold else LEFT


@njit(nogil=True, cache=True)
def stand_in(
    data: TreeInput, missing: npt.NDArray[np.bool_], surrogates: Surrogates, row: int
) -> int:
    """The way that the first surrogate with an answer shows, or UNKNOWN."""
    for i in range(len(surrogates.kind)):
        kind, feature = surrogates.kind[i], surrogates.feature[i]
        side = answer(data, missing, kind, feature, surrogates.threshold[i], row)
        if side != UNKNOWN:
            return int(RIGHT - side if surrogates.flip[i] else side)
    return UNKNOWN


@njit(nogil=True, cache=True)
def send(
    data: TreeInput,
    missing: npt.NDArray[np.bool_],
    kind: int,
    feature: int,
    threshold: int,
    rows: npt.NDArray[np.int32],
    amount: npt.NDArray[np.float64],
    surrogate: bool,
    side: npt.NDArray[np.int8],
) -> tuple[float, Surrogates]:
    """Set the side of each row; returns n_right / (n_left + n_right) of the rows with an answer.

    amount: (n,) how much each row counts. With surrogates, which are returned too, every row gets
    a side, in the end that of the majority; without, those that cannot answer stay UNKNOWN.
    """
    total = np.zeros(2)
    for i in range(len(rows)):
        side[i] = answer(data, missing, kind, feature, threshold, rows[i])
        if side[i] != UNKNOWN:
            total[side[i]] += amount[i]
    both = total[LEFT] + total[RIGHT]
    share = np.float64(np.float32(total[RIGHT] / both)) if both > 0.0 else 0.0
    if not surrogate:
        nothing = np.zeros(0, np.int32)
        return share, Surrogates(
            nothing.astype(np.uint8), nothing, nothing, nothing.astype(np.bool_)
        )
    found = find_surrogates(
        data.codes,
        data.numeric,
        data.n_features,
        data.column_of,
        data.n_columns,
        missing,
        rows,
        amount,
        side,
        column_tested(data, kind, feature),
    )
    for i in range(len(rows)):
        if side[i] == UNKNOWN:
            side[i] = stand_in(data, missing, found, rows[i])
            if side[i] == UNKNOWN:
                side[i] = RIGHT if share > 0.5 else LEFT
    return share, found


@njit(nogil=True, cache=True)
def find_detours(
    tree: Tree, data: TreeInput, missing: npt.NDArray[np.bool_], surrogate: bool
) -> TreeDetours:
    """Send all rows down the tree, those that trimming or sampling left out of it included.

    Rows go as they will in predictions: those that cannot answer go both ways, or where the
    surrogates say. A node counts pairs of a row and a context.
    """
    n_nodes = len(tree.kind)
    n_contexts = data.context_labels.shape[0]
    right_share = np.zeros(n_nodes, np.float32)
    n_surrogates = np.zeros(n_nodes, np.int32)
    room = n_nodes * MAX_SURROGATES if surrogate else 0
    kinds = np.zeros(room, np.uint8)
    features = np.zeros(room, np.int32)
    thresholds = np.zeros(room, np.int32)
    flips = np.zeros(room, np.bool_)
    n_found = 0
    all_rows = np.arange(data.codes.shape[0]).astype(np.int32)
    rows_of = [all_rows[:0] for _ in range(n_nodes)]
    weight_of = [np.zeros(0) for _ in range(n_nodes)]
    rows_of[0] = all_rows
    weight_of[0] = np.ones(len(all_rows))
    member = np.zeros((n_nodes, n_contexts), np.bool_)
    member[0] = True
    pairs = np.zeros(len(data.context_first) - 1)
    for node in range(n_nodes):  # children follow their parents
        if tree.kind[node] == LEAF:
            rows_of[node] = all_rows[:0]
            weight_of[node] = np.zeros(0)
            continue
        rows = rows_of[node]
        weight = weight_of[node]
        left = tree.left[node]
        right = tree.right[node]
        feature = tree.feature[node]
        threshold = tree.threshold[node]
        to_left = np.ones(len(rows))
        to_right = np.ones(len(rows))
        if tree.kind[node] == CONTEXT:
            for c in range(n_contexts):
                holds = data.context_labels[c, feature] == threshold
                member[right, c] = member[node, c] and holds
                member[left, c] = member[node, c] and not holds
            for i in range(len(rows)):
                lag = data.lags[rows[i]]
                has = np.zeros(2)
                for c in range(data.context_first[lag], data.context_first[lag + 1]):
                    has[LEFT] += member[left, c]
                    has[RIGHT] += member[right, c]
                to_left[i] = 1.0 if has[LEFT] > 0.0 else 0.0
                to_right[i] = 1.0 if has[RIGHT] > 0.0 else 0.0
        else:
            member[left] = member[node]
            member[right] = member[node]
            for lag in range(len(pairs)):
                pairs[lag] = 0.0
                for c in range(data.context_first[lag], data.context_first[lag + 1]):
                    pairs[lag] += member[node, c]
            amount = np.empty(len(rows))
            for i in range(len(rows)):
                amount[i] = weight[i] * pairs[data.lags[rows[i]]]
            side = np.zeros(len(rows), np.int8)
            share, found = send(
                data,
                missing,
                tree.kind[node],
                feature,
                threshold,
                rows,
                amount,
                surrogate,
                side,
            )
            right_share[node] = share
            n_surrogates[node] = len(found.kind)
            for i in range(len(found.kind)):
                kinds[n_found] = found.kind[i]
                features[n_found] = found.feature[i]
                thresholds[n_found] = found.threshold[i]
                flips[n_found] = found.flip[i]
                n_found += 1
            for i in range(len(rows)):
                if side[i] == UNKNOWN:
                    to_left[i] = 1.0 - share
                    to_right[i] = share
                else:
                    to_left[i] = 1.0 if side[i] == LEFT else 0.0
                    to_right[i] = 1.0 if side[i] == RIGHT else 0.0
        for child, part in ((left, to_left), (right, to_right)):
            goes = part > 0.0
            rows_of[child] = rows[goes]
            weight_of[child] = (weight * part)[goes]
        rows_of[node] = all_rows[:0]
        weight_of[node] = np.zeros(0)
    return TreeDetours(
        right_share,
        n_surrogates,
        kinds[:n_found],
        features[:n_found],
        thresholds[:n_found],
        flips[:n_found],
    )
