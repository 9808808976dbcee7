"""Exact inference on a graph, in log space: the best labelling, marginals, spans.

Arrays over states have a row for each position and one for the end.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.chain_kernels import Floats, Labels, StepPotentials, potential
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.rules.graph import NOWHERE, Graph

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.uint8]


class Trellis(NamedTuple):
    """One sequence: its scores, what the chain adds, and the states that are followed."""

    scores: Floats  # shape: (length, 1 or n_contexts, n_labels)
    steps: StepPotentials
    graph: Graph


class Messages(NamedTuple):
    """What is known of states from before and from after; each of shape (length + 1, n_states)."""

    alpha: Doubles  # log sums over labellings up to a state
    beta: Doubles  # log sums over labellings from it to the end; only where alpha is finite


@kernel
def _place(graph: Graph, t: int) -> int:
    """The row of the graph that has the states of position t."""
    return t if len(graph.following) > 1 else 0


@kernel
def step_value(trellis: Trellis, t: int, s: int, y: int) -> float:
    """The potential of label y in state s at position t."""
    c = trellis.graph.contexts[_place(trellis.graph, t), s]
    return float(potential(trellis.scores, 0, len(trellis.scores), t, c, y, trellis.steps))


@kernel
def next_state(trellis: Trellis, t: int, s: int, y: int) -> int:
    """The state after label y in state s at position t, or NOWHERE."""
    return int(trellis.graph.following[_place(trellis.graph, t), s, y])


@kernel
def fill_best(trellis: Trellis, best: Doubles) -> float:
    """Fill best (length + 1, n_states): the score of the best labelling from a state to the end.

    Returns the score of the best labelling; -inf if there is none.
    """
    length, n_labels = len(trellis.scores), len(trellis.steps.end)
    n_states = trellis.graph.following.shape[1]
    best[length] = 0.0
    for t in range(length - 1, -1, -1):
        for s in range(1 if t == 0 else n_states):
            top = -np.inf
            for y in range(n_labels):
                after = next_state(trellis, t, s, y)
                if after != NOWHERE:
                    top = max(top, step_value(trellis, t, s, y) + best[t + 1, after])
            best[t, s] = top
    return float(best[0, 0])


@kernel
def follow_best(trellis: Trellis, best: Doubles, t: int, s: int, labels: Labels) -> None:
    """Write the best labels from state s at position t on; the lowest among equals."""
    length, n_labels = len(trellis.scores), len(trellis.steps.end)
    while t < length:
        chosen, top = 0, -np.inf
        for y in range(n_labels):
            after = next_state(trellis, t, s, y)
            if after == NOWHERE:
                continue
            value = step_value(trellis, t, s, y) + best[t + 1, after]
            if value > top:
                chosen, top = y, value
        labels[t] = chosen
        s = next_state(trellis, t, s, chosen)
        t += 1


@kernel
def best_labels(trellis: Trellis, best: Doubles, labels: Labels) -> float:
    """Write the best labelling, if there is one, and return its score. best: scratch."""
    top = fill_best(trellis, best)
    if top > -np.inf:
        follow_best(trellis, best, 0, 0, labels)
    return float(top)


@kernel
def forward(trellis: Trellis, allowed: Mask, alpha: Doubles) -> float:
    """Fill alpha and return log Z; -inf if there is no labelling.

    allowed: (length, n_labels), 0 where a label is ruled out; or empty.
    """
    length, n_labels = len(trellis.scores), len(trellis.steps.end)
    n_states = trellis.graph.following.shape[1]
    total = np.empty(n_states)
    alpha[:] = -np.inf
    alpha[0, 0] = 0.0
    for t in range(length):
        total[:] = 0.0
        for adding in (False, True):  # the largest terms first, then the sums of their shares
            for s in range(n_states):
                if alpha[t, s] == -np.inf:
                    continue
                for y in range(n_labels):
                    after = next_state(trellis, t, s, y)
                    if after == NOWHERE or (len(allowed) > 0 and allowed[t, y] == 0):
                        continue
                    value = alpha[t, s] + step_value(trellis, t, s, y)
                    if value == -np.inf:
                        continue
                    if adding:
                        total[after] += math.exp(value - alpha[t + 1, after])
                    else:
                        alpha[t + 1, after] = max(alpha[t + 1, after], value)
        for s in range(n_states):
            if total[s] > 0.0:
                alpha[t + 1, s] += math.log(total[s])
    return float(_log_sum(alpha[length]))


@kernel
def _log_sum(values: Doubles) -> float:
    top = -np.inf
    for value in values:
        top = max(top, value)
    if top == -np.inf:
        return top
    total = 0.0
    for value in values:
        total += math.exp(value - top)
    return float(top + math.log(total))


@kernel
def backward(trellis: Trellis, messages: Messages, log_z: float, nodes: Doubles) -> None:
    """Fill beta, and nodes (length, n_labels) with P(y_t = y), where alpha is filled."""
    alpha, beta = messages
    length, n_labels = len(trellis.scores), len(trellis.steps.end)
    values = np.empty(n_labels)
    nodes[:] = 0.0
    beta[:] = -np.inf
    beta[length] = 0.0
    for t in range(length - 1, -1, -1):
        for s in range(alpha.shape[1]):
            if alpha[t, s] == -np.inf:
                continue
            top = -np.inf
            for y in range(n_labels):
                after = next_state(trellis, t, s, y)
                values[y] = -np.inf
                if after != NOWHERE:
                    values[y] = step_value(trellis, t, s, y) + beta[t + 1, after]
                    top = max(top, values[y])
            if top == -np.inf:
                continue
            total = 0.0
            reached = math.exp(alpha[t, s] + top - log_z)
            for y in range(n_labels):
                share = math.exp(values[y] - top)
                total += share
                nodes[t, y] += reached * share
            beta[t, s] = top + math.log(total)


@kernel
def span_masses(
    trellis: Trellis, messages: Messages, log_z: float, spans: Ints, labels: Labels, found: Doubles
) -> None:
    """Fill found (n,) with P(positions first to last - 1 have their labels) of spans (n, 2)."""
    alpha, beta = messages
    for i in range(len(spans)):
        found[i] = 0.0
        for s in range(alpha.shape[1]):
            value = alpha[spans[i, 0], s]
            state = s
            for t in range(spans[i, 0], spans[i, 1]):
                if value == -np.inf:
                    break
                after = next_state(trellis, t, state, labels[t])
                if after == NOWHERE:
                    value = -np.inf
                    break
                value += step_value(trellis, t, state, labels[t])
                state = after
            if value > -np.inf:
                found[i] += math.exp(value + beta[spans[i, 1], state] - log_z)
