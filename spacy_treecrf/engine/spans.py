"""Exact probabilities of many spans at once: P(y[first : last] = labels), for chains of any order.

In a chain of order 1 the labels after a span's first one only need the backward messages:
P(y_t = y | y_{t-1} = c) = psi_t(c, y) beta_{t+1}(y) / sum_y' psi_t(c, y') beta_{t+1}(y').
One backward pass serves all spans of a sequence, where clamping would need a pass for each.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.chain import Chain, kernel_arguments, span_probability, step_potentials
from spacy_treecrf.engine.chain_kernels import TINY

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]


def span_probabilities(
    scores: Floats, offsets: Ints, chain: Chain, nodes: Doubles, spans: Ints, labels: Labels
) -> Doubles:
    """P(rows first to last - 1 have their labels) for spans (n, 2) of rows, sorted by first row.

    nodes: (n_rows, K) marginals of the rows. labels: (n_rows,), read inside of spans. A span must
    lie within one sequence.
    """
    scores, offsets, _ = kernel_arguments(scores, offsets, chain)
    sequence = np.searchsorted(offsets, spans[:, 0], side="right") - 1
    if np.any(spans[:, 0] >= spans[:, 1]) or np.any(spans[:, 1] > offsets[sequence + 1]):
        raise ValueError("treecrf: every span needs a row, and must not leave its sequence")
    result = np.full(len(spans), np.nan)
    if chain.order <= 1:
        moves, end = step_potentials(chain.order, chain.start, chain.trans, chain.end)
        edges = np.exp(moves - moves.max())
        _markov_spans(scores, offsets, sequence, edges, end, nodes, spans, labels, result)
    for i in np.flatnonzero(np.isnan(result)):
        begin, past = offsets[sequence[i]], offsets[sequence[i] + 1]
        first, last = spans[i]
        inside = [int(y) for y in labels[first:last]]
        result[i] = span_probability(scores[begin:past], chain, int(first - begin), inside)
    return result


@njit(nogil=True, cache=True)
def _markov_spans(
    scores: Floats,
    offsets: Ints,
    sequence: Ints,
    edges: Doubles,
    end: Doubles,
    nodes: Doubles,
    spans: Ints,
    labels: Labels,
    result: Doubles,
) -> None:
    """Fill `result` for a chain of order 0 or 1; NaN stays where scaled messages underflow."""
    n_labels = len(end)
    n_tables = scores.shape[1]
    i = 0
    while i < len(spans):
        s = sequence[i]
        past = i
        longest = 0
        while past < len(spans) and sequence[past] == s:
            longest = max(longest, spans[past, 1] - spans[past, 0])
            past += 1
        begin, stop = offsets[s], offsets[s + 1]
        # beta[t]: of what follows row begin + t - 1, by its label; down to the first span
        beta = np.zeros((stop - begin + 1 if longest > 1 else 0, n_labels))
        if longest > 1:
            least = spans[i, 0] - begin
            for y in range(n_labels):
                beta[stop - begin, y] = 1.0
            for t in range(stop - begin - 1, least, -1):
                _step_back(scores[begin + t], t, stop - begin, edges, end, beta)
        for k in range(i, past):
            first, last = spans[k, 0], spans[k, 1]
            p = nodes[first, labels[first]]
            for row in range(first + 1, last):
                t = row - begin
                c = labels[row - 1]
                at_end = row == stop - 1
                top = -np.inf
                table = c if n_tables > 1 else 0
                for y in range(n_labels):
                    top = max(top, scores[row, table, y] + (end[y] if at_end else 0.0))
                total = 0.0
                chosen = 0.0
                for y in range(n_labels):
                    value = scores[row, table, y] + (end[y] if at_end else 0.0)
                    value = math.exp(value - top) * edges[c, y] * beta[t + 1, y]
                    total += value
                    if y == labels[row]:
                        chosen = value
                p *= chosen / total if total >= TINY else np.nan
            result[k] = p
        i = past


@njit(nogil=True, cache=True)
def _step_back(
    scores: Floats, t: int, length: int, edges: Doubles, end: Doubles, beta: Doubles
) -> None:
    """beta[t] from beta[t + 1], scaled to a maximum of 1; scores: (n_tables, K) of position t."""
    n_tables, n_labels = scores.shape
    at_end = t == length - 1
    top = -np.inf
    for table in range(n_tables):
        for y in range(n_labels):
            top = max(top, scores[table, y] + (end[y] if at_end else 0.0))
    weights = np.empty((n_tables, n_labels))
    for table in range(n_tables):
        for y in range(n_labels):
            value = scores[table, y] + (end[y] if at_end else 0.0)
            weights[table, y] = math.exp(value - top) * beta[t + 1, y]
    most = 0.0
    for c in range(n_labels):
        table = c if n_tables > 1 else 0
        for y in range(n_labels):
            beta[t, c] += weights[table, y] * edges[c, y]
        most = max(most, beta[t, c])
    if most > 0.0:
        for c in range(n_labels):
            beta[t, c] /= most
