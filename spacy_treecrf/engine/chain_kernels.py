"""Kernels of exact inference: forward-backward, scaled and in log space, and scores of paths.

`moves` and `end` are the step potentials of a chain; `edges` is exp(moves - their maximum).
Kernels check no bounds: `chain.kernel_arguments` does.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]
Mask = npt.NDArray[np.uint8]

# The scaled pass multiplies three factors (mass, node weight, edge weight). While each is zero or
# at least TINY no product underflows, so nothing is lost; below that the sequence is redone in
# log space.
TINY = 1e-100


@njit(nogil=True, cache=True)
def longest_of(offsets: Ints, first: int, last: int) -> int:
    """The length of the longest of the sequences first to last - 1."""
    longest = 0
    for s in range(first, last):
        longest = max(longest, offsets[s + 1] - offsets[s])
    return longest


@njit(nogil=True, cache=True)
def potential(
    scores: Floats,
    begin: int,
    length: int,
    t: int,
    c: int,
    y: int,
    moves: Doubles,
    end: Doubles,
) -> float:
    """The potential of label y in context c at position t of the sequence beginning at a row."""
    n_labels = len(end)
    value: float = scores[begin + t, c if scores.shape[1] > 1 else 0, y]
    value += moves[n_labels if t == 0 else c % n_labels, y]
    if t == length - 1:
        value += end[y]
    return value


@njit(nogil=True, cache=True)
def _log_add(a: float, b: float) -> float:
    """log(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + math.log1p(math.exp(b - a))


@njit(nogil=True, cache=True)
def log_space_pass(
    scores: Floats,
    begin: int,
    length: int,
    order: int,
    moves: Doubles,
    end: Doubles,
    allowed: Mask,
    pairs: Floats,
    nodes: Doubles,
) -> float:
    """Forward-backward of one sequence in log space, right for any potentials: the scaled twin.

    Adds the marginals to pairs and nodes (zero before; empty if not wanted) and returns log Z.
    """
    n_labels = len(end)
    n_contexts = n_labels**order
    stride = max(1, n_contexts // n_labels)
    step = min(1, order)
    clamped = len(allowed) > 0
    alpha = np.full((length + 1, n_contexts), -np.inf)
    alpha[0, 0] = 0.0
    for t in range(length):
        for c in range(n_labels ** min(t, order)):
            for y in range(n_labels):
                if clamped and allowed[begin + t, y] == 0:
                    continue
                after = n_labels * (c % stride) + step * y
                value = alpha[t, c] + potential(scores, begin, length, t, c, y, moves, end)
                alpha[t + 1, after] = _log_add(alpha[t + 1, after], value)
    log_z = -np.inf
    for c in range(n_contexts):
        log_z = _log_add(log_z, alpha[length, c])
    if log_z == -np.inf or len(pairs) + len(nodes) == 0:
        return log_z

    beta_after = np.zeros(n_contexts)
    beta = np.empty(n_contexts)
    for t in range(length - 1, -1, -1):
        for c in range(n_labels ** min(t, order)):
            beta[c] = -np.inf
            for y in range(n_labels):
                if clamped and allowed[begin + t, y] == 0:
                    continue
                value = potential(scores, begin, length, t, c, y, moves, end)
                value += beta_after[n_labels * (c % stride) + step * y]
                beta[c] = _log_add(beta[c], value)
                probability = math.exp(alpha[t, c] + value - log_z)
                if len(pairs) > 0:
                    pairs[begin + t, c, y] = probability
                if len(nodes) > 0:
                    nodes[begin + t, y] += probability
        beta, beta_after = beta_after, beta
    return log_z


@njit(nogil=True, cache=True)
def _forward(
    scores: Floats,
    begin: int,
    length: int,
    order: int,
    edges: Doubles,
    end: Doubles,
    allowed: Mask,
    weights: Doubles,
    alpha: Doubles,
    scale: Doubles,
) -> float:
    """Scaled forward pass of one sequence: alpha[t, c] = P(c before t | positions before t).

    Fills weights (exp of scores), alpha and scale (each position's normalizer). Returns log Z
    without the edges' maximum, or NaN if a factor is too small to be trusted.
    """
    n_labels = len(end)
    n_contexts = alpha.shape[1]
    n_tables = scores.shape[1]
    stride = max(1, n_contexts // n_labels)
    step = min(1, order)
    clamped = len(allowed) > 0
    log_z = 0.0
    live = 1  # contexts that can occur at this position
    alpha[0, 0] = 1.0
    for t in range(length):
        top = -np.inf
        for c in range(min(live, n_tables)):
            for y in range(n_labels):
                value = float(scores[begin + t, c, y])
                if t == length - 1:
                    value += end[y]
                if clamped and allowed[begin + t, y] == 0:
                    value = -np.inf
                weights[t, c, y] = value
                top = max(top, value)
        for c in range(min(live, n_tables)):
            for y in range(n_labels):
                value = weights[t, c, y]
                weight = math.exp(value - top)
                if not (weight >= TINY or value == -np.inf):
                    return np.nan
                weights[t, c, y] = weight

        live_after = min(live * n_labels, n_contexts)
        for c in range(live_after):
            alpha[t + 1, c] = 0.0
        for c in range(live):
            mass = alpha[t, c]
            if mass == 0.0:
                continue
            table = c if n_tables > 1 else 0
            before = n_labels if t == 0 else c % n_labels
            base = n_labels * (c % stride)
            for y in range(n_labels):
                alpha[t + 1, base + step * y] += mass * weights[t, table, y] * edges[before, y]
        total = 0.0
        for c in range(live_after):
            total += alpha[t + 1, c]
        if not total >= TINY:  # also NaN
            return np.nan
        for c in range(live_after):
            mass = alpha[t + 1, c] / total
            if 0.0 < mass < TINY:
                return np.nan
            alpha[t + 1, c] = mass
        scale[t] = total
        log_z += top + math.log(total)
        live = live_after
    return log_z


@njit(nogil=True, cache=True)
def _backward(
    begin: int,
    length: int,
    order: int,
    edges: Doubles,
    weights: Doubles,
    alpha: Doubles,
    scale: Doubles,
    pairs: Floats,
    nodes: Doubles,
) -> None:
    """Scaled backward pass over what _forward left; adds the marginals to pairs and nodes.

    beta is scaled such that sum_c alpha[t, c] * beta[t, c] = 1: a beta that underflows belongs to
    a context of probability below 1e-200. Contexts without mass get beta 0, others stay <= 1/TINY.
    """
    n_labels = edges.shape[1]
    n_contexts = alpha.shape[1]
    n_tables = weights.shape[1]
    stride = max(1, n_contexts // n_labels)
    step = min(1, order)
    beta_after = np.ones(n_contexts)
    beta = np.empty(n_contexts)
    joint = np.empty(n_labels)
    for t in range(length - 1, -1, -1):
        rescale = 1.0 / scale[t]
        for c in range(n_labels ** min(t, order)):
            mass = alpha[t, c]
            beta[c] = 0.0
            if mass == 0.0:
                continue
            table = c if n_tables > 1 else 0
            before = n_labels if t == 0 else c % n_labels
            base = n_labels * (c % stride)
            total = 0.0
            for y in range(n_labels):
                value = weights[t, table, y] * edges[before, y] * beta_after[base + step * y]
                value *= rescale
                total += value
                joint[y] = mass * value
            beta[c] = total
            if len(pairs) > 0:
                for y in range(n_labels):
                    pairs[begin + t, c, y] = joint[y]
            if len(nodes) > 0:
                for y in range(n_labels):
                    nodes[begin + t, y] += joint[y]
        beta, beta_after = beta_after, beta


@njit(nogil=True, cache=True)
def scaled_pass(
    scores: Floats,
    offsets: Ints,
    first: int,
    last: int,
    order: int,
    edges: Doubles,
    end: Doubles,
    allowed: Mask,
    pairs: Floats,
    nodes: Doubles,
    log_z: Doubles,
) -> None:
    """Scaled forward-backward of sequences first to last - 1; NaN in log_z where it gives up."""
    longest = longest_of(offsets, first, last)
    n_labels = len(end)
    alpha = np.empty((longest + 1, n_labels**order))
    weights = np.empty((longest, scores.shape[1], n_labels))
    scale = np.empty(longest)
    for s in range(first, last):
        begin = offsets[s]
        length = offsets[s + 1] - begin
        log_z[s] = _forward(
            scores, begin, length, order, edges, end, allowed, weights, alpha, scale
        )
        if len(pairs) + len(nodes) > 0 and not np.isnan(log_z[s]):
            _backward(begin, length, order, edges, weights, alpha, scale, pairs, nodes)


@njit(nogil=True, cache=True)
def path_scores_kernel(
    scores: Floats,
    offsets: Ints,
    labels: Labels,
    order: int,
    moves: Doubles,
    end: Doubles,
    out: Doubles,
) -> None:
    """The sum of potentials along the labels of every sequence, into out."""
    n_labels = len(end)
    stride = max(1, n_labels**order // n_labels)
    for s in range(len(out)):
        begin = offsets[s]
        length = offsets[s + 1] - begin
        out[s] = 0.0
        c = 0
        for t in range(length):
            y = labels[begin + t]
            out[s] += potential(scores, begin, length, t, c, y, moves, end)
            c = n_labels * (c % stride) + min(1, order) * y
