"""Graphs: the states that labellings under rules pass through, at all positions or inside a beam.

A state is a context of the chain, the previous labels, with the memory of the rules. While all
states are few, all of them are followed (`whole_graph`), which is exact; else those of the best
scores at each position (`beam_graph`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.chain_kernels import Floats, StepPotentials, potential
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.rules.rule_masks import FORBIDDEN, RuleMasks, memory_after

Ints = npt.NDArray[np.int64]
Next = npt.NDArray[np.int32]

# Inference is exact while no more moves, states times labels, are possible at a position,
EXACT_MOVES = 2**17
# and while what is kept of a sequence, states times positions, is not more than this.
EXACT_CELLS = 2**25
# Elsewhere so many states are followed at each position.
BEAM_STATES = 1024
BEAM_MOVES = 2**26  # of all positions of a sequence together: 256 MB
LEAST_STATES = 32
NOWHERE = -1


class Graph(NamedTuple):
    """States before positions, and where labels lead from them.

    Where all states are followed, they are the same at all positions, and n_positions is 1. The
    start is state 0.
    """

    following: Next  # shape: (n_positions, n_states, n_labels), the next state or NOWHERE
    contexts: Ints  # shape: (n_positions, n_states)


def whole_graph(masks: RuleMasks, order: int) -> Graph | None:
    """All states that can be reached; None if there are more than EXACT_MOVES moves.

    order: how many previous labels a context has, at least 1.
    """
    n_labels = len(masks.sets)
    n_contexts = n_labels**order
    # a number for each state: memories are below 2**62, so that not all of these fit
    if n_contexts * (int(np.bitwise_or.reduce(masks.sets)) + 1) > 2**62:
        return None
    known = np.zeros(1, np.int64)
    new = known
    while len(new):
        if len(known) * n_labels > EXACT_MOVES:
            return None
        after = _after(new, masks, n_contexts)
        new = np.setdiff1d(after[after != FORBIDDEN], known)
        known = np.union1d(known, new)
    after = _after(known, masks, n_contexts)
    following = np.searchsorted(known, after).astype(np.int32)
    following[after == FORBIDDEN] = NOWHERE
    return Graph(following[None], (known % n_contexts)[None])


def _after(states: Ints, masks: RuleMasks, n_contexts: int) -> Ints:
    """The states after each label, or FORBIDDEN. shape: (n, n_labels)

    states: (n,), context + n_contexts * memory.
    """
    n_labels = len(masks.sets)
    memories, contexts = np.divmod(states, n_contexts)
    memories = memories[:, None]
    bad = (memories & masks.needs) != masks.needs
    bad |= (memories & masks.forbids) != 0
    bad |= (memories & masks.once & ~masks.goes_on[contexts % n_labels]) != 0
    later = n_labels * (contexts % (n_contexts // n_labels))[:, None] + np.arange(n_labels)
    found: Ints = np.where(bad, FORBIDDEN, later + n_contexts * (memories | masks.sets))
    return found


class _Reached(NamedTuple):
    """The states that some states lead to, as a table of their hashes."""

    slots: Ints  # shape: (a power of 2,), the state in each, or NOWHERE
    contexts: Ints  # shape: (n_states * n_labels,)
    memories: Ints  # shape: (n_states * n_labels,)
    values: npt.NDArray[np.float64]  # shape: (n_states * n_labels,), scores of the best paths


@kernel
def _find(reached: _Reached, context: int, memory: int, n: int) -> int:
    """The number of a state among n that were reached; n if it is new, and is put there."""
    mask = len(reached.slots) - 1
    slot = ((context * 0x9E3779B1) ^ (memory * 0x85EBCA77) ^ (memory >> 29)) & mask
    while reached.slots[slot] != NOWHERE:
        i = reached.slots[slot]
        if reached.contexts[i] == context and reached.memories[i] == memory:
            return int(i)
        slot = (slot + 1) & mask
    reached.slots[slot] = n
    reached.contexts[n], reached.memories[n], reached.values[n] = context, memory, -np.inf
    return n


@kernel
def _room_for(n: int) -> _Reached:
    """Room for n states; half of the slots stay free."""
    n_slots = 1
    while n_slots < 2 * n:
        n_slots *= 2
    return _Reached(
        np.empty(n_slots, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    )


@kernel
def fill_beam(
    scores: Floats,
    steps: StepPotentials,
    order: int,
    masks: RuleMasks,
    allowed: npt.NDArray[np.uint8],
    graph: Graph,
) -> bool:
    """Fill the graph with the states of the best scores; False where it meets a dead end.

    order: how many previous labels a context has, at least 1. allowed: (length, n_labels), 0 where
    a label is ruled out; or empty.
    """
    length, n_labels = len(scores), len(steps.end)
    n_states = graph.following.shape[1]
    stride = n_labels ** (order - 1)
    reached = _room_for(n_states * n_labels)
    memories, values = np.zeros(n_states, np.int64), np.zeros(n_states)
    graph.following[:] = NOWHERE
    graph.contexts[:] = 0
    count = 1
    for t in range(length):
        reached.slots[:] = NOWHERE
        n = 0
        following, contexts = graph.following[t], graph.contexts[t]
        for i in range(count):
            c = contexts[i]
            for y in range(n_labels):
                if len(allowed) > 0 and allowed[t, y] == 0:
                    continue
                memory = memory_after(masks, c % n_labels, memories[i], y)
                if memory == FORBIDDEN:
                    continue
                value = values[i] + potential(scores, 0, length, t, c, y, steps)
                if value == -np.inf:
                    continue
                state = _find(reached, n_labels * (c % stride) + y, memory, n)
                n = max(n, state + 1)
                reached.values[state] = max(reached.values[state], value)
                following[i, y] = state
        if n == 0:
            return False
        best = np.argsort(-reached.values[:n], kind="mergesort")[:n_states]
        place = np.full(n, NOWHERE)
        count = len(best)
        for j in range(count):
            place[best[j]] = j
            memories[j], values[j] = reached.memories[best[j]], reached.values[best[j]]
            if t + 1 < length:
                graph.contexts[t + 1, j] = reached.contexts[best[j]]
        for i in range(n_states):
            for y in range(n_labels):
                if following[i, y] != NOWHERE:
                    following[i, y] = place[following[i, y]]
    return True


def beam_states(length: int, n_labels: int) -> int:
    """How many states of a beam are followed: fewer where a sequence is long."""
    return max(LEAST_STATES, min(BEAM_STATES, BEAM_MOVES // (max(length, 1) * n_labels)))


def empty_beam(length: int, n_states: int, n_labels: int) -> Graph:
    """Room for the states of a beam."""
    return Graph(
        np.empty((length, n_states, n_labels), np.int32), np.empty((length, n_states), np.int64)
    )
