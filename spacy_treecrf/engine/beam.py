"""Inference pruned to a beam: at every position only the b states of the largest mass go on.

For node scores and one transition matrix (family "separate"). A position costs b*K instead of
K*K: only states inside the beam send mass to the next position. The annotated label always stays
inside during training, so that no likelihood is lost with it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine import chain as chains
from spacy_treecrf.engine.chain import Chain
from spacy_treecrf.engine.separate import UNDERFLOW, factors_of

# Of a row whose label must not be kept in particular.
NOTHING_KEPT = np.zeros(0, np.int32)


@njit(nogil=True, cache=True)
def keep_best(
    values: npt.NDArray[np.float64],
    least: float,
    beam: int,
    also: int,
    top: npt.NDArray[np.float64],
    states: npt.NDArray[np.int32],
) -> int:
    """The states of the `beam` largest values above `least`, rising, into `states`; how many.

    Of equal values the lowest states stay. `also` is a state that stays in any case if its value is
    above `least`; -1: none. top: (beam,) and states: (beam + 1,) are overwritten.
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


@njit(nogil=True, cache=True)
def beam_forward_backward(
    scores: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.int64],
    first: int,
    last: int,
    start: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
    end: npt.NDArray[np.float64],
    beam: int,
    kept_labels: npt.NDArray[np.int32],
    sequence_weights: npt.NDArray[np.float64],
    marginals: npt.NDArray[np.float32],
    pair_sums: npt.NDArray[np.float64],
    log_z: npt.NDArray[np.float64],
) -> int:
    """As `separate.forward_backward`, over the states that the forward pass keeps.

    kept_labels: (n_rows,) a label that each position keeps, -1 for none; or empty.
    Returns the number of sequences that underflowed or met a dead end; their log_z is NaN.
    """
    n_labels = scores.shape[1]
    longest = 0
    for s in range(first, last):
        longest = max(longest, offsets[s + 1] - offsets[s])
    forward = np.zeros((longest, beam + 1))  # of the kept states, in their order
    emission = np.zeros((longest, beam + 1))
    states = np.zeros((longest, beam + 1), np.int32)
    n_states = np.zeros(longest, np.int64)
    scale = np.empty(longest)
    all_emissions = np.empty(n_labels)
    mass = np.empty(n_labels)
    top = np.empty(beam)
    inward = np.empty(beam + 1)
    backward = np.empty(beam + 1)
    backward_before = np.empty(beam + 1)
    failed = 0
    for s in range(first, last):
        row = offsets[s]
        length = offsets[s + 1] - row
        log_scale = 0.0
        fine = True
        for t in range(length):
            highest = scores[row + t, 0]
            for k in range(1, n_labels):
                highest = max(highest, scores[row + t, k])
            for k in range(n_labels):
                all_emissions[k] = np.exp(np.float64(scores[row + t, k] - highest))
                mass[k] = start[k] if t == 0 else 0.0
            if t > 0:
                for i in range(n_states[t - 1]):
                    before = forward[t - 1, i]
                    state = states[t - 1, i]
                    for k in range(n_labels):
                        mass[k] += before * weight[state, k]
            for k in range(n_labels):
                if t == length - 1:
                    all_emissions[k] *= end[k]
                mass[k] *= all_emissions[k]
            also = kept_labels[row + t] if len(kept_labels) else -1
            n = keep_best(mass, 0.0, beam, also, top, states[t])
            n_states[t] = n
            total = 0.0
            for i in range(n):
                total += mass[states[t, i]]
            if not total > UNDERFLOW:
                fine = False
                break
            scale[t] = total
            inverse = 1.0 / total
            for i in range(n):
                forward[t, i] = mass[states[t, i]] * inverse
                emission[t, i] = all_emissions[states[t, i]]
            # States far below the best are next to nothing, unless it is the annotated one.
            fine &= also < 0 or mass[also] * inverse > UNDERFLOW
            log_scale += np.log(total) + highest
        if not fine:
            log_z[s] = np.nan
            failed += 1
            continue
        log_z[s] = log_scale
        for t in range(length):
            for k in range(n_labels):
                marginals[row + t, k] = 0.0
        for i in range(n_states[length - 1]):
            backward[i] = 1.0
        for t in range(length - 1, -1, -1):
            n = n_states[t]
            for i in range(n):
                marginals[row + t, states[t, i]] = forward[t, i] * backward[i]
            if t == 0:
                break
            inverse = 1.0 / scale[t]
            for j in range(n):
                inward[j] = emission[t, j] * backward[j] * inverse
            for i in range(n_states[t - 1]):
                state = states[t - 1, i]
                outer = forward[t - 1, i] * sequence_weights[s]
                total = 0.0
                for j in range(n):
                    value = weight[state, states[t, j]] * inward[j]
                    total += value
                    pair_sums[state, states[t, j]] += outer * value
                backward_before[i] = total
            backward, backward_before = backward_before, backward
    return failed


