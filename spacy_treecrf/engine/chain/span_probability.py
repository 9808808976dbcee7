"""Exact probabilities of many spans at once: P(y[first : last] = labels), for chains of any order.

In a chain of order 1 the labels after a span's first one only need the backward messages:
P(y_t = y | y_{t-1} = c) = psi_t(c, y) beta_{t+1}(y) / sum_y' psi_t(c, y') beta_{t+1}(y').
One backward pass serves all spans of a sequence, where clamping would need a pass for each. In
chains of higher order, and where those messages underflow, a forward and a backward pass in log
space serve all spans: what lies before a span goes on along its labels, and meets what lies behind.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.chain import (
    Chain,
    Mask,
    ScoredChunk,
    StepPotentials,
    kernel_arguments,
)
from spacy_treecrf.engine.chain.chain_kernels import (
    TINY,
    context_after,
    log_add,
    log_backward,
    log_forward,
    potential,
)
from spacy_treecrf.engine.kernel import kernel

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]


class _Spans(NamedTuple):
    """Spans of rows, sorted by first row, and what is known of the rows."""

    rows: Ints  # shape: (n_spans, 2), first row and the one past the last
    sequence: Ints  # shape: (n_spans,), which sequence the span lies in
    labels: Labels  # shape: (n_rows,)
    nodes: Doubles  # shape: (n_rows, n_labels), marginals


def span_probabilities(
    scores: Floats, offsets: Ints, chain: Chain, nodes: Doubles, spans: Ints, labels: Labels
) -> Doubles:
    """P(rows first to last - 1 have their labels) for spans (n, 2) of rows, sorted by first row.

    nodes: (n_rows, K) marginals of the rows. labels: (n_rows,), read inside of spans. A span must
    lie within one sequence.
    """
    if not len(spans):
        return np.empty(0)
    scores, offsets, allowed = kernel_arguments(scores, offsets, chain)
    sequences = ScoredChunk(scores, offsets, 0, len(offsets) - 1)
    sequence = np.searchsorted(offsets, spans[:, 0], side="right") - 1
    if np.any(spans[:, 0] >= spans[:, 1]) or np.any(spans[:, 1] > offsets[sequence + 1]):
        raise ValueError("treecrf: every span needs a row, and must not leave its sequence")
    if chain.order <= 1 and np.all(spans[:, 1] - spans[:, 0] == 1):  # no kernel to compile
        found: Doubles = nodes[spans[:, 0], labels[spans[:, 0]]]
        return found
    result = np.full(len(spans), np.nan)
    if chain.order <= 1:
        asked = _Spans(spans, sequence, labels, nodes)
        _markov_spans(sequences, chain.scaled_moves.factors, chain.steps.end, asked, result)
    lost = np.isnan(result)
    if lost.any():
        asked = _Spans(spans[lost], sequence[lost], labels, nodes)
        found = np.empty(len(asked.rows))
        _context_spans(sequences, chain.steps, allowed, asked, found)
        result[lost] = found
    return result


@kernel
def label_and_span_probabilities(
    sequences: tuple[Floats, Ints, Doubles, Labels],
    edges: Doubles,
    end: Doubles,
    spans: Ints,
    of_labels: Doubles,
    of_spans: Doubles,
) -> int:
    """Write P(its label) of each row and P(all its labels) of each span; returns how many are NaN.

    Of a chain of order 0 or 1, as `span_probabilities` finds them. sequences: scores, offsets,
    marginals and labels. edges, end: as for `_markov_spans`. spans: (n, 2), sorted by first row,
    each within one sequence. NaN: scaled messages underflow.
    """
    scores, offsets, nodes, labels = sequences
    for row in range(len(of_labels)):
        of_labels[row] = nodes[row, labels[row]]
    if len(of_spans) == 0:
        return 0
    sequence = np.empty(len(spans), np.int64)
    s = 0
    for i in range(len(spans)):
        while offsets[s + 1] <= spans[i, 0]:
            s += 1
        sequence[i] = s
    chunk = ScoredChunk(scores, offsets, 0, len(offsets) - 1)
    _markov_spans(chunk, edges, end, _Spans(spans, sequence, labels, nodes), of_spans)
    n_lost = 0
    for i in range(len(of_spans)):
        n_lost += np.isnan(of_spans[i])
    return n_lost


@kernel
def _markov_spans(
    sequences: ScoredChunk, edges: Doubles, end: Doubles, spans: _Spans, result: Doubles
) -> None:
    """Fill `result` for a chain of order 0 or 1; NaN stays where scaled messages underflow."""
    scores, offsets = sequences.scores, sequences.offsets
    n_labels = len(end)
    nothing = np.zeros(n_labels)
    i = 0
    while i < len(result):
        s = spans.sequence[i]
        past = i
        longest = 0
        while past < len(result) and spans.sequence[past] == s:
            longest = max(longest, spans.rows[past, 1] - spans.rows[past, 0])
            past += 1
        begin, stop = offsets[s], offsets[s + 1]
        # beta[t]: of what follows row begin + t - 1, by its label; down to the first span
        beta = np.zeros((stop - begin + 1 if longest > 1 else 0, n_labels))
        if longest > 1:
            least = spans.rows[i, 0] - begin
            for y in range(n_labels):
                beta[stop - begin, y] = 1.0
            for t in range(stop - begin - 1, least, -1):
                step_back(scores[begin + t], t, stop - begin, edges, end, beta)
        for k in range(i, past):
            first = spans.rows[k, 0]
            p = spans.nodes[first, spans.labels[first]]
            for row in range(first + 1, spans.rows[k, 1]):
                before, label = spans.labels[row - 1], spans.labels[row]
                table = scores[row, before if scores.shape[1] > 1 else 0]
                added = end if row == stop - 1 else nothing
                p *= continuation(table, added, edges[before], beta[row - begin + 1], label)
            result[k] = p
        i = past


@kernel
def _context_spans(
    sequences: ScoredChunk, steps: StepPotentials, allowed: Mask, spans: _Spans, result: Doubles
) -> None:
    """Fill `result` for a chain of any order and any potentials, in log space.

    allowed: EVERYTHING_ALLOWED, in the form that kernels take.
    """
    scores, offsets = sequences.scores, sequences.offsets
    order, n_labels = steps.order, len(steps.end)
    n_contexts = n_labels**order
    i = 0
    while i < len(result):
        s = spans.sequence[i]
        begin, length = offsets[s], offsets[s + 1] - offsets[s]
        alpha = log_forward(scores, begin, length, steps, allowed)
        beta = log_backward(scores, begin, length, steps, allowed)
        log_z = beta[0, 0]
        while i < len(result) and spans.sequence[i] == s:
            first, last = spans.rows[i, 0] - begin, spans.rows[i, 1] - begin
            before = alpha[first].copy()
            for t in range(first, last):
                y = spans.labels[begin + t]
                after = np.full(n_contexts, -np.inf)
                for c in range(n_labels ** min(t, order)):
                    value = before[c] + potential(scores, begin, length, t, c, y, steps)
                    at = context_after(c, y, order, n_labels)
                    after[at] = log_add(after[at], value)
                before = after
            total = -np.inf
            for c in range(n_contexts):
                total = log_add(total, before[c] + beta[last, c])
            result[i] = math.exp(total - log_z) if total > -np.inf else 0.0
            i += 1


@kernel
def continuation(
    scores: Floats, added: Doubles, edges: Doubles, beta: Doubles, label: int
) -> float:
    """P(y_t = label | y_{t-1}), of arrays over y_t; NaN where the messages underflow.

    added: the potentials of last labels at the end, else 0.
    """
    n_labels = len(added)
    top = -np.inf
    for y in range(n_labels):
        top = max(top, scores[y] + added[y])
    total = 0.0
    chosen = 0.0
    for y in range(n_labels):
        value = math.exp(scores[y] + added[y] - top) * edges[y] * beta[y]
        total += value
        if y == label:
            chosen = value
    return chosen / total if total >= TINY else np.nan


@kernel
def step_back(
    scores: Floats, t: int, length: int, edges: Doubles, end: Doubles, beta: Doubles
) -> None:
    """Fill beta[t] from beta[t + 1], scaled to a maximum of 1.

    scores: (n_tables, n_labels), those of position t.
    """
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
