"""Inference pruned to a beam: at every position only the b states of the largest mass go on.

For node scores and one transition matrix (family "separate"). A position costs b*K instead of
K*K: only states inside the beam send mass to the next position. The annotated label always stays
inside during training, so that no likelihood is lost with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain import chain as chains
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.chain_kernels import (
    Doubles,
    Floats,
    Ints,
    Labels,
    ScoredChunk,
    StepPotentials,
    longest_of,
)
from spacy_treecrf.engine.chain.transition_chain import (
    UNDERFLOW,
    TransitionFactors,
    TransitionMarginals,
    transition_factors,
)
from spacy_treecrf.engine.kernel import kernel

# Kept labels of rows whose label must not be kept in particular.
NOTHING_KEPT = np.zeros(0, np.int32)


class _Kept(NamedTuple):
    """The states inside the beam at each position of one sequence, rising."""

    states: Labels  # shape: (longest, beam + 1)
    counts: Ints  # shape: (longest,), how many of the states are in use
    values: Doubles  # shape: (longest, beam + 1), forward masses, or scores of the best paths
    emission: Doubles  # shape: (longest, beam + 1)
    scale: Doubles  # shape: (longest,), what divides the forward mass of each position


class _Messages(NamedTuple):
    """Backward masses of the kept states of a position; each of shape (beam + 1,)."""

    inward: Doubles  # with emissions, scaled
    backward: Doubles
    backward_before: Doubles  # those of the position before


class _Position(NamedTuple):
    """What is computed of one position before it is pruned."""

    values: Doubles  # shape: (n_labels,), of all labels
    emission: Doubles  # shape: (n_labels,)
    top: Doubles  # shape: (beam,), for keep_best


@kernel
def keep_best(
    values: Doubles, least: float, beam: int, also: int, top: Doubles, states: Labels
) -> int:
    """Write the states of the `beam` largest values above `least`, rising; returns how many.

    Of equal values the lowest states stay. `also` is a state that stays in any case if its value is
    above `least`, or -1. top: (beam,) and states: (beam + 1,) are overwritten.
    """
    n = 0
    for k in range(len(values)):
        value = values[k]
        if not value > least or (n == beam and value <= top[n - 1]):
            continue
        i = n if n < beam else beam - 1
        n = min(n + 1, beam)
        while i > 0 and value > top[i - 1]:
            top[i] = top[i - 1]
            states[i] = states[i - 1]
            i -= 1
        top[i] = value
        states[i] = k
    if also >= 0 and values[also] > least:
        inside = False
        for i in range(n):
            inside |= states[i] == also
        if not inside:
            states[n] = also
            n += 1
    for i in range(1, n):  # sums run over rising states, as those without a beam do
        state = states[i]
        j = i
        while j > 0 and states[j - 1] > state:
            states[j] = states[j - 1]
            j -= 1
        states[j] = state
    return n


@kernel(inline="always")
def _arrive(
    scores: Floats,
    row: int,
    t: int,
    length: int,
    factors: TransitionFactors,
    kept: _Kept,
    here: _Position,
) -> float:
    """Fill emissions and forward masses of all labels at position t; returns the highest score."""
    start, trans, end = factors
    states, counts, forward, _, _ = kept
    mass, emission, _ = here
    n_labels = len(mass)
    highest: float = scores[row + t, 0]
    for k in range(1, n_labels):
        highest = max(highest, scores[row + t, k])
    for k in range(n_labels):
        emission[k] = np.exp(np.float64(scores[row + t, k] - highest))
        mass[k] = start[k] if t == 0 else 0.0
    if t > 0:
        for i in range(counts[t - 1]):
            before = forward[t - 1, i]
            state = states[t - 1, i]
            for k in range(n_labels):
                mass[k] += before * trans[state, k]
    for k in range(n_labels):
        if t == length - 1:
            emission[k] *= end[k]
        mass[k] *= emission[k]
    return highest


@kernel(inline="always")
def _prune(t: int, beam: int, also: int, here: _Position, kept: _Kept) -> float:
    """Keep the best states of position t, scaled; returns their mass, NaN if it underflowed.

    also: a state that must be kept, or -1.
    """
    mass, emission, top = here
    states, forward, kept_emission = kept.states[t], kept.values[t], kept.emission[t]
    n = keep_best(mass, 0.0, beam, also, top, states)
    kept.counts[t] = n
    total = 0.0
    for i in range(n):
        total += mass[states[i]]
    if not total > UNDERFLOW:
        return np.nan
    kept.scale[t] = total
    inverse = 1.0 / total
    for i in range(n):
        forward[i] = mass[states[i]] * inverse
        kept_emission[i] = emission[states[i]]
    # States far below the best are next to nothing, unless it is the annotated one.
    if also >= 0 and not mass[also] * inverse > UNDERFLOW:
        return np.nan
    return total


@kernel(forceinline=True)
def _backward(
    row: int,
    length: int,
    sequence_weight: float,
    trans: Doubles,
    kept: _Kept,
    messages: _Messages,
    out: TransitionMarginals,
) -> None:
    """Fill marginals and add sums of pairs of one sequence, over the states that were kept."""
    states, counts, forward, emission, scale = kept
    nodes, pair_sums = out.nodes, out.pair_sums
    nodes[row : row + length] = 0.0
    inward, backward, backward_before = messages
    backward[:] = 1.0
    for t in range(length - 1, -1, -1):
        n = counts[t]
        for i in range(n):
            nodes[row + t, states[t, i]] = forward[t, i] * backward[i]
        if t == 0:
            break
        inverse = 1.0 / scale[t]
        for j in range(n):
            inward[j] = emission[t, j] * backward[j] * inverse
        for i in range(counts[t - 1]):
            state = states[t - 1, i]
            outer = forward[t - 1, i] * sequence_weight
            total = 0.0
            for j in range(n):
                value = trans[state, states[t, j]] * inward[j]
                total += value
                pair_sums[state, states[t, j]] += outer * value
            backward_before[i] = total
        backward, backward_before = backward_before, backward


@kernel
def _no_states(longest: int, beam: int) -> _Kept:
    """Room for sequences of up to this length."""
    return _Kept(
        np.zeros((longest, beam + 1), np.int32),
        np.zeros(longest, np.int64),
        np.zeros((longest, beam + 1)),
        np.zeros((longest, beam + 1)),
        np.empty(longest),
    )


@kernel
def beam_forward_backward(
    sequences: ScoredChunk,
    factors: TransitionFactors,
    beam: int,
    kept_labels: Labels,
    sequence_weights: Doubles,
    out: TransitionMarginals,
) -> int:
    """Forward-backward of the sequences over the states that the forward pass keeps.

    It is the pruned form of `transition_chain.forward_backward`. sequences.scores: (n_rows,
    n_labels).

    kept_labels: (n_rows,) a label that each position keeps, -1 for none; or empty. There are no
    mixing messages. Returns the number of sequences that underflowed or met a dead end; their
    log_z is NaN.
    """
    scores, offsets = sequences.scores, sequences.offsets
    n_labels = scores.shape[1]
    kept = _no_states(longest_of(offsets, sequences.first, sequences.last), beam)
    messages = _Messages(np.empty(beam + 1), np.empty(beam + 1), np.empty(beam + 1))
    here = _Position(np.empty(n_labels), np.empty(n_labels), np.empty(beam))
    failed = 0
    for s in range(sequences.first, sequences.last):
        row = offsets[s]
        length = offsets[s + 1] - row
        log_z = 0.0
        for t in range(length):
            highest = _arrive(scores, row, t, length, factors, kept, here)
            also = kept_labels[row + t] if len(kept_labels) else -1
            log_z += np.log(_prune(t, beam, also, here, kept)) + highest
            if np.isnan(log_z):
                break
        out.log_z[s] = log_z
        if np.isnan(log_z):
            failed += 1
        else:
            _backward(row, length, sequence_weights[s], factors.trans, kept, messages, out)
    return failed


@kernel(inline="always")
def _extend_paths(
    scores: Floats,
    row: int,
    t: int,
    steps: StepPotentials,
    kept: _Kept,
    back: Labels,
    value: Doubles,
) -> None:
    """Fill the score of the best path to each label of position t, and the state it is from."""
    moves = steps.moves
    states, counts, best, _, _ = kept
    n_labels = len(value)
    if t == 0:
        for v in range(n_labels):
            value[v] = moves[n_labels, v]
    else:
        for v in range(n_labels):
            value[v] = -np.inf
        for i in range(counts[t - 1]):
            before = best[t - 1, i]
            u = states[t - 1, i]
            for v in range(n_labels):
                through = before + moves[u, v]
                if through > value[v]:
                    value[v] = through
                    back[t, v] = i
    for v in range(n_labels):
        value[v] += scores[row + t, v]


@kernel
def _trace_back(row: int, length: int, kept: _Kept, back: Labels, labels: Labels) -> float:
    """Write the labels of the best path that ends inside the beam; returns its score."""
    at = 0
    for i in range(1, kept.counts[length - 1]):
        if kept.values[length - 1, i] > kept.values[length - 1, at]:
            at = i
    best: float = kept.values[length - 1, at]
    for t in range(length - 1, -1, -1):
        y = kept.states[t, at]
        labels[row + t] = y
        at = back[t, y]
    return best


@kernel
def beam_viterbi_kernel(
    sequences: ScoredChunk, steps: StepPotentials, beam: int, labels: Labels, best: Doubles
) -> None:
    """Viterbi over the states of the `beam` best scores; best is -inf where it meets a dead end.

    sequences.scores: (n_rows, n_labels)
    """
    scores, offsets = sequences.scores, sequences.offsets
    end = steps.end
    n_labels = len(end)
    longest = longest_of(offsets, sequences.first, sequences.last)
    kept = _no_states(longest, beam)
    states, counts, values, _, _ = kept
    back = np.zeros((longest, n_labels), np.int32)
    value = np.empty(n_labels)
    top = np.empty(beam)
    for s in range(sequences.first, sequences.last):
        row = offsets[s]
        length = offsets[s + 1] - row
        best[s] = 0.0
        for t in range(length):
            _extend_paths(scores, row, t, steps, kept, back, value)
            if t == length - 1:
                for v in range(n_labels):
                    value[v] += end[v]
            n = keep_best(value, -np.inf, beam, -1, top, states[t])
            counts[t] = n
            for i in range(n):
                values[t, i] = value[states[t, i]]
            if n == 0:
                best[s] = -np.inf
                break
        if length > 0 and best[s] > -np.inf:
            best[s] = _trace_back(row, length, kept, back, labels)


def beam_marginals(sequences: ScoredChunk, chain: Chain, out: npt.NDArray[np.float64]) -> None:
    """Write P(y_t = k) inside the chain's beam into out (n_rows, n_labels).

    Where a sequence meets a dead end in the beam, the probabilities are exact ones.
    sequences.scores: (n_rows, 1, n_labels)
    """
    scores, offsets, first, last = sequences
    rows = slice(int(offsets[first]), int(offsets[last]))
    n_sequences, n_labels = last - first, chain.n_labels
    found = TransitionMarginals(
        nodes=np.zeros((rows.stop - rows.start, n_labels), np.float32),
        pair_sums=np.zeros((n_labels, n_labels)),
        log_z=np.full(n_sequences, np.nan),
        messages=np.zeros((0, 2), np.float32),
    )
    factors, _, _ = transition_factors(chain)
    if factors is not None:
        nodes = ScoredChunk(scores[rows, 0], offsets[first : last + 1] - rows.start, 0, n_sequences)
        beam_forward_backward(
            nodes, factors, chain.pruned, NOTHING_KEPT, np.ones(n_sequences), found
        )
    out[rows] = found.nodes
    for s in first + np.flatnonzero(np.isnan(found.log_z)):
        some = slice(int(offsets[s]), int(offsets[s + 1]))
        alone = np.array([0, some.stop - some.start], dtype=np.int64)
        out[some], _ = chains.node_marginals(scores[some], alone, chain)
