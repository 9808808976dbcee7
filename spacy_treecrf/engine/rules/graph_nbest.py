"""The n best labellings of a graph, best first.

The best labelling from every state to the end is known. A candidate leaves a found labelling at a
position by another label and is the best possible after it, so that its score is known before it
is followed. Whenever the best candidate is taken, those that leave it later become candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.chain_kernels import Labels
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.rules.graph import NOWHERE
from spacy_treecrf.engine.rules.graph_kernels import (
    Trellis,
    follow_best,
    next_state,
    step_value,
)

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class _Candidates(NamedTuple):
    """A heap of labellings that leave found ones, the best first."""

    values: Doubles  # shape: (room,)
    leaves: Ints  # shape: (room, 3), the found labelling, where it is left, and by which label
    size: Ints  # shape: (1,)


@kernel
def _swap(heap: _Candidates, i: int, j: int) -> None:
    heap.values[i], heap.values[j] = heap.values[j], heap.values[i]
    for k in range(3):
        heap.leaves[i, k], heap.leaves[j, k] = heap.leaves[j, k], heap.leaves[i, k]


@kernel
def _push(heap: _Candidates, value: float, parent: int, t: int, y: int) -> None:
    i = heap.size[0]
    heap.size[0] += 1
    heap.values[i] = value
    heap.leaves[i, 0], heap.leaves[i, 1], heap.leaves[i, 2] = parent, t, y
    while i and heap.values[i] > heap.values[(i - 1) // 2]:
        _swap(heap, i, (i - 1) // 2)
        i = (i - 1) // 2


@kernel
def _pop(heap: _Candidates) -> int:
    """Take the best candidate out of the heap, which has one; returns where it is now."""
    heap.size[0] -= 1
    last = heap.size[0]
    _swap(heap, 0, last)
    i = 0
    while 2 * i + 1 < last:
        child = 2 * i + 1
        if child + 1 < last and heap.values[child + 1] > heap.values[child]:
            child += 1
        if heap.values[child] <= heap.values[i]:
            break
        _swap(heap, i, child)
        i = child
    return int(last)


@kernel
def _keep_best(heap: _Candidates, n: int) -> None:
    """Drop all candidates but the n best."""
    order = np.argsort(-heap.values[: heap.size[0]], kind="mergesort")[:n]
    values, leaves = heap.values[order], heap.leaves[order]
    heap.size[0] = len(order)
    heap.values[: len(order)] = values  # falling, which is a heap
    heap.leaves[: len(order)] = leaves


@kernel
def _add_candidates(
    trellis: Trellis, best: Doubles, found: Labels, which: int, first: int, heap: _Candidates
) -> None:
    """Add what leaves a found labelling at position `first` or later."""
    s, prefix = 0, 0.0
    for t in range(len(trellis.scores)):
        chosen = found[which, t]
        for y in range(len(trellis.steps.end)):
            after = next_state(trellis, t, s, y)
            if t < first or y == chosen or after == NOWHERE:
                continue
            value = prefix + step_value(trellis, t, s, y) + best[t + 1, after]
            if value > -np.inf:
                _push(heap, value, which, t, y)
        prefix += step_value(trellis, t, s, chosen)
        s = next_state(trellis, t, s, chosen)


@kernel
def best_labellings(trellis: Trellis, best: Doubles, found: Labels, values: Doubles) -> int:
    """Fill found (n, length) and values (n,) with the n best labellings, and their scores.

    best: what `fill_best` filled, where there is a labelling. Returns how many there are, at
    most n.
    """
    n, length = found.shape
    follow_best(trellis, best, 0, 0, found[0])
    values[0] = best[0, 0]
    most_new = length * len(trellis.steps.end)
    room = 2 * n + most_new
    heap = _Candidates(np.empty(room), np.empty((room, 3), np.int64), np.zeros(1, np.int64))
    _add_candidates(trellis, best, found, 0, 0, heap)
    count = 1
    while count < n and heap.size[0] > 0:
        taken = _pop(heap)
        parent, t, y = heap.leaves[taken, 0], heap.leaves[taken, 1], heap.leaves[taken, 2]
        values[count] = heap.values[taken]
        s = 0
        for i in range(t):
            found[count, i] = found[parent, i]
            s = next_state(trellis, i, s, found[count, i])
        found[count, t] = y
        follow_best(trellis, best, t + 1, next_state(trellis, t, s, y), found[count])
        if heap.size[0] + most_new > room:
            _keep_best(heap, n - count)
        _add_candidates(trellis, best, found, count, t + 1, heap)
        count += 1
    return count
