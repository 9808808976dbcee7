"""Sums of floats that no order of adding changes: each is the exact sum, rounded once.

Chunks are summed up one by one, in whatever way; sums over chunks are made here. So they are the
same wherever the chunks were, in threads of one machine or on several machines.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BLOCK = 4096


def _total(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except (ValueError, OverflowError):  # of infinities that contradict each other
        return math.nan


def exact_total(values: Floats) -> Floats:
    """The sum over the first axis. values: (n, ...)"""
    if not values.any():
        return np.zeros(values.shape[1:])
    columns = values.reshape(len(values), -1).T
    totals = np.empty(len(columns))
    for first in range(0, len(columns), BLOCK):  # as Python's floats they take much memory
        some = columns[first : first + BLOCK].tolist()
        totals[first : first + BLOCK] = [_total(column) for column in some]
    return totals.reshape(values.shape[1:])


def exact_terms(values: Floats) -> Floats:
    """A few numbers whose sum over the first axis is exactly that of the values, before rounding.

    Terms of several parts, one behind the other, have the exact total of all parts' values.
    values: (n, ...)
    """
    terms: list[Floats] = []
    rest = values
    while (found := exact_total(rest)).any():
        terms.append(found)
        if not np.isfinite(found).all():
            break
        rest = np.concatenate([rest, -found[None]])
    return np.stack(terms) if terms else np.zeros((0, *values.shape[1:]))
