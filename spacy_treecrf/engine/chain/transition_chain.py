"""Inference tuned for family "separate": node scores, and one transition matrix or none.

The same quantities as `chain.py` computes for any family and order, but with N*K exponentials
instead of N*K*K, contiguous inner loops, and pairwise marginals summed over positions only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.chain_kernels import Doubles, Floats, ScoredChunk, longest_of
from spacy_treecrf.engine.kernel import kernel

# A mass this small may be all that hard constraints leave in the end, and soon underflows: the
# caller then redoes the sequence by the general kernels, which can work in log space.
UNDERFLOW = 1e-100


class TransitionFactors(NamedTuple):
    """The potentials of a chain as factors: exp(potential - the largest of its array)."""

    start: Doubles  # shape: (n_labels,)
    trans: Doubles  # shape: (n_labels, n_labels), trans[u, v]: u before v
    end: Doubles  # shape: (n_labels,)


class TransitionMarginals(NamedTuple):
    """Where inference with one transition matrix writes its results."""

    nodes: Floats  # shape: (n_rows, n_labels), P(y_t)
    # shape: (n_labels, n_labels), P(y_{t-1}, y_t) summed over positions, times sequence weights
    pair_sums: Doubles
    log_z: Doubles  # shape: (n_sequences,), NaN where a sequence underflowed
    messages: Floats  # shape: (n_rows, 2), left and right mixing messages, Chen 2015 (17)


class _Scratch(NamedTuple):
    """What the passes over one sequence leave for each other."""

    emission: Doubles  # shape: (longest, n_labels), exp(score - top)
    top: Doubles  # shape: (longest,), the largest score of each position
    arrival: Doubles  # shape: (longest, n_labels), forward mass before the emission is applied
    forward: Doubles  # shape: (longest, n_labels)
    scale: Doubles  # shape: (longest,), what divides the forward mass of each position
    trans_t: Doubles  # the transposed transition factors
    outer: Doubles  # shape: (n_labels, n_labels), sums of pairs still without their factor
    inward: Doubles  # shape: (n_labels,)
    backward: Doubles  # shape: (n_labels,)
    smallest: Doubles  # shape: (n_labels,)


def transition_factors(chain: Chain) -> tuple[TransitionFactors | None, float, float]:
    """Factors of the chain, and what they lack: for a sequence, and for each of its transitions.

    None instead of factors where a possible transition would be lost as a factor.
    """
    start, start_top = _factors_of(chain.start)
    trans, trans_top = _factors_of(chain.trans)
    end, end_top = _factors_of(chain.end)
    factors = None
    if start is not None and trans is not None and end is not None:
        factors = TransitionFactors(start, trans, end)
    return factors, start_top + end_top, trans_top


def _factors_of(part: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float64] | None, float]:
    """exp(part - top) and top; None where something possible would be lost as a factor."""
    possible = part > -np.inf
    top = float(part[possible].max()) if possible.any() else 0.0
    factors = np.exp(part.astype(float) - top)
    return (None if np.any(possible & (factors <= UNDERFLOW)) else factors), top


@kernel
def _contraction(
    weight: npt.NDArray[np.float64],
    target: npt.NDArray[np.float64],
    source: npt.NDArray[np.float64],
    smallest: npt.NDArray[np.float64],
) -> float:
    """The contraction 1 - sum_j min_i P(j | i) of theorem 3.1.

    P(j | i) = weight[i, j] target[j] / source[i]
    """
    n_labels = len(target)
    for j in range(n_labels):
        smallest[j] = np.inf
    for i in range(n_labels):
        if source[i] > 0.0:
            inverse = 1.0 / source[i]
            for j in range(n_labels):
                ratio = weight[i, j] * inverse
                smallest[j] = ratio if ratio < smallest[j] else smallest[j]
    kept = 0.0
    for j in range(n_labels):
        if target[j] > 0.0:
            kept += target[j] * smallest[j]
    return min(1.0, max(0.0, 1.0 - kept))


@kernel
def _emit(scores: Floats, row: int, length: int, end: Doubles, scratch: _Scratch) -> bool:
    """Fill emission and top of one sequence; False if an emission underflowed."""
    emission, tops = scratch.emission, scratch.top
    n_labels = scores.shape[1]
    fine = True
    for t in range(length):
        top = scores[row + t, 0]
        for k in range(1, n_labels):
            top = max(top, scores[row + t, k])
        for k in range(n_labels):
            emission[t, k] = np.exp(np.float64(scores[row + t, k] - top))
            fine &= emission[t, k] > UNDERFLOW or scores[row + t, k] == -np.inf
        tops[t] = top
    if length > 0:
        for k in range(n_labels):
            emission[length - 1, k] *= end[k]
    return fine


@kernel
def _forward(length: int, factors: TransitionFactors, scratch: _Scratch) -> float:
    """Fill arrival, forward and scale of one sequence; returns its log Z, NaN if it underflowed."""
    emission, forward, arrival = scratch.emission, scratch.forward, scratch.arrival
    top, scale = scratch.top, scratch.scale
    start, trans, _ = factors
    n_labels = forward.shape[1]
    log_z = 0.0
    for t in range(length):
        for k in range(n_labels):
            arrival[t, k] = start[k] if t == 0 else 0.0
        if t > 0:
            for i in range(n_labels):
                mass = forward[t - 1, i]
                if mass > 0.0:
                    for j in range(n_labels):
                        arrival[t, j] += mass * trans[i, j]
        total = 0.0
        for k in range(n_labels):
            forward[t, k] = arrival[t, k] * emission[t, k]
            total += forward[t, k]
        if not total > UNDERFLOW:
            return np.nan
        scale[t] = total
        inverse = 1.0 / total
        fine = True
        for k in range(n_labels):
            forward[t, k] *= inverse
            fine &= forward[t, k] == 0.0 or forward[t, k] > UNDERFLOW
        if not fine:
            return np.nan
        log_z += np.log(total) + top[t]
    return log_z


@kernel
def _backward(
    row: int,
    length: int,
    sequence_weight: float,
    trans: Doubles,
    want_mixing: bool,
    scratch: _Scratch,
    out: TransitionMarginals,
) -> None:
    """Fill marginals, pair sums and right messages of one sequence, from what _forward left."""
    emission, forward, trans_t = scratch.emission, scratch.forward, scratch.trans_t
    inward, backward, outer = scratch.inward, scratch.backward, scratch.outer
    scale, smallest = scratch.scale, scratch.smallest
    nodes, messages = out.nodes, out.messages
    n_labels = len(backward)
    for k in range(n_labels):
        backward[k] = 1.0
    right = 0.0
    for t in range(length - 1, -1, -1):
        for k in range(n_labels):
            nodes[row + t, k] = forward[t, k] * backward[k]
        if want_mixing:
            messages[row + t, 1] = right
        if t == 0:
            break
        inverse = 1.0 / scale[t]
        for k in range(n_labels):
            # A state that nothing reaches may have any backward mass, even an infinite one.
            reached = forward[t, k] > 0.0
            inward[k] = emission[t, k] * backward[k] * inverse if reached else 0.0
        for i in range(n_labels):
            mass = forward[t - 1, i] * sequence_weight
            if mass > 0.0:
                for j in range(n_labels):
                    outer[i, j] += mass * inward[j]
        for k in range(n_labels):
            backward[k] = 0.0
        for j in range(n_labels):
            mass = inward[j]
            if mass > 0.0:
                for i in range(n_labels):
                    backward[i] += mass * trans_t[j, i]
        if want_mixing:
            # P(y_t = j | y_{t-1} = i) = trans[i, j] inward[j] / backward[i]
            right = _contraction(trans, inward, backward, smallest) * (1.0 + right)


@kernel
def _send_left_messages(row: int, length: int, scratch: _Scratch, messages: Floats) -> None:
    """Fill the left messages of one sequence, from what _forward left."""
    forward, arrival = scratch.forward, scratch.arrival
    trans_t, smallest = scratch.trans_t, scratch.smallest
    left = 0.0
    messages[row, 0] = 0.0
    for t in range(1, length):
        # P(y_{t-1} = i | y_t = j) = forward[t-1, i] trans[i, j] / arrival[t, j]
        left = _contraction(trans_t, forward[t - 1], arrival[t], smallest) * (1.0 + left)
        messages[row + t, 0] = left


@kernel
def forward_backward(
    sequences: ScoredChunk,
    factors: TransitionFactors,
    sequence_weights: Doubles,
    want_mixing: bool,
    out: TransitionMarginals,
) -> int:
    """Forward-backward of the sequences. sequences.scores: (n_rows, n_labels)

    Returns the number of sequences that underflowed; their log_z is set to NaN.
    """
    scores, offsets = sequences.scores, sequences.offsets
    n_labels = scores.shape[1]
    longest = longest_of(offsets, sequences.first, sequences.last)
    scratch = _Scratch(
        emission=np.empty((longest, n_labels)),
        top=np.empty(longest),
        arrival=np.empty((longest, n_labels)),
        forward=np.empty((longest, n_labels)),
        scale=np.empty(longest),
        trans_t=np.ascontiguousarray(factors.trans.T),
        outer=np.zeros((n_labels, n_labels)),
        inward=np.empty(n_labels),
        backward=np.empty(n_labels),
        smallest=np.empty(n_labels),
    )
    failed = 0
    for s in range(sequences.first, sequences.last):
        row = offsets[s]
        length = offsets[s + 1] - row
        out.log_z[s] = np.nan
        if _emit(scores, row, length, factors.end, scratch):
            out.log_z[s] = _forward(length, factors, scratch)
        if np.isnan(out.log_z[s]):
            failed += 1
            continue
        _backward(row, length, sequence_weights[s], factors.trans, want_mixing, scratch, out)
        if want_mixing:
            _send_left_messages(row, length, scratch, out.messages)
    for i in range(n_labels):
        for j in range(n_labels):
            out.pair_sums[i, j] += scratch.outer[i, j] * factors.trans[i, j]
    return failed


@kernel
def independent(
    scores: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.int64],
    marginals: npt.NDArray[np.float32],
    log_z: npt.NDArray[np.float64],
) -> None:
    """Marginals of order 0, the softmax of every row. scores, marginals: (n_rows, n_labels)"""
    n_labels = scores.shape[1]
    weight = np.empty(n_labels)
    for s in range(len(log_z)):
        log_z[s] = 0.0
        for row in range(offsets[s], offsets[s + 1]):
            top = scores[row, 0]
            for k in range(1, n_labels):
                top = max(top, scores[row, k])
            total = 0.0
            for k in range(n_labels):
                weight[k] = np.exp(np.float64(scores[row, k] - top))
                total += weight[k]
            inverse = 1.0 / total
            for k in range(n_labels):
                marginals[row, k] = weight[k] * inverse
            log_z[s] += top + np.log(total)
