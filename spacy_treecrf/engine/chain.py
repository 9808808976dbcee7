"""Exact inference in a linear-chain CRF of any order: normalizers, marginals, path probabilities.

Context c at position t packs the previous labels, c = y[t-1] + K*y[t-2] + ...; lags before the
start count as 0, so only c < K**min(t, order) occurs. The potential of (t, c, y) is
scores[t, c or 0, y] + (start[y] at t = 0, else trans[c % K, y]) + (end[y] at the last position).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]
Mask = npt.NDArray[np.uint8]

MAX_ORDER = 4

# The scaled pass multiplies three factors (mass, node weight, edge weight). While each is zero or
# at least TINY no product underflows, so nothing is lost; below that the sequence is redone in
# log space.
TINY = 1e-100

EVERYTHING_ALLOWED = np.zeros((0, 0), dtype=np.uint8)
_NO_PAIRS = np.zeros((0, 0, 0), dtype=np.float32)
_NO_NODES = np.zeros((0, 0), dtype=np.float64)


@dataclass(frozen=True)
class Chain:
    """How labels follow each other: potentials of first, of neighbouring and of last labels.

    -inf forbids. Order 0 means independent positions and ignores all three arrays.
    """

    order: int
    start: Floats  # shape: (n_labels,)
    trans: Floats  # shape: (n_labels, n_labels), trans[u, v]: u before v
    end: Floats  # shape: (n_labels,)

    def __post_init__(self) -> None:
        if not 0 <= self.order <= MAX_ORDER:
            raise ValueError(f"treecrf: chain order is {self.order}; use 0 to {MAX_ORDER}")
        for name in ("start", "trans", "end"):
            object.__setattr__(self, name, as_kernel_array(getattr(self, name), np.float32))
        n_labels = self.n_labels
        if n_labels < 1:
            raise ValueError("treecrf: a chain needs at least one label")
        if self.trans.shape != (n_labels, n_labels) or self.end.shape != (n_labels,):
            raise ValueError(
                f"treecrf: chain arrays disagree: start {self.start.shape}, "
                f"trans {self.trans.shape}, end {self.end.shape}; need (K,), (K, K), (K,)"
            )

    @classmethod
    def free(cls, n_labels: int, order: int) -> Chain:
        """A chain that prefers nothing and forbids nothing."""
        zeros = np.zeros(n_labels, dtype=np.float32)
        return cls(order, zeros, np.zeros((n_labels, n_labels), dtype=np.float32), zeros)

    @property
    def n_labels(self) -> int:
        return len(self.start)

    @property
    def n_contexts(self) -> int:
        return int(self.n_labels**self.order)


def as_kernel_array(array: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The array as kernels are compiled for: contiguous and writable (copied only if it is not)."""
    return np.require(array, dtype, ["C", "W"])


def kernel_arguments(
    scores: npt.ArrayLike,
    offsets: npt.ArrayLike,
    chain: Chain,
    allowed: npt.ArrayLike | None = None,
) -> tuple[Floats, Ints, Mask]:
    """Scores, offsets and mask, checked against the chain: kernels themselves check no bounds."""
    scores = as_kernel_array(scores, np.float32)
    offsets = as_kernel_array(offsets, np.int64)
    n_rows, n_tables, n_labels = scores.shape
    if n_labels != chain.n_labels or n_tables not in (1, chain.n_contexts):
        raise ValueError(
            f"treecrf: scores have shape {scores.shape}, but a chain of order {chain.order} over "
            f"{chain.n_labels} labels needs (rows, 1 or {chain.n_contexts}, {chain.n_labels})"
        )
    if len(offsets) < 1 or offsets[0] < 0 or offsets[-1] > n_rows or np.any(np.diff(offsets) < 0):
        raise ValueError(
            f"treecrf: sequence offsets must rise from 0 to the {n_rows} rows of scores"
        )
    if allowed is None:
        return scores, offsets, EVERYTHING_ALLOWED
    allowed = as_kernel_array(allowed, np.uint8)
    if allowed.shape != (n_rows, n_labels):
        raise ValueError(
            f"treecrf: the mask of allowed labels has shape {allowed.shape}, "
            f"but the scores need {(n_rows, n_labels)}"
        )
    return scores, offsets, allowed


