"""Label sequences out of scores: Viterbi, the most probable label per position, the n best."""

from __future__ import annotations

import numpy as np
from numba import njit

from spacy_treecrf.engine.beam import beam_viterbi_kernel
from spacy_treecrf.engine.chain import (
    Chain,
    Doubles,
    Floats,
    Ints,
    Labels,
    kernel_arguments,
    log_normalizers,
    longest_of,
    potential,
    step_potentials,
)


@njit(nogil=True, cache=True)
def viterbi_bigram(
    scores: Floats,
    offsets: Ints,
    first: int,
    last: int,
    moves: Doubles,
    end: Doubles,
    labels: Labels,
    best: Doubles,
) -> None:
    """Viterbi for order 1 with scores that do not depend on the context: the common case."""
    longest = longest_of(offsets, first, last)
    n_labels = len(end)
    back = np.empty((longest, n_labels), dtype=np.int32)
    delta = np.empty(n_labels)
    top = np.empty(n_labels)
    # As wide as the doubles they are selected with, so that the inner loop vectorises.
    arg = np.empty(n_labels, dtype=np.int64)
    for s in range(first, last):
        begin = offsets[s]
        length = offsets[s + 1] - begin
        if length == 0:
            best[s] = 0.0
            continue
        for y in range(n_labels):
            delta[y] = moves[n_labels, y] + scores[begin, 0, y]
        for t in range(1, length):
            for v in range(n_labels):
                top[v] = delta[0] + moves[0, v]
                arg[v] = 0
            for u in range(1, n_labels):
                before = delta[u]
                for v in range(n_labels):
                    value = before + moves[u, v]
                    better = value > top[v]
                    top[v] = value if better else top[v]
                    arg[v] = u if better else arg[v]
            for v in range(n_labels):
                delta[v] = top[v] + scores[begin + t, 0, v]
                back[t, v] = arg[v]
        best[s] = -np.inf
        y = 0
        for v in range(n_labels):
            value = delta[v] + end[v]
            if value > best[s]:
                best[s] = value
                y = v
        if best[s] == -np.inf:
            labels[begin : begin + length] = 0
            continue
        for t in range(length - 1, 0, -1):
            labels[begin + t] = y
            y = back[t, y]
        labels[begin] = y


