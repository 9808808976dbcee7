"""Beam search through a locally normalised model: labels from one end to the other.

Of the label sequences so far, the `width` most probable are kept, one for each distinct history:
of two with the same last `order` labels only the better one can win. So width 1 is greedy search,
and the width of all histories is Viterbi. Only the histories in the beam are scored, where exact
decoding scores all of them: time grows with rows x width, whatever the order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.chain import EVERYTHING_ALLOWED, Chain, step_potentials
from spacy_treecrf.engine.chain_kernels import Doubles, Floats, Ints, Labels, Mask, longest_of
from spacy_treecrf.engine.forest import Forest
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.splitting import CATEGORICAL, LEAF
from spacy_treecrf.engine.threads import Workers


class HistoryScores(NamedTuple):
    """What depends on previous labels: their linear weights, and the trees that test them.

    Features of previous labels come first, as in `History`.
    """

    weights: Floats  # shape: (n_history_features, n_labels)
    tree_first: Ints
    tree_class: Labels
    kind: npt.NDArray[np.uint8]
    feature: Labels
    threshold: Labels
    left: Labels
    right: Labels
    value: Floats

    @classmethod
    def of(cls, weights: Floats, forest: Forest) -> HistoryScores:
        return cls(
            weights,
            forest.tree_first,
            forest.tree_class,
            forest.kind,
            forest.feature,
            forest.threshold,
            forest.left,
            forest.right,
            forest.value,
        )


@dataclass(frozen=True)
class Beams:
    """What is in the beams at the end, best first."""

    labels: Labels  # shape: (n_rows, width), one column for each place in the beam
    log_p: Doubles  # shape: (n_sequences, width), log P(labels | x)
    counts: Ints  # shape: (n_sequences,), places in use
    # shape: (n_rows, n_labels), P(y_t | the labels before t, x): the mean over the beam's label
    # sequences, by their probability
    nodes: Doubles


@njit(nogil=True, cache=True)
def _log_probabilities(
    row: int,
    base: Floats,
    numeric: npt.NDArray[np.uint8],
    last_row_with: Ints,
    history: Labels,
    trees: HistoryScores,
    out: Doubles,
) -> None:
    """out[y] = log P(y | history, x) of a row; history[lag]: a label, or K before the start."""
    n_labels = len(out)
    order = len(history)
    n_own = order * (n_labels + 1)
    for y in range(n_labels):
        out[y] = base[row, y]
    for lag in range(order):
        for y in range(n_labels):
            out[y] += trees.weights[lag * (n_labels + 1) + history[lag], y]
    for tree in range(len(trees.tree_class)):
        first = trees.tree_first[tree]
        node = first
        while trees.kind[node] != LEAF:
            test = trees.feature[node]
            if trees.kind[node] != CATEGORICAL:
                holds = numeric[row, test] > trees.threshold[node]
            elif test < n_own:
                holds = history[test // (n_labels + 1)] == test % (n_labels + 1)
            else:
                holds = last_row_with[test] == row
            node = first + (trees.right[node] if holds else trees.left[node])
        out[trees.tree_class[tree]] += trees.value[node]
    top = out[0]
    for y in range(1, n_labels):
        top = max(top, out[y])
    total = 0.0
    for y in range(n_labels):
        total += math.exp(out[y] - top)
    log_z = top + math.log(total)
    for y in range(n_labels):
        out[y] -= log_z


@njit(nogil=True, cache=True)
def _same_history(one: Labels, i: int, other: Labels, j: int, label: int) -> bool:
    """Whether history i of `one` is history j of `other` with a label put in front."""
    order = one.shape[1]
    same: bool = order == 0 or one[i, 0] == label
    for lag in range(1, order):
        same = same and one[i, lag] == other[j, lag - 1]
    return same


@njit(nogil=True, cache=True)
def _search_kernel(
    codes: Labels,
    numeric: npt.NDArray[np.uint8],
    offsets: Ints,
    first: int,
    last: int,
    base: Floats,
    trees: HistoryScores,
    n_features: int,
    order: int,
    moves: Doubles,
    end: Doubles,
    allowed: Mask,
    labels: Labels,
    log_p: Doubles,
    counts: Ints,
    nodes: Doubles,
) -> None:
    """Sequences first to last - 1. moves, end: 0, or -inf where a label may not follow, or end.

    allowed: as in `chain`. Where all these rule out every label, they are disregarded for that
    position.
    """
    n_labels = base.shape[1]
    width = labels.shape[1]
    longest = longest_of(offsets, first, last)
    parent = np.empty((longest, width), np.int32)
    label = np.empty((longest, width), np.int32)
    value = np.empty(width)
    history = np.empty((width, order), np.int32)
    value_after = np.empty(width)
    history_after = np.empty((width, order), np.int32)
    local = np.empty((width, n_labels))
    last_row_with = np.full(n_features, -1, np.int64)
    clamped = len(allowed) > 0
    for s in range(first, last):
        begin = offsets[s]
        length = offsets[s + 1] - begin
        value[0] = 0.0
        for lag in range(order):
            history[0, lag] = n_labels
        n_kept = 1
        for t in range(length):
            row = begin + t
            for slot in range(codes.shape[1]):
                if 0 <= codes[row, slot] < n_features:
                    last_row_with[codes[row, slot]] = row
            for i in range(n_kept):
                _log_probabilities(row, base, numeric, last_row_with, history[i], trees, local[i])
            n_after = 0
            for attempt in range(2):
                if n_after > 0:
                    break
                for i in range(n_kept):
                    before = n_labels if t == 0 else label[t - 1, i]
                    for y in range(n_labels):
                        new = value[i] + local[i, y]
                        if attempt == 0:
                            if clamped and allowed[row, y] == 0:
                                continue
                            new += moves[before, y]
                            if t == length - 1:
                                new += end[y]
                        if not new > -np.inf:
                            continue
                        if n_after == width and new <= value_after[width - 1]:
                            continue
                        # the place of its equal, or else a new one at the end
                        place = n_after if n_after < width else width - 1
                        known = False
                        for j in range(n_after):
                            if _same_history(history_after, j, history, i, y):
                                place = j
                                known = True
                                break
                        if known and new <= value_after[place]:
                            continue
                        if not known and n_after < width:
                            n_after += 1
                        while place > 0 and new > value_after[place - 1]:
                            value_after[place] = value_after[place - 1]
                            parent[t, place] = parent[t, place - 1]
                            label[t, place] = label[t, place - 1]
                            for lag in range(order):
                                history_after[place, lag] = history_after[place - 1, lag]
                            place -= 1
                        value_after[place] = new
                        parent[t, place] = i
                        label[t, place] = y
                        if order > 0:
                            history_after[place, 0] = y
                        for lag in range(1, order):
                            history_after[place, lag] = history[i, lag - 1]
            value, value_after = value_after, value
            history, history_after = history_after, history
            n_kept = n_after
        counts[s] = n_kept
        for i in range(n_kept):
            log_p[s, i] = value[i]
            place = i
            for t in range(length - 1, -1, -1):
                labels[begin + t, i] = label[t, place]
                place = parent[t, place]
        if n_kept == 0:
            continue
        mass = 0.0
        for i in range(n_kept):
            mass += math.exp(log_p[s, i] - log_p[s, 0])
        for t in range(length):
            row = begin + t
            for slot in range(codes.shape[1]):
                if 0 <= codes[row, slot] < n_features:
                    last_row_with[codes[row, slot]] = row
            for i in range(n_kept):
                for lag in range(order):
                    history[0, lag] = labels[row - lag - 1, i] if lag < t else n_labels
                _log_probabilities(row, base, numeric, last_row_with, history[0], trees, local[0])
                share = math.exp(log_p[s, i] - log_p[s, 0]) / mass
                for y in range(n_labels):
                    nodes[row, y] += share * math.exp(local[0, y])


def beam_search(
    data: Sequences,
    base: Floats,
    trees: HistoryScores,
    n_features: int,
    chain: Chain,
    width: int,
    workers: Workers,
    allowed: Mask | None = None,
) -> Beams:
    """The beams of all sequences.

    data: codes by the ids of `History`; base: (n_rows, n_labels), the scores that do not depend on
    previous labels. n_features: with those of previous labels. chain: its order, and what it
    forbids. Its order 0 ignores that, as everywhere.
    """
    n_labels = chain.n_labels
    # no more than there are histories of `order` labels
    width = max(1, min(width, n_labels**chain.order))
    labels = np.zeros((data.n_rows, width), np.int32)
    log_p = np.full((data.n_sequences, width), -np.inf)
    counts = np.zeros(data.n_sequences, np.int64)
    nodes = np.zeros((data.n_rows, n_labels))
    moves, end = step_potentials(chain.order, chain.start, chain.trans, chain.end)
    workers.map(
        lambda chunk: _search_kernel(
            data.codes,
            data.numeric,
            data.offsets,
            *chunk,
            base,
            trees,
            n_features,
            chain.order,
            moves,
            end,
            EVERYTHING_ALLOWED if allowed is None else allowed,
            labels,
            log_p,
            counts,
            nodes,
        ),
        data.chunks,
    )
    return Beams(labels, log_p, counts, nodes)
