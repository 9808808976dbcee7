"""Beam search through a locally normalised model: labels from one end to the other.

Of the label sequences so far, the `width` most probable are kept, one for each distinct history:
of two with the same last `order` labels only the better one can win. So width 1 is greedy search,
and the width of all histories is Viterbi. Only the histories in the beam are scored, where exact
decoding scores all of them: time grows with rows x width, whatever the order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.chain import EVERYTHING_ALLOWED, Chain, step_potentials
from spacy_treecrf.engine.chain.chain_kernels import (
    Doubles,
    Floats,
    Ints,
    Labels,
    Mask,
    StepPotentials,
    longest_of,
)
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, LEAF
from spacy_treecrf.engine.trees.traversal import note_features

LEAST_PROBABILITY = 1e-9  # of a label that a search presents


class HistoryScores(NamedTuple):
    """What depends on previous labels: their linear weights, and the trees that test them.

    Features of previous labels come first, as in `LabelHistory`.
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


class Beams(NamedTuple):
    """What is in the beams at the end, best first."""

    labels: Labels  # shape: (n_rows, width), one column for each place in the beam
    log_p: Doubles  # shape: (n_sequences, width), log P(labels | x)
    counts: Ints  # shape: (n_sequences,), places in use
    # shape: (n_rows, n_labels), P(y_t | the labels before t, x): the mean over the beam's label
    # sequences, by their probability
    nodes: Doubles

    @property
    def scores(self) -> Floats:
        """log P(y_t) as far as the search knows it. shape: (n_rows, 1, n_labels)"""
        return np.log(np.maximum(self.nodes, LEAST_PROBABILITY)).astype(np.float32)[:, None, :]


class _Rows(NamedTuple):
    """What is known of the rows before the search begins."""

    offsets: Ints  # shape: (n_sequences + 1,)
    feature_ids: Labels  # shape: (n_rows, n_columns), by the ids of `LabelHistory`
    numeric: npt.NDArray[np.uint8]  # shape: (n_rows, n_numeric)
    base: Floats  # shape: (n_rows, n_labels), the scores that do not depend on previous labels
    allowed: Mask  # shape: (n_rows, n_labels), or empty: as in `chain`


class _Paths(NamedTuple):
    """The label sequences in the beam after a position, best first."""

    value: Doubles  # shape: (width,), log P so far
    history: Labels  # shape: (width, order), the last labels, the newest first


class _Scratch(NamedTuple):
    """What a search writes on its way."""

    parent: Labels  # shape: (longest, width), the place in the beam that a path comes from
    label: Labels  # shape: (longest, width), the label that it goes on with
    local: Doubles  # shape: (width, n_labels), log P(y | history)
    last_row_with: Ints  # shape: (n_features,), the last row seen that has the feature


@kernel
def _log_probabilities(
    row: int,
    base: Floats,
    numeric: npt.NDArray[np.uint8],
    last_row_with: Ints,
    history: Labels,
    trees: HistoryScores,
    out: Doubles,
) -> None:
    """Fill out[y] = log P(y | history, x) of a row; history[lag]: a label, K before the start."""
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


@kernel
def _same_history(one: Labels, i: int, other: Labels, j: int, label: int) -> bool:
    """Whether history i of `one` is history j of `other` with a label put in front."""
    order = one.shape[1]
    same: bool = order == 0 or one[i, 0] == label
    for lag in range(1, order):
        same = same and one[i, lag] == other[j, lag - 1]
    return same


@kernel(inline="always")
def _enter(
    path: tuple[float, int, int],
    histories: Labels,
    after: _Paths,
    n_after: int,
    parent: Labels,
    label: Labels,
) -> int:
    """Put a path into the beam `after`, unless its equal is better; returns the new size.

    path: its value, its place i in the beam before, and the label y that it goes on with.
    histories: of the beam before. parent, label: (width,), of the paths in `after`.
    """
    new, i, y = path
    value, history = after
    width, order = history.shape
    # the place of its equal, or else a new one at the end
    place = n_after if n_after < width else width - 1
    known = False
    for j in range(n_after):
        if _same_history(history, j, histories, i, y):
            place = j
            known = True
            break
    if known and new <= value[place]:
        return n_after
    if not known and n_after < width:
        n_after += 1
    while place > 0 and new > value[place - 1]:
        value[place] = value[place - 1]
        parent[place] = parent[place - 1]
        label[place] = label[place - 1]
        for lag in range(order):
            history[place, lag] = history[place - 1, lag]
        place -= 1
    value[place] = new
    parent[place] = i
    label[place] = y
    if order > 0:
        history[place, 0] = y
    for lag in range(1, order):
        history[place, lag] = histories[i, lag - 1]
    return n_after


