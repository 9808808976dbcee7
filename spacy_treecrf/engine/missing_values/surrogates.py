"""Surrogate splits (CART): the tests of other columns that agree best with a node's test.

A surrogate sends right the rows that hold its test, or those that do not (`flip`). It is worth
as many rows as it sends the way of the node's test more than "all go with the majority" would,
among the rows that know both answers. Each column offers its best test; a node keeps the best few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import step
from spacy_treecrf.engine.trees.histogram import N_BINS
from spacy_treecrf.engine.trees.missing_branches import MAX_SURROGATES
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, NUMERIC
from spacy_treecrf.engine.trees.tree_input import TreeInput

LEFT = 0
RIGHT = 1
UNKNOWN = -1
LEAST_WORTH = 1e-6  # rows; what rounding may fake


class Surrogates(NamedTuple):
    """Tests in falling order of worth; threshold 0 for categorical ones."""

    kind: npt.NDArray[np.uint8]
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    flip: npt.NDArray[np.bool_]


class SideCounts(NamedTuple):
    """How many rows go LEFT and RIGHT at a node: the last axis of each array."""

    known: npt.NDArray[np.float64]  # shape: (n_columns + n_numeric, 2), rows that have a column
    features: npt.NDArray[np.float64]  # shape: (n_features, 2)
    bins: npt.NDArray[np.float64]  # shape: (n_numeric, N_BINS, 2)


class ColumnTests(NamedTuple):
    """The test of each column that is worth most. shapes: (n_columns + n_numeric,)"""

    worth: npt.NDArray[np.float64]
    kind: npt.NDArray[np.uint8]  # 0: no test of the column is worth anything
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    flip: npt.NDArray[np.bool_]


@step
def room_for_surrogates(n: int) -> Surrogates:
    """Return room for n surrogates."""
    return Surrogates(
        np.zeros(n, np.uint8), np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.bool_)
    )


@step
def _count_sides(
    data: TreeInput,
    missing: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int32],
    amount: npt.NDArray[np.float64],
    side: npt.NDArray[np.int8],
) -> SideCounts:
    """Count the rows of each side that know a column, have a feature, or are in a bin."""
    n_all = data.n_columns + data.numeric.shape[1]
    known = np.zeros((n_all, 2))
    features = np.zeros((data.n_features, 2))
    bins = np.zeros((data.numeric.shape[1], N_BINS, 2))
    for i in range(len(rows)):
        where = side[i]
        if where == UNKNOWN:
            continue
        row = rows[i]
        for column in range(n_all):
            if not missing[row, column]:
                known[column, where] += amount[i]
        for slot in range(data.feature_ids.shape[1]):
            feature = data.feature_ids[row, slot]
            if 0 <= feature < data.n_features:
                features[feature, where] += amount[i]
        for d in range(data.numeric.shape[1]):
            bins[d, data.numeric[row, d], where] += amount[i]
    return SideCounts(known, features, bins)


@step
def _offer(
    tests: ColumnTests,
    column: int,
    known: npt.NDArray[np.float64],
    left: float,
    right: float,
    kind: int,
    feature: int,
    threshold: int,
) -> None:
    """Keep a test if it is worth more than the column's best so far.

    left, right: the rows of each side for which the test holds. known: (2,) all that know it.
    """
    majority = max(known[RIGHT], known[LEFT])
    same = right + known[LEFT] - left - majority
    flipped = left + known[RIGHT] - right - majority
    worth = max(same, flipped)
    if worth > tests.worth[column]:
        tests.worth[column] = worth
        tests.kind[column] = kind
        tests.feature[column] = feature
        tests.threshold[column] = threshold
        tests.flip[column] = flipped > same


@step
def _test_columns(data: TreeInput, counts: SideCounts, tested: int) -> ColumnTests:
    """Return the best test of each column but the one that the node tests."""
    n_all = len(counts.known)
    tests = ColumnTests(
        np.full(n_all, LEAST_WORTH),
        np.zeros(n_all, np.uint8),
        np.zeros(n_all, np.int32),
        np.zeros(n_all, np.int32),
        np.zeros(n_all, np.bool_),
    )
    for feature in range(data.n_features):
        column = np.int64(data.column_of[feature])
        left, right = counts.features[feature, LEFT], counts.features[feature, RIGHT]
        if left + right != 0.0 and column != tested:
            _offer(tests, column, counts.known[column], left, right, CATEGORICAL, feature, 0)
    for d in range(data.numeric.shape[1]):
        column = np.int64(data.n_columns + d)
        if column == tested:
            continue
        left = right = 0.0
        for cut in range(N_BINS - 2, 0, -1):
            own = counts.bins[d, cut + 1]
            if own[LEFT] + own[RIGHT] != 0.0:
                left += own[LEFT]
                right += own[RIGHT]
                _offer(tests, column, counts.known[column], left, right, NUMERIC, d, cut)
    return tests


@step
def find_surrogates(
    data: TreeInput,
    missing: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int32],
    amount: npt.NDArray[np.float64],
    side: npt.NDArray[np.int8],
    tested: int,
) -> Surrogates:
    """Return the surrogates of a test on column `tested` at a node of these rows.

    missing: (n_rows, n_columns + n_numeric). amount: (n,) how much each row counts.
    side: (n,) where the node's test sends a row, or UNKNOWN.
    """
    tests = _test_columns(data, _count_sides(data, missing, rows, amount, side), tested)
    room = room_for_surrogates(MAX_SURROGATES)
    n = 0
    for _ in range(MAX_SURROGATES):
        top = -1
        for column in range(len(tests.worth)):  # ties go to the first column
            if tests.kind[column] and tests.worth[column] > (tests.worth[top] if top >= 0 else 0.0):
                top = column
        if top < 0:
            break
        room.kind[n] = tests.kind[top]
        room.feature[n] = tests.feature[top]
        room.threshold[n] = tests.threshold[top]
        room.flip[n] = tests.flip[top]
        tests.worth[top] = 0.0
        n += 1
    return Surrogates(room.kind[:n], room.feature[:n], room.threshold[:n], room.flip[:n])