def step_potentials(
    order: int, start: Floats, trans: Floats, end: Floats
) -> tuple[Doubles, Doubles]:
    """What kernels add to scores: moves[previous label, or K at the start, y], and end[y].

    All zero for order 0, so that no kernel has to treat it apart.
    """
    n_labels = len(start)
    moves = np.zeros((n_labels + 1, n_labels))
    if order == 0:
        return moves, np.zeros(n_labels)
    moves[:n_labels] = trans
    moves[n_labels] = start
    return moves, end.astype(np.float64)


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
def _log_space(
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
def _scaled(
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
def _path_scores(
    scores: Floats,
    offsets: Ints,
    labels: Labels,
    order: int,
    moves: Doubles,
    end: Doubles,
    out: Doubles,
) -> None:
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


def _run(
    scores: Floats,
    offsets: Ints,
    first: int,
    last: int,
    order: int,
    start: Floats,
    trans: Floats,
    end: Floats,
    allowed: Mask,
    pairs: Floats,
    nodes: Doubles,
    log_z: Doubles,
) -> None:
    """Sequences first to last - 1: log Z into log_z, marginals into pairs, nodes if not empty."""
    moves, ends = step_potentials(order, start, trans, end)
    rows = slice(int(offsets[first]), int(offsets[last]))
    pairs[rows] = 0.0
    nodes[rows] = 0.0
    possible = moves > -np.inf
    top = float(np.max(moves, where=possible, initial=-np.inf)) if possible.any() else 0.0
    edges = np.exp(moves - top)
    if np.any(possible & ~(edges >= TINY)):
        log_z[first:last] = np.nan
    else:
        _scaled(scores, offsets, first, last, order, edges, ends, allowed, pairs, nodes, log_z)
        log_z[first:last] += top * np.diff(offsets[first : last + 1])
    # From here, not from the kernel: most programs never need the twin, nor its compilation.
    for s in first + np.flatnonzero(np.isnan(log_z[first:last])):
        begin, length = offsets[s], offsets[s + 1] - offsets[s]
        log_z[s] = _log_space(scores, begin, length, order, moves, ends, allowed, pairs, nodes)


def pair_marginals_kernel(
    scores: Floats,
    offsets: Ints,
    first: int,
    last: int,
    order: int,
    start: Floats,
    trans: Floats,
    end: Floats,
    allowed: Mask,
    out: Floats,
    log_z: Doubles,
) -> None:
    """pair_marginals of sequences first to last - 1 into out and log_z; releases the GIL."""
    _run(scores, offsets, first, last, order, start, trans, end, allowed, out, _NO_NODES, log_z)


def node_marginals_kernel(
    scores: Floats,
    offsets: Ints,
    first: int,
    last: int,
    order: int,
    start: Floats,
    trans: Floats,
    end: Floats,
    allowed: Mask,
    out: Doubles,
    log_z: Doubles,
) -> None:
    """node_marginals of sequences first to last - 1 into out and log_z; releases the GIL."""
    _run(scores, offsets, first, last, order, start, trans, end, allowed, _NO_PAIRS, out, log_z)


def _run_all(
    scores: Floats,
    offsets: Ints,
    chain: Chain,
    allowed: Mask | None,
    pairs: Floats = _NO_PAIRS,
    nodes: Doubles = _NO_NODES,
) -> Doubles:
    """_run for all sequences on this thread, arguments checked; returns log Z."""
    scores, offsets, mask = kernel_arguments(scores, offsets, chain, allowed)
    start, trans, end = chain.start, chain.trans, chain.end
    n = len(offsets) - 1
    log_z = np.empty(n)
    _run(scores, offsets, 0, n, chain.order, start, trans, end, mask, pairs, nodes, log_z)
    return log_z


def log_normalizers(
    scores: Floats, offsets: Ints, chain: Chain, allowed: Mask | None = None
) -> Doubles:
    """Log Z of every sequence, -inf where no label sequence is allowed (0 for an empty sequence).

    allowed (uint8[N, K]) clamps each position to the labels that are not 0 there.
    """
    return _run_all(scores, offsets, chain, allowed)


def pair_marginals(
    scores: Floats, offsets: Ints, chain: Chain, allowed: Mask | None = None
) -> tuple[Floats, Doubles]:
    """P(context c, y_t = y) as float32[N, n_contexts, K] and log Z.

    Contexts that cannot occur hold 0. A sequence without any allowed label sequence has log Z -inf
    and all marginals 0.
    """
    pairs = np.zeros((len(scores), chain.n_contexts, chain.n_labels), dtype=np.float32)
    return pairs, _run_all(scores, offsets, chain, allowed, pairs=pairs)


def node_marginals(
    scores: Floats, offsets: Ints, chain: Chain, allowed: Mask | None = None
) -> tuple[Doubles, Doubles]:
    """P(y_t = y) as float64[N, K] and log Z; all 0 and -inf without any allowed label sequence."""
    nodes = np.zeros((len(scores), chain.n_labels))
    return nodes, _run_all(scores, offsets, chain, allowed, nodes=nodes)


def path_scores(scores: Floats, offsets: Ints, labels: Labels, chain: Chain) -> Doubles:
    """The sum of potentials along the given, complete label sequences; -inf if forbidden."""
    scores, offsets, _ = kernel_arguments(scores, offsets, chain)
    labels = as_kernel_array(labels, np.int32)
    used = labels[offsets[0] : offsets[-1]]
    if len(labels) != len(scores) or np.any((used < 0) | (used >= chain.n_labels)):
        raise ValueError(
            f"treecrf: path_scores needs a label from 0 to {chain.n_labels - 1} for each of the "
            f"{len(scores)} rows; clamp unknown labels with log_normalizers(..., allowed) instead"
        )
    out = np.empty(len(offsets) - 1)
    moves, end = step_potentials(chain.order, chain.start, chain.trans, chain.end)
    _path_scores(scores, offsets, labels, chain.order, moves, end, out)
    return out


def log_probability_of(scores: Floats, offsets: Ints, chain: Chain, allowed: Mask) -> Doubles:
    """Log probability that every label of a sequence lies in its position's allowed set."""
    log_z = log_normalizers(scores, offsets, chain)
    clamped = log_normalizers(scores, offsets, chain, allowed)
    return np.subtract(clamped, log_z, out=clamped, where=clamped > -np.inf)


def span_probability(
    scores: Floats,
    chain: Chain,
    first: int,
    labels: Sequence[int],
    next_forbidden: Collection[int] | None = None,
) -> float:
    """P(y[first : first + len(labels)] = labels) in one sequence (scores[T, C, K]).

    With next_forbidden the label after the span must also be none of these (true at the end of
    the sequence): that the span is an entity, say, and not the head of a longer one.
    """
    length = len(scores)
    after = first + len(labels)
    if first < 0 or after > length:
        raise ValueError(
            f"treecrf: the span {first}:{after} lies outside of a sequence of {length} positions"
        )
    unknown = [y for y in (*labels, *(next_forbidden or ())) if not 0 <= y < chain.n_labels]
    if unknown:
        raise ValueError(
            f"treecrf: the span got label {unknown[0]}; labels are 0 to {chain.n_labels - 1}"
        )
    allowed = np.ones((length, chain.n_labels), dtype=np.uint8)
    allowed[first:after] = 0
    allowed[np.arange(first, after), np.asarray(labels, dtype=np.int64)] = 1
    if next_forbidden is not None and after < length:
        allowed[after, list(next_forbidden)] = 0
    offsets = np.array([0, length], dtype=np.int64)
    return math.exp(log_probability_of(scores, offsets, chain, allowed)[0])
