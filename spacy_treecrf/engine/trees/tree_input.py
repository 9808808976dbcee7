"""What a tree is grown on: the columns of all rows, the entries of one tree, and its limits.

Kernels take these as they are; boosting makes them of the training data and of settings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class TreeInput(NamedTuple):
    """The columns trees are grown on; the same for every tree of a training."""

    feature_ids: npt.NDArray[np.int32]  # shape: (n_rows + n_more, n_slots)
    columns: npt.NDArray[np.int32]  # the same, transposed: to test one slot of many rows
    numeric: npt.NDArray[np.uint8]  # shape: (n_rows, n_numeric)
    n_features: int  # ids below this are frequent enough to be tested
    slot_range: npt.NDArray[np.int32]  # shape: (n_features, 2)
    column_of: npt.NDArray[np.int32]  # shape: (n_features,)
    n_columns: int  # categorical columns; numeric column c is column n_columns + c
    lags: npt.NDArray[np.uint8]  # shape: (n_rows,), previous labels in the row's contexts
    context_first: npt.NDArray[np.int64]
    context_labels: npt.NDArray[np.int32]
    n_labels: int


class Entries(NamedTuple):
    """The rows one tree is grown on, after sampling and trimming."""

    rows: npt.NDArray[np.int32]  # shape: (n_entries,)
    sums: npt.NDArray[np.float64]  # shape: (n_entries, 4), over all contexts of a row
    totals: npt.NDArray[np.float64]  # shape: (4,), of the entries and of the rows trimmed away
    scales: npt.NDArray[np.float64]  # shape: (2,), of gradient and hessian
    pair_g: npt.NDArray[np.float32]  # shape: (n_rows, n_row_contexts)
    pair_h: npt.NDArray[np.float32]  # the same, or (0, 0) for hessian 1


class TreeLimits(NamedTuple):
    """How far a tree may grow, and what each of its splits must satisfy."""

    leaves: int
    depth: int  # 0: no limit
    min_rows: int
    penalty: float
    min_gain: float
    tree_columns: float  # share of the columns drawn for the tree
    node_columns: float  # share of the columns drawn for every node
