"""Spans that serve F1 best: those that gain most together, each its probability less a threshold.

The most probable labelling is most often right as a whole. F1 counts spans one by one: what is
expected of it is highest for the spans whose probability is above a threshold, and that is half of
the F1 that is then expected (Lipton, Elkan and Naryanaswamy, 2014, "Optimal thresholding of
classifiers to maximize F1 measure", theorem 1). Spans must not overlap, so of those above the
threshold the ones are taken whose probabilities, less the threshold, have the highest sum. Two
labellings that share a span add to its probability, where Viterbi sees one of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.span_probability import continuation, step_back
from spacy_treecrf.engine.kernel import kernel

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]

# What kernels are given are plain tuples: for named ones numba takes several microseconds a call.
# Of BILUO labels: the id of O; those of B, I, L and U of each type, -1 for one that there is not
# (n_types, 4); whether a label begins a span or is outside of all (n_labels,).
SpanLabels = tuple[int, Ints, Bools]
# Scores, offsets of the sequences, and marginals.
Rows = tuple[Floats, Ints, Doubles]
# Factors of moves and potentials of last labels, of `Chain.scaled_moves` and `Chain.steps`.
Moves = tuple[Doubles, Doubles]


@kernel
def choose_spans(
    rows: Rows,
    chunk: tuple[int, int],
    moves: Moves,
    spans: SpanLabels,
    threshold: float,
    labels: Labels,
) -> int:
    """Write the labels of the spans that gain most into `labels`, which holds the most probable.

    Of a chain of order 1. chunk: the first sequence, and the one past the last. threshold: above 0,
    up to 0.5. Returns the number of sequences that had to be looked at: in the others no span but
    those of the most probable labelling can be above it. Sequences whose scaled messages underflow
    keep their labels.
    """
    scores, offsets, nodes = rows
    n_looked_at = 0
    for s in range(chunk[0], chunk[1]):
        own = slice(offsets[s], offsets[s + 1])
        if not _is_clear(nodes[own], labels[own], spans[2], threshold):
            n_looked_at += 1
            _choose(scores[own], nodes[own], moves, spans, threshold, labels[own])
    return n_looked_at


@kernel
def _is_clear(nodes: Doubles, labels: Labels, opens: Bools, threshold: float) -> bool:
    """Whether all spans of a labelling, and no others, are above the threshold, by marginals alone.

    The probabilities by which the labels of a span are wrong bound, in sum, that of the span to be
    wrong, so that of any other span with its first label. threshold: up to 0.5.
    """
    wrong = 0.0
    for t in range(len(labels)):
        if opens[labels[t]]:
            wrong = 0.0
        wrong += 1.0 - nodes[t, labels[t]]
        if wrong >= threshold:
            return False
    return True


@kernel
def _choose(
    scores: Floats,
    nodes: Doubles,
    moves: Moves,
    spans: SpanLabels,
    threshold: float,
    labels: Labels,
) -> None:
    """Write the labels of the spans of one sequence that gain most."""
    edges, end = moves
    outside, of_types, _ = spans
    n, n_labels = nodes.shape
    nothing = np.zeros(n_labels)
    beta = np.zeros((n + 1, n_labels))  # of what follows row t - 1, by its label
    beta[n] = 1.0
    for t in range(n - 1, 0, -1):
        step_back(scores[t], t, n, edges, end, beta)
    # Of the rows before t: the highest gain, and the last span's first row and type
    gain = np.full(n + 1, -1.0)
    first = np.full(n + 1, -1)
    kind = np.full(n + 1, -1)
    gain[0] = 0.0
    for t in range(n):
        if gain[t] > gain[t + 1]:
            gain[t + 1], first[t + 1] = gain[t], -1
        for k in range(len(of_types)):
            b, i, last, unit = of_types[k]
            p = nodes[t, unit] if unit >= 0 else 0.0
            if gain[t] + p - threshold > gain[t + 1]:
                gain[t + 1], first[t + 1], kind[t + 1] = gain[t] + p - threshold, t, k
            p = nodes[t, b] if b >= 0 and last >= 0 else 0.0
            before = b
            past = t + 1
            while p > threshold and past < n:
                table = scores[past, before if scores.shape[1] > 1 else 0]
                added = end if past == n - 1 else nothing
                ends = p * continuation(table, added, edges[before], beta[past + 1], last)
                if np.isnan(ends):
                    return
                past += 1
                if gain[t] + ends - threshold > gain[past]:
                    gain[past], first[past], kind[past] = gain[t] + ends - threshold, t, k
                if i < 0:
                    break
                p *= continuation(table, added, edges[before], beta[past], i)
                before = i
    labels[:] = outside
    past = n
    while past > 0:
        if first[past] < 0:
            past -= 1
            continue
        b, i, last, unit = of_types[kind[past]]
        start = int(first[past])
        labels[start:past] = i
        labels[start] = b
        labels[past - 1] = last if past - start > 1 else unit
        past = start
