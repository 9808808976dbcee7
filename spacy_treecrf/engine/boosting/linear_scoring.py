"""Sums of the linear weights of rows: those of eight or more labels are added up in registers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.intrinsics import LABELS_AT_ONCE, prefetch, sum_rows, sum_wide_rows
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.next_row import NOWHERE, next_row


class _LinearTables(NamedTuple):
    """Weights (n_features, n_labels) and what bins add (n_numeric, N_BINS, n_labels)."""

    weights: npt.NDArray[np.float32]
    bin_scores: npt.NDArray[np.float32]


@kernel
def add_linear_scores(
    feature_ids: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    weights: npt.NDArray[np.float32],
    bin_scores: npt.NDArray[np.float32],
    first: int,
    out: npt.NDArray[np.float32],
) -> None:
    """Set out (n, n_labels), 0 before, to the weights of features and bins of n rows.

    first: The first of these rows.
    """
    n_features, n_labels = weights.shape
    tables = _LinearTables(weights, bin_scores)
    addresses = np.empty(feature_ids.shape[1] + numeric.shape[1], np.int64)
    before = np.zeros(n_labels, np.float32)
    for i in range(len(out)):
        row = first + i
        for slot in range(feature_ids.shape[1] if i + 1 < len(out) else 0):
            feature = feature_ids[row + 1, slot]
            if 0 <= feature < n_features:
                prefetch(weights, feature, 0)
        if n_labels < LABELS_AT_ONCE:
            _add_one_by_one(feature_ids, numeric, tables, row, out[i])
        else:
            _add_in_registers(feature_ids, numeric, tables, row, addresses, before, out[i])


@step
def _add_one_by_one(
    feature_ids: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    tables: _LinearTables,
    row: int,
    out: npt.NDArray[np.float32],
) -> None:
    """Add the weights of a row to out (n_labels,)."""
    n_features, n_labels = tables.weights.shape
    at = np.int64(row)
    while at != NOWHERE:
        for slot in range(feature_ids.shape[1]):
            feature = feature_ids[at, slot]
            if 0 <= feature < n_features:
                for k in range(n_labels):
                    out[k] += tables.weights[feature, k]
        at = next_row(feature_ids, at)
    for column in range(numeric.shape[1]):
        bin_ = numeric[row, column]
        for k in range(n_labels):
            out[k] += tables.bin_scores[column, bin_, k]


@step
def _add_in_registers(
    feature_ids: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    tables: _LinearTables,
    row: int,
    addresses: npt.NDArray[np.int64],
    before: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
) -> None:
    """Set out (n_labels,) to the sum of the weights of a row, in the same order.

    addresses: Scratch for what is added. before: 0, also afterwards.
    """
    n_features, n_labels = tables.weights.shape
    row_bytes = n_labels * tables.weights.itemsize
    at = np.int64(row)
    while at != NOWHERE:
        n = 0
        for slot in range(feature_ids.shape[1]):
            feature = feature_ids[at, slot]
            if 0 <= feature < n_features:
                addresses[n] = tables.weights.ctypes.data + feature * row_bytes
                n += 1
        at = next_row(feature_ids, at)
        for column in range(numeric.shape[1] if at == NOWHERE else 0):
            bin_ = column * tables.bin_scores.shape[1] + np.int64(numeric[row, column])
            addresses[n] = tables.bin_scores.ctypes.data + bin_ * row_bytes
            n += 1
        if n_labels < 2 * LABELS_AT_ONCE:
            sum_rows(addresses, n, n_labels, before, out)
        else:
            sum_wide_rows(addresses, n, n_labels, before, out)
        for k in range(n_labels):
            before[k] = out[k] if at != NOWHERE else np.float32(0.0)