@njit(nogil=True, cache=True)
def beam_viterbi_kernel(
    scores: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.int64],
    first: int,
    last: int,
    moves: npt.NDArray[np.float64],
    end: npt.NDArray[np.float64],
    beam: int,
    labels: npt.NDArray[np.int32],
    best: npt.NDArray[np.float64],
) -> None:
    """Viterbi over the states of the `beam` best scores; best is -inf where it meets a dead end.

    scores: (n_rows, n_labels). moves: (n_labels + 1, n_labels), the last row before the start.
    """
    n_labels = len(end)
    longest = 0
    for s in range(first, last):
        longest = max(longest, offsets[s + 1] - offsets[s])
    delta = np.empty((longest, beam + 1))
    states = np.zeros((longest, beam + 1), np.int32)
    n_states = np.zeros(longest, np.int64)
    back = np.zeros((longest, n_labels), np.int32)
    value = np.empty(n_labels)
    top = np.empty(beam)
    for s in range(first, last):
        row = offsets[s]
        length = offsets[s + 1] - row
        best[s] = 0.0
        for t in range(length):
            if t == 0:
                for v in range(n_labels):
                    value[v] = moves[n_labels, v]
            else:
                for v in range(n_labels):
                    value[v] = -np.inf
                for i in range(n_states[t - 1]):
                    before = delta[t - 1, i]
                    u = states[t - 1, i]
                    for v in range(n_labels):
                        through = before + moves[u, v]
                        if through > value[v]:
                            value[v] = through
                            back[t, v] = i
            for v in range(n_labels):
                value[v] += scores[row + t, v]
                if t == length - 1:
                    value[v] += end[v]
            n_states[t] = keep_best(value, -np.inf, beam, -1, top, states[t])
            for i in range(n_states[t]):
                delta[t, i] = value[states[t, i]]
            if n_states[t] == 0:
                best[s] = -np.inf
                break
        if length == 0 or best[s] == -np.inf:
            continue
        at = 0
        for i in range(1, n_states[length - 1]):
            if delta[length - 1, i] > delta[length - 1, at]:
                at = i
        best[s] = delta[length - 1, at]
        for t in range(length - 1, -1, -1):
            y = states[t, at]
            labels[row + t] = y
            at = back[t, y]


def beam_marginals(
    scores: npt.NDArray[np.float32],
    offsets: npt.NDArray[np.int64],
    chunk: tuple[int, int],
    chain: Chain,
    out: npt.NDArray[np.float64],
) -> None:
    """P(y_t = k) inside the chain's beam, of the sequences of a chunk, into out (n_rows, n_labels).

    Exact where a sequence meets a dead end. scores: (n_rows, 1, n_labels)
    """
    rows = slice(int(offsets[chunk[0]]), int(offsets[chunk[1]]))
    own = offsets[chunk[0] : chunk[1] + 1] - rows.start
    n_sequences, n_labels = len(own) - 1, chain.n_labels
    log_z = np.full(n_sequences, np.nan)
    marginals = np.zeros((rows.stop - rows.start, n_labels), np.float32)
    start, trans, end = (factors_of(part)[0] for part in (chain.start, chain.trans, chain.end))
    if start is not None and trans is not None and end is not None:
        beam_forward_backward(
            scores[rows, 0],
            own,
            0,
            n_sequences,
            start,
            trans,
            end,
            chain.pruned,
            NOTHING_KEPT,
            np.ones(n_sequences),
            marginals,
            np.zeros((n_labels, n_labels)),
            log_z,
        )
    out[rows] = marginals
    for s in chunk[0] + np.flatnonzero(np.isnan(log_z)):
        some = slice(int(offsets[s]), int(offsets[s + 1]))
        alone = np.array([0, some.stop - some.start], dtype=np.int64)
        out[some], _ = chains.node_marginals(scores[some], alone, chain)