@kernel
def _extend(
    t: int,
    s: int,
    rows: _Rows,
    steps: StepPotentials,
    n_kept: int,
    now: _Paths,
    after: _Paths,
    scratch: _Scratch,
) -> int:
    """Extend the paths of the beam by position t of sequence s; returns how many are kept.

    Where constraints rule out every label, they are disregarded for this position.
    """
    _, moves, end = steps
    allowed, local = rows.allowed, scratch.local
    values, histories = now
    value_after = after.value
    parent, label = scratch.parent[t], scratch.label[t]
    label_before = scratch.label[max(t - 1, 0)]
    n_labels = len(end)
    width = len(values)
    row = rows.offsets[s] + t
    at_end = row == rows.offsets[s + 1] - 1
    clamped = len(allowed) > 0
    n_after = 0
    for constrained in (True, False):
        if n_after > 0:
            break
        for i in range(n_kept):
            before = n_labels if t == 0 else label_before[i]
            for y in range(n_labels):
                new = values[i] + local[i, y]
                if constrained:
                    if clamped and allowed[row, y] == 0:
                        continue
                    new += moves[before, y]
                    if at_end:
                        new += end[y]
                if new > -np.inf and (n_after < width or new > value_after[width - 1]):
                    n_after = _enter((new, i, y), histories, after, n_after, parent, label)
    return n_after


@kernel
def _trace_back(
    s: int, begin: int, length: int, now: _Paths, scratch: _Scratch, out: Beams
) -> None:
    """Write the labels and log probabilities of the paths that are in the beam at the end."""
    for i in range(out.counts[s]):
        out.log_p[s, i] = now.value[i]
        place = i
        for t in range(length - 1, -1, -1):
            out.labels[begin + t, i] = scratch.label[t, place]
            place = scratch.parent[t, place]


@kernel
def _add_nodes(
    s: int, rows: _Rows, trees: HistoryScores, history: Labels, scratch: _Scratch, out: Beams
) -> None:
    """Add the labels' probabilities given those before them, the mean over paths of sequence s."""
    labels, log_p, counts, nodes = out
    base, numeric = rows.base, rows.numeric
    local, last_row_with = scratch.local[0], scratch.last_row_with
    begin = rows.offsets[s]
    n_labels = len(local)
    mass = 0.0
    for i in range(counts[s]):
        mass += math.exp(log_p[s, i] - log_p[s, 0])
    for row in range(begin, rows.offsets[s + 1]):
        note_features(rows.feature_ids, row, last_row_with)
        for i in range(counts[s]):
            for lag in range(len(history)):
                history[lag] = labels[row - lag - 1, i] if lag < row - begin else n_labels
            _log_probabilities(row, base, numeric, last_row_with, history, trees, local)
            share = math.exp(log_p[s, i] - log_p[s, 0]) / mass
            for y in range(n_labels):
                nodes[row, y] += share * math.exp(local[y])


@kernel
def _search_kernel(
    rows: _Rows,
    first: int,
    last: int,
    trees: HistoryScores,
    n_features: int,
    steps: StepPotentials,
    out: Beams,
) -> None:
    """Search sequences first to last - 1.

    steps: 0, or -inf where a label may not follow or end.
    """
    offsets, feature_ids, numeric, base, _ = rows
    n_labels = base.shape[1]
    width = out.labels.shape[1]
    order = steps.order
    longest = longest_of(offsets, first, last)
    scratch = _Scratch(
        np.empty((longest, width), np.int32),
        np.empty((longest, width), np.int32),
        np.empty((width, n_labels)),
        np.full(n_features, -1, np.int64),
    )
    last_row_with = scratch.last_row_with
    now = _Paths(np.empty(width), np.empty((width, order), np.int32))
    after = _Paths(np.empty(width), np.empty((width, order), np.int32))
    for s in range(first, last):
        begin = offsets[s]
        length = offsets[s + 1] - begin
        now.value[0] = 0.0
        for lag in range(order):
            now.history[0, lag] = n_labels
        n_kept = 1
        for t in range(length):
            note_features(feature_ids, begin + t, last_row_with)
            for i in range(n_kept):
                own, local = now.history[i], scratch.local[i]
                _log_probabilities(begin + t, base, numeric, last_row_with, own, trees, local)
            n_kept = _extend(t, s, rows, steps, n_kept, now, after, scratch)
            now, after = after, now
        out.counts[s] = n_kept
        _trace_back(s, begin, length, now, scratch, out)
        if n_kept > 0:
            _add_nodes(s, rows, trees, now.history[0], scratch, out)


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

    data: rows with features by the ids of `LabelHistory`. base: (n_rows, n_labels), the scores
    that do not depend on previous labels. n_features: how many there are, those of previous labels
    included. chain: says the order and what is forbidden; order 0 forbids nothing, as everywhere.
    """
    n_labels = chain.n_labels
    # no more than there are histories of `order` labels
    width = max(1, min(width, n_labels**chain.order))
    mask = EVERYTHING_ALLOWED if allowed is None else allowed
    rows = _Rows(data.offsets, data.feature_ids, data.numeric, base, mask)
    beams = Beams(
        labels=np.zeros((data.n_rows, width), np.int32),
        log_p=np.full((data.n_sequences, width), -np.inf),
        counts=np.zeros(data.n_sequences, np.int64),
        nodes=np.zeros((data.n_rows, n_labels)),
    )
    steps = step_potentials(chain)
    workers.map(
        lambda chunk: _search_kernel(rows, *chunk, trees, n_features, steps, beams),
        data.chunks,
    )
    return beams