@njit(nogil=True, cache=True)
def _viterbi_general(
    scores: Floats,
    offsets: Ints,
    first: int,
    last: int,
    order: int,
    moves: Doubles,
    end: Doubles,
    labels: Labels,
    best: Doubles,
) -> None:
    """Viterbi for any order and layout of scores."""
    longest = longest_of(offsets, first, last)
    n_labels = len(end)
    n_contexts = n_labels**order
    n_tables = scores.shape[1]
    stride = max(1, n_contexts // n_labels)
    step = min(1, order)
    # Position t was entered into context c' from back[t, c'] = c * K + y.
    back = np.zeros((longest, n_contexts), dtype=np.int64)
    delta = np.empty(n_contexts)
    after = np.empty(n_contexts)
    for s in range(first, last):
        begin = offsets[s]
        length = offsets[s + 1] - begin
        delta[:] = -np.inf
        delta[0] = 0.0
        for t in range(length):
            after[:] = -np.inf
            for c in range(n_labels ** min(t, order)):
                if delta[c] == -np.inf:
                    continue
                table = c if n_tables > 1 else 0
                before = n_labels if t == 0 else c % n_labels
                base = n_labels * (c % stride)
                for y in range(n_labels):
                    value = delta[c] + moves[before, y] + scores[begin + t, table, y]
                    if t == length - 1:
                        value += end[y]
                    if value > after[base + step * y]:
                        after[base + step * y] = value
                        back[t, base + step * y] = c * n_labels + y
            delta, after = after, delta
        best[s] = -np.inf
        context = 0
        for c in range(n_contexts):
            if delta[c] > best[s]:
                best[s] = delta[c]
                context = c
        if best[s] == -np.inf:
            labels[begin : begin + length] = 0
            continue
        for t in range(length - 1, -1, -1):
            labels[begin + t] = back[t, context] % n_labels
            context = back[t, context] // n_labels


@njit(nogil=True, cache=True)
def _insert(values: Doubles, origins: Ints, count: int, value: float, origin: int) -> int:
    """Insert into a list sorted by falling value, behind its equals; returns the new length."""
    n = len(values)
    if not value > -np.inf or (count == n and value <= values[n - 1]):
        return count
    i = min(count, n - 1)
    while i > 0 and value > values[i - 1]:
        values[i] = values[i - 1]
        origins[i] = origins[i - 1]
        i -= 1
    values[i] = value
    origins[i] = origin
    return min(count + 1, n)


@njit(nogil=True, cache=True)
def _list_viterbi(
    scores: Floats, order: int, moves: Doubles, end: Doubles, n: int
) -> tuple[Labels, Doubles]:
    """The n best label sequences of one sequence: Viterbi with a sorted list per context."""
    length = len(scores)
    n_labels = len(end)
    n_contexts = n_labels**order
    stride = max(1, n_contexts // n_labels)
    step = min(1, order)
    # Entry r of the list of context c' after position t: (c * K + y) * n + rank in the list of c.
    back = np.zeros((length, n_contexts, n), dtype=np.int64)
    delta = np.empty((n_contexts, n))
    after = np.empty((n_contexts, n))
    counts = np.zeros(n_contexts, dtype=np.int64)
    counts_after = np.empty(n_contexts, dtype=np.int64)
    delta[0, 0] = 0.0
    counts[0] = 1
    for t in range(length):
        counts_after[:] = 0
        for c in range(n_labels ** min(t, order)):
            for y in range(n_labels):
                following = n_labels * (c % stride) + step * y
                value = potential(scores, 0, length, t, c, y, moves, end)
                for rank in range(counts[c]):
                    counts_after[following] = _insert(
                        after[following],
                        back[t, following],
                        counts_after[following],
                        delta[c, rank] + value,
                        (c * n_labels + y) * n + rank,
                    )
        delta, after = after, delta
        counts, counts_after = counts_after, counts
    values = np.empty(n)
    origins = np.empty(n, dtype=np.int64)
    count = 0
    for c in range(n_contexts):
        for rank in range(counts[c]):
            count = _insert(values, origins, count, delta[c, rank], c * n + rank)
    paths = np.empty((count, length), dtype=np.int32)
    for i in range(count):
        c, rank = origins[i] // n, origins[i] % n
        for t in range(length - 1, -1, -1):
            origin = back[t, c, rank]
            rank = origin % n
            paths[i, t] = (origin // n) % n_labels
            c = origin // n // n_labels
    return paths, values[:count]


def viterbi_kernel(
    scores: Floats,
    offsets: Ints,
    first: int,
    last: int,
    order: int,
    start: Floats,
    trans: Floats,
    end: Floats,
    labels: Labels,
    best: Doubles,
) -> None:
    """viterbi of sequences first to last - 1 into labels and best; releases the GIL."""
    moves, ends = step_potentials(order, start, trans, end)
    if order == 1 and scores.shape[1] == 1:
        viterbi_bigram(scores, offsets, first, last, moves, ends, labels, best)
    else:
        _viterbi_general(scores, offsets, first, last, order, moves, ends, labels, best)


def beam_viterbi(
    scores: Floats,
    offsets: Ints,
    chunk: tuple[int, int],
    chain: Chain,
    labels: Labels,
    best: Doubles,
) -> None:
    """As viterbi_kernel, inside the chain's beam; exact where constraints make that a dead end."""
    moves, ends = step_potentials(chain.order, chain.start, chain.trans, chain.end)
    beam_viterbi_kernel(scores[:, 0], offsets, *chunk, moves, ends, chain.pruned, labels, best)
    for s in chunk[0] + np.flatnonzero(np.isneginf(best[slice(*chunk)])):
        viterbi_bigram(scores, offsets, s, s + 1, moves, ends, labels, best)


def viterbi(scores: Floats, offsets: Ints, chain: Chain) -> tuple[Labels, Doubles]:
    """The best label sequences (int32[N]) and their scores (float64[S]).

    Among equals the last context is the lowest, then the one before it, and so on. A sequence
    without any allowed labels has score -inf and labels 0.
    """
    scores, offsets, _ = kernel_arguments(scores, offsets, chain)
    n_sequences = len(offsets) - 1
    labels = np.zeros(len(scores), dtype=np.int32)
    best = np.empty(n_sequences)
    viterbi_kernel(
        scores,
        offsets,
        0,
        n_sequences,
        chain.order,
        chain.start,
        chain.trans,
        chain.end,
        labels,
        best,
    )
    return labels, best


def marginal_argmax(node_marginals: Doubles) -> Labels:
    """The most probable label of each position on its own; the lowest among equals."""
    labels: Labels = np.argmax(node_marginals, axis=1).astype(np.int32)
    return labels


def nbest(scores: Floats, chain: Chain, n: int) -> tuple[Labels, Doubles]:
    """The n most probable label sequences of one sequence (scores[T, C, K]), best first.

    Returns int32[m, T] and their log probabilities, m = n or the number of allowed sequences if
    that is less. Equals stand in the order in which Viterbi would prefer them.
    """
    if n < 1:
        raise ValueError(f"treecrf: nbest needs n of at least 1, not {n}")
    length = len(scores)
    offsets = np.array([0, length], dtype=np.int64)
    scores, offsets, _ = kernel_arguments(scores, offsets, chain)
    # Lists of n entries are allocated: no more than there can be sequences.
    n = min(n, chain.n_labels ** min(length, 64))
    moves, end = step_potentials(chain.order, chain.start, chain.trans, chain.end)
    paths, values = _list_viterbi(scores, chain.order, moves, end, n)
    return paths, values - log_normalizers(scores, offsets, chain)[0]
