"""Label sequences out of scores: Viterbi, and the most probable label per position.

Both prefer lower labels among equals.
"""

from __future__ import annotations

import numpy as np

from spacy_treecrf.engine.chain.beam import beam_viterbi_kernel
from spacy_treecrf.engine.chain.chain import (
    Chain,
    Doubles,
    Floats,
    Ints,
    Labels,
    ScoredChunk,
    StepPotentials,
    kernel_arguments,
    longest_of,
    step_potentials,
)
from spacy_treecrf.engine.intrinsics import LABELS_AT_ONCE, best_before
from spacy_treecrf.engine.kernel import kernel, step


@step
def _find_best_before(delta: Doubles, moves: Doubles, top: Doubles, arg: Ints) -> None:
    """Write the best delta[u] + moves[u, v] over u of each label v into top, and its u into arg."""
    n_labels = len(delta)
    if n_labels >= LABELS_AT_ONCE:
        best_before(delta, moves, n_labels, top, arg)
        return
    for v in range(n_labels):
        top[v] = delta[0] + moves[0, v]
        arg[v] = 0
        for u in range(1, n_labels):
            value = delta[u] + moves[u, v]
            if value > top[v]:
                top[v] = value
                arg[v] = u


@kernel
def viterbi_bigram(
    sequences: ScoredChunk, steps: StepPotentials, labels: Labels, best: Doubles
) -> None:
    """Viterbi for order 1 with scores that do not depend on the context: the common case."""
    scores, offsets = sequences.scores, sequences.offsets
    moves, end = steps.moves, steps.end
    longest = longest_of(offsets, sequences.first, sequences.last)
    n_labels = len(end)
    back = np.empty((longest, n_labels), dtype=np.int32)
    delta = np.empty(n_labels)
    top = np.empty(n_labels)
    arg = np.empty(n_labels, dtype=np.int64)
    for s in range(sequences.first, sequences.last):
        begin = offsets[s]
        length = offsets[s + 1] - begin
        if length == 0:
            best[s] = 0.0
            continue
        for y in range(n_labels):
            delta[y] = moves[n_labels, y] + scores[begin, 0, y]
        for t in range(1, length):
            _find_best_before(delta, moves, top, arg)
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
            for t in range(length):
                labels[begin + t] = 0
            continue
        for t in range(length - 1, 0, -1):
            labels[begin + t] = y
            y = back[t, y]
        labels[begin] = y


@kernel
def viterbi_general(
    sequences: ScoredChunk, steps: StepPotentials, labels: Labels, best: Doubles
) -> None:
    """Viterbi for any order and layout of scores."""
    scores, offsets = sequences.scores, sequences.offsets
    order, moves, end = steps.order, steps.moves, steps.end
    longest = longest_of(offsets, sequences.first, sequences.last)
    n_labels = len(end)
    n_contexts = n_labels**order
    n_tables = scores.shape[1]
    stride = max(1, n_contexts // n_labels)
    step = min(1, order)
    # Position t was entered into context c' from back[t, c'] = c * K + y.
    back = np.zeros((longest, n_contexts), dtype=np.int64)
    delta = np.empty(n_contexts)
    after = np.empty(n_contexts)
    for s in range(sequences.first, sequences.last):
        begin = offsets[s]
        length = offsets[s + 1] - begin
        for c in range(n_contexts):
            delta[c] = -np.inf
        delta[0] = 0.0
        for t in range(length):
            for c in range(n_contexts):
                after[c] = -np.inf
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
            for t in range(length):
                labels[begin + t] = 0
            continue
        for t in range(length - 1, -1, -1):
            labels[begin + t] = back[t, context] % n_labels
            context = back[t, context] // n_labels


def viterbi_kernel(sequences: ScoredChunk, chain: Chain, labels: Labels, best: Doubles) -> None:
    """Viterbi of the sequences into labels and best; releases the GIL."""
    if chain.order == 1 and sequences.scores.shape[1] == 1:
        viterbi_bigram(sequences, step_potentials(chain), labels, best)
    else:
        viterbi_general(sequences, step_potentials(chain), labels, best)


def beam_viterbi(sequences: ScoredChunk, chain: Chain, labels: Labels, best: Doubles) -> None:
    """Viterbi inside the chain's beam; exact where constraints make the beam a dead end."""
    steps = step_potentials(chain)
    nodes = sequences._replace(scores=sequences.scores[:, 0])
    beam_viterbi_kernel(nodes, steps, chain.pruned, labels, best)
    first, last = sequences.first, sequences.last
    for s in (first + np.flatnonzero(np.isneginf(best[first:last]))).tolist():
        viterbi_bigram(sequences._replace(first=s, last=s + 1), steps, labels, best)


def viterbi(scores: Floats, offsets: Ints, chain: Chain) -> tuple[Labels, Doubles]:
    """The best label sequences (int32[N]) and their scores (float64[S]).

    Among equals the last context is the lowest, then the one before it, and so on. A sequence
    without any allowed labels has score -inf and labels 0.
    """
    scores, offsets, _ = kernel_arguments(scores, offsets, chain)
    n_sequences = len(offsets) - 1
    labels = np.zeros(len(scores), dtype=np.int32)
    best = np.empty(n_sequences)
    viterbi_kernel(ScoredChunk(scores, offsets, 0, n_sequences), chain, labels, best)
    return labels, best


def marginal_argmax(node_marginals: Doubles) -> Labels:
    """The most probable label of each position on its own; the lowest among equals."""
    labels: Labels = np.argmax(node_marginals, axis=1).astype(np.int32)
    return labels
