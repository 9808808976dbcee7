"""The n most probable label sequences, found lazily (Huang and Chiang 2005, algorithm 3).

A node is a position with the context that follows it. The paths that end in it, best first, are
the merged lists of the K nodes that lead to it. Viterbi finds the best path of every node. The next
one is looked for when it is asked for, which asks at most one node of each position before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.chain import (
    Chain,
    Doubles,
    Floats,
    Ints,
    Labels,
    StepPotentials,
    kernel_arguments,
    log_normalizers,
    potential,
    step_potentials,
)
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.limits import check_nbest, check_nbest_labels

# Instead of a path: it was not asked for yet, or there is none.
UNKNOWN, NONE = -1, -2


class _Trellis(NamedTuple):
    """The potentials of one sequence, and how its nodes are joined.

    Node c of a position is entered from its sources 0 to K - 1, in the order of their numbers: from
    context c // K + source * stride by label c % K, in chains of order 0 by label `source`.
    """

    scores: Floats  # shape: (length, 1 or n_contexts, n_labels)
    steps: StepPotentials
    n_contexts: int
    stride: int


class _Paths(NamedTuple):
    """Paths by their numbers. The best one of node c at position t is number t * n_contexts + c."""

    value: Doubles
    before: Ints  # the path that it extends by one label
    source: npt.NDArray[np.int32]  # where that one ends
    following: Ints  # the next best path of the same node
    used: Ints  # shape: (1,)


class _Heaps(NamedTuple):
    """Candidates for the next path of each node that was asked for one: one for each source."""

    begin: Ints  # shape: (length * n_contexts,), of the node's candidates, or UNKNOWN
    size: Ints  # shape: (length * n_contexts,)
    value: Doubles
    source: npt.NDArray[np.int32]
    path: Ints  # the path before
    used: Ints  # shape: (1,)


@kernel
def _is_better(heaps: _Heaps, a: int, b: int) -> bool:
    """Whether candidate a comes before b: by value, and of equals by source."""
    if heaps.value[a] == heaps.value[b]:
        return bool(heaps.source[a] < heaps.source[b])
    return bool(heaps.value[a] > heaps.value[b])


@kernel
def _swap(heaps: _Heaps, a: int, b: int) -> None:
    heaps.value[a], heaps.value[b] = heaps.value[b], heaps.value[a]
    heaps.source[a], heaps.source[b] = heaps.source[b], heaps.source[a]
    heaps.path[a], heaps.path[b] = heaps.path[b], heaps.path[a]


@kernel
def _push(heaps: _Heaps, node: int, value: float, source: int, path: int) -> None:
    """Add a candidate to the node's heap, unless it is forbidden."""
    if not value > -np.inf:
        return
    begin = heaps.begin[node]
    i = heaps.size[node]
    heaps.size[node] += 1
    heaps.value[begin + i], heaps.source[begin + i] = value, source
    heaps.path[begin + i] = path
    while i > 0 and _is_better(heaps, begin + i, begin + (i - 1) // 2):
        _swap(heaps, begin + i, begin + (i - 1) // 2)
        i = (i - 1) // 2


@kernel
def _pop(heaps: _Heaps, node: int) -> int:
    """Take the best candidate out of the node's heap, which has one; returns where it is now."""
    begin = heaps.begin[node]
    heaps.size[node] -= 1
    last = heaps.size[node]
    _swap(heaps, begin, begin + last)
    i = 0
    while 2 * i + 1 < last:
        child = 2 * i + 1
        if child + 1 < last and _is_better(heaps, begin + child + 1, begin + child):
            child += 1
        if not _is_better(heaps, begin + child, begin + i):
            break
        _swap(heaps, begin + child, begin + i)
        i = child
    return int(begin + last)


@kernel
def _origin(trellis: _Trellis, c: int, source: int) -> tuple[int, int]:
    """The context and the label by which node c is entered from a source."""
    n_labels = len(trellis.steps.end)
    if trellis.steps.order == 0:
        return 0, source
    return c // n_labels + source * trellis.stride, c % n_labels


@kernel
def _extended(trellis: _Trellis, paths: _Paths, t: int, c: int, source: int, path: int) -> float:
    """The value of a path that goes on to node c at position t."""
    context, label = _origin(trellis, c, source)
    length = len(trellis.scores)
    step = potential(trellis.scores, 0, length, t, context, label, trellis.steps)
    return float(paths.value[path] + step) if t else float(step)


@kernel
def _best_before(trellis: _Trellis, t: int, c: int, source: int) -> int:
    """The best path of a source of node c at position t; NONE if it cannot be reached at all."""
    context, _ = _origin(trellis, c, source)
    if t == 0:
        return 0 if context == 0 else NONE
    return int((t - 1) * trellis.n_contexts + context)


@kernel
def _find_best(trellis: _Trellis, paths: _Paths) -> None:
    """Viterbi: the best path of every node."""
    n_labels, n_contexts = len(trellis.steps.end), trellis.n_contexts
    for t in range(len(trellis.scores)):
        for c in range(n_contexts):
            path = t * n_contexts + c
            paths.value[path] = -np.inf
            paths.following[path] = NONE
            for source in range(n_labels):
                before = _best_before(trellis, t, c, source)
                if before == NONE or (t and paths.value[before] == -np.inf):
                    continue
                value = _extended(trellis, paths, t, c, source, before)
                if value > paths.value[path]:
                    paths.value[path] = value
                    paths.before[path], paths.source[path] = before, source
                    paths.following[path] = UNKNOWN


@kernel
def _advance(trellis: _Trellis, paths: _Paths, heaps: _Heaps, t: int, c: int, path: int) -> None:
    """Find the path that follows the last one of node c; what it needs at t - 1 is known."""
    n_labels = len(trellis.steps.end)
    node = t * trellis.n_contexts + c
    if heaps.begin[node] == UNKNOWN:
        heaps.begin[node] = heaps.used[0]
        heaps.used[0] += n_labels
        for source in range(n_labels):
            before = _best_before(trellis, t, c, source)
            if source != paths.source[path] and before != NONE:
                value = _extended(trellis, paths, t, c, source, before)
                _push(heaps, node, value, source, before)
    if t:
        source = paths.source[path]
        before = paths.following[paths.before[path]]
        if before != NONE:
            _push(heaps, node, _extended(trellis, paths, t, c, source, before), source, before)
    if heaps.size[node] == 0:
        paths.following[path] = NONE
        return
    best = _pop(heaps, node)
    new = paths.used[0]
    paths.used[0] += 1
    paths.value[new] = heaps.value[best]
    paths.before[new], paths.source[new] = heaps.path[best], heaps.source[best]
    paths.following[new] = UNKNOWN
    paths.following[path] = new


@kernel
def _ask_for_next(
    trellis: _Trellis, paths: _Paths, heaps: _Heaps, c: int, path: int, way: Ints
) -> int:
    """The path that follows the given one of node c at the end, or NONE.

    way: (length, 2), scratch: the nodes that are asked, and the last path of each.
    """
    t = len(trellis.scores) - 1
    while paths.following[path] == UNKNOWN:
        way[t, 0], way[t, 1] = c, path
        t -= 1
        if t < 0:
            break
        c, _ = _origin(trellis, c, paths.source[path])
        path = paths.before[path]
    for s in range(t + 1, len(trellis.scores)):
        _advance(trellis, paths, heaps, s, way[s, 0], way[s, 1])
    return int(paths.following[way[len(trellis.scores) - 1, 1]])


@kernel
def _longer(array: Ints, n: int) -> Ints:
    longer = np.empty(n, array.dtype)
    longer[: len(array)] = array
    return longer


@kernel
def _paths_with_room(paths: _Paths, n_more: int) -> _Paths:
    """The paths with room for n_more of them."""
    needed = paths.used[0] + n_more
    if needed <= len(paths.value):
        return paths
    n = max(needed, 2 * len(paths.value))
    return _Paths(
        _longer(paths.value, n),
        _longer(paths.before, n),
        _longer(paths.source, n),
        _longer(paths.following, n),
        paths.used,
    )


@kernel
def _heaps_with_room(heaps: _Heaps, n_more: int) -> _Heaps:
    """The heaps with room for n_more candidates."""
    needed = heaps.used[0] + n_more
    if needed <= len(heaps.value):
        return heaps
    n = max(needed, 2 * len(heaps.value))
    return _Heaps(
        heaps.begin,
        heaps.size,
        _longer(heaps.value, n),
        _longer(heaps.source, n),
        _longer(heaps.path, n),
        heaps.used,
    )


@kernel
def _find_paths(scores: Floats, steps: StepPotentials, n: int) -> tuple[Labels, Doubles]:
    """The n best label sequences of one sequence that is not empty, and their scores."""
    length, n_labels = len(scores), len(steps.end)
    n_contexts = n_labels**steps.order
    trellis = _Trellis(scores, steps, n_contexts, max(1, n_contexts // n_labels))
    n_nodes = length * n_contexts
    paths = _Paths(
        np.empty(n_nodes),
        np.zeros(n_nodes, np.int64),
        np.zeros(n_nodes, np.int32),
        np.empty(n_nodes, np.int64),
        np.full(1, n_nodes),
    )
    _find_best(trellis, paths)
    # The last node, behind all others, has the paths of all contexts as its candidates.
    end = n_nodes
    heaps = _Heaps(
        np.full(n_nodes + 1, UNKNOWN),
        np.zeros(n_nodes + 1, np.int64),
        np.empty(n_contexts),
        np.empty(n_contexts, np.int32),
        np.empty(n_contexts, np.int64),
        np.full(1, n_contexts),
    )
    heaps.begin[end] = 0
    for c in range(n_contexts):
        path = (length - 1) * n_contexts + c
        _push(heaps, end, paths.value[path], c, path)
    found = np.empty((n, 2), np.int64)  # contexts and paths
    way = np.empty((length, 2), np.int64)
    count = 0
    while heaps.size[end] > 0:
        best = _pop(heaps, end)
        c, path = int(heaps.source[best]), int(heaps.path[best])
        found[count, 0], found[count, 1] = c, path
        count += 1
        if count == n:
            break
        paths = _paths_with_room(paths, length)
        heaps = _heaps_with_room(heaps, length * n_labels)
        path = _ask_for_next(trellis, paths, heaps, c, path, way)
        if path != NONE:
            _push(heaps, end, paths.value[path], c, path)
    return _labels_of(trellis, paths, found[:count]), paths.value[found[:count, 1]]


@kernel
def _labels_of(trellis: _Trellis, paths: _Paths, found: Ints) -> Labels:
    """The labels of paths that end in these nodes. found: (n, 2), contexts and paths."""
    labels = np.empty((len(found), len(trellis.scores)), np.int32)
    for i in range(len(found)):
        c, path = found[i, 0], found[i, 1]
        for t in range(len(trellis.scores) - 1, -1, -1):
            c, labels[i, t] = _origin(trellis, c, paths.source[path])
            path = paths.before[path]
    return labels


def nbest(scores: Floats, chain: Chain, n: int) -> tuple[Labels, Doubles]:
    """The n most probable label sequences of one sequence (scores[T, C, K]), best first.

    Returns int32[m, T] and their log probabilities, m = n or the number of allowed sequences if
    that is less. Equals stand in the order in which Viterbi would prefer them.
    """
    n = check_nbest(n)
    length = len(scores)
    offsets = np.array([0, length], dtype=np.int64)
    scores, offsets, _ = kernel_arguments(scores, offsets, chain)
    if length == 0:
        return np.zeros((1, 0), np.int32), np.zeros(1)
    # Room for n is allocated: no more than there can be sequences.
    n = min(n, chain.n_labels ** min(length, 64))
    check_nbest_labels(n, length)
    paths, values = _find_paths(scores, step_potentials(chain), n)
    return paths, values - log_normalizers(scores, offsets, chain)[0]
