"""Surrogate splits (CART): the tests of other columns that agree best with a node's test.

A surrogate sends right the rows that hold its test, or those that do not (`flip`). It is worth
as many rows as it sends the way of the node's test more than "all go with the majority" would,
among the rows that know both answers. Each column offers its best test; a node keeps the best few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.detours import MAX_SURROGATES
from spacy_treecrf.engine.histogram import N_BINS
from spacy_treecrf.engine.splitting import CATEGORICAL, NUMERIC

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


@njit(nogil=True, cache=True)
def _worth(right: float, left: float, known_right: float, known_left: float) -> tuple[float, bool]:
    """Of a test that holds for so many rows of each side: agreement beyond the majority's."""
    majority = max(known_right, known_left)
    same = right + known_left - left - majority
    flipped = left + known_right - right - majority
    if flipped > same:
        return flipped, True
    return same, False


@njit(nogil=True, cache=True)
def find_surrogates(
    codes: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    n_features: int,
    column_of: npt.NDArray[np.int32],
    n_columns: int,
    missing: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int32],
    amount: npt.NDArray[np.float64],
    side: npt.NDArray[np.int8],
    tested: int,
) -> Surrogates:
    """The surrogates of a test on column `tested` at a node of these rows.

    missing: (n_rows, n_columns + n_numeric). amount: (n,) how much each row counts.
    side: (n,) where the node's test sends a row, or UNKNOWN.
    """
    n_all = n_columns + numeric.shape[1]
    known = np.zeros((n_all, 2))
    counts = np.zeros((n_features, 2))
    bins = np.zeros((numeric.shape[1], N_BINS, 2))
    for i in range(len(rows)):
        where = side[i]
        if where == UNKNOWN:
            continue
        row = rows[i]
        for column in range(n_all):
            if not missing[row, column]:
                known[column, where] += amount[i]
        for slot in range(codes.shape[1]):
            feature = codes[row, slot]
            if 0 <= feature < n_features:
                counts[feature, where] += amount[i]
        for d in range(numeric.shape[1]):
            bins[d, numeric[row, d], where] += amount[i]

    worth = np.full(n_all, LEAST_WORTH)
    kind = np.zeros(n_all, np.uint8)
    best = np.zeros(n_all, np.int32)
    threshold = np.zeros(n_all, np.int32)
    flip = np.zeros(n_all, np.bool_)
    for feature in range(n_features):
        column = column_of[feature]
        if counts[feature, 0] + counts[feature, 1] == 0.0 or column == tested:
            continue
        value, flipped = _worth(
            counts[feature, RIGHT], counts[feature, LEFT], known[column, RIGHT], known[column, LEFT]
        )
        if value > worth[column]:
            worth[column] = value
            kind[column] = CATEGORICAL
            best[column] = feature
            flip[column] = flipped
    for d in range(numeric.shape[1]):
        column = n_columns + d
        if column == tested:
            continue
        right = 0.0
        left = 0.0
        for cut in range(N_BINS - 2, 0, -1):
            if bins[d, cut + 1, RIGHT] + bins[d, cut + 1, LEFT] == 0.0:
                continue
            right += bins[d, cut + 1, RIGHT]
            left += bins[d, cut + 1, LEFT]
            value, flipped = _worth(right, left, known[column, RIGHT], known[column, LEFT])
            if value > worth[column]:
                worth[column] = value
                kind[column] = NUMERIC
                best[column] = d
                threshold[column] = cut
                flip[column] = flipped

    chosen = np.zeros(MAX_SURROGATES, np.int64)
    n = 0
    for _ in range(MAX_SURROGATES):
        top = -1
        for column in range(n_all):  # ties go to the first column
            if kind[column] and worth[column] > (worth[top] if top >= 0 else 0.0):
                top = column
        if top < 0:
            break
        chosen[n] = top
        n += 1
        worth[top] = 0.0
    found = Surrogates(
        np.empty(n, np.uint8), np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.bool_)
    )
    for i in range(n):
        found.kind[i] = kind[chosen[i]]
        found.feature[i] = best[chosen[i]]
        found.threshold[i] = threshold[chosen[i]]
        found.flip[i] = flip[chosen[i]]
    return found
