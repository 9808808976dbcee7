"""Contexts: the previous labels that a position of a joint-family model may see.

A tree of such a model has a value for every pair of a row and one of its contexts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Contexts(NamedTuple):
    """All contexts of up to `order` previous labels, grouped by how many of them exist.

    A position with m previous labels (m < order near the start of a sequence) has the contexts
    first[m] .. first[m] + K**m. labels[context, lag - 1] is the label `lag` positions back, K
    where that is before the start. Order 0 has the one context that holds nothing.
    """

    first: npt.NDArray[np.int64]  # shape: (order + 2,), the last one past the end
    labels: npt.NDArray[np.int32]  # shape: (n_contexts, order)


# The contexts of rows that see no previous label.
NO_CONTEXTS = Contexts(np.array([0, 1], np.int64), np.zeros((1, 0), np.int32))


def list_contexts(n_labels: int, order: int) -> Contexts:
    """Return all contexts of up to `order` previous labels."""
    sizes = [n_labels**m for m in range(order + 1)]
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    labels = np.full((sum(sizes), order), n_labels, dtype=np.int32)
    for m, size in enumerate(sizes):
        for lag in range(m):
            labels[first[m] : first[m] + size, lag] = np.arange(size) // n_labels**lag % n_labels
    return Contexts(first, labels)


def count_lags(offsets: npt.NDArray[np.int64], order: int) -> npt.NDArray[np.uint8]:
    """Return how many previous labels each row has, at most `order`. shape: (n_rows,)"""
    if order == 0:
        return np.zeros(int(offsets[-1]), np.uint8)
    if len(offsets) == 2:  # one sequence
        lags = np.full(int(offsets[-1]), order, np.uint8)
        lags[:order] = range(min(order, len(lags)))
        return lags
    starts = np.repeat(offsets[:-1], np.diff(offsets))
    return np.minimum(np.arange(offsets[-1]) - starts, order).astype(np.uint8)
