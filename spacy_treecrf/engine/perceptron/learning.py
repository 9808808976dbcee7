"""The structured perceptron (Collins 2002): Viterbi, and a step for each label it gets wrong.

Weights are of (feature, label) and of label bigrams. Their average over all steps, kept as sums of
steps times their number, needs no further pass: average = weights - totals / steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.beam import beam_viterbi_kernel
from spacy_treecrf.engine.chain.chain_kernels import ScoredChunk, StepPotentials
from spacy_treecrf.engine.chain.decoding import viterbi_bigram
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.next_row import NOWHERE, next_row
from spacy_treecrf.engine.sampling import mix
from spacy_treecrf.engine.sequences import Sequences

Doubles = npt.NDArray[np.float64]

# What a wrong label is ahead by while learning: less than a step, so that it only decides ties. If
# the label with the lower number won them, it would gain no weight where it is right, the other
# would where that is right, and averages would lean towards the other.
HEAD_START = 1e-3


class TrainingRows(NamedTuple):
    """The rows of all sequences, and what is annotated."""

    offsets: npt.NDArray[np.int64]  # shape: (n_sequences + 1,)
    feature_ids: npt.NDArray[np.int32]  # shape: (n_rows, n_columns)
    numeric: npt.NDArray[np.uint8]  # shape: (n_rows, n_numeric)
    bin_values: Doubles  # shape: (n_numeric, n_bins), standardised
    labels: npt.NDArray[np.int32]  # shape: (n_rows,), -1 where there is none
    weights: npt.NDArray[np.float32]  # shape: (n_rows,), the same all over a sequence


class Weights(NamedTuple):
    """The weights of features and label bigrams, or totals of the same shapes."""

    categorical: Doubles  # shape: (n_features, n_labels)
    numeric: Doubles  # shape: (n_numeric, n_labels), of standardised values
    edges: Doubles  # shape: (n_labels + 1, n_labels); last row: the first label


def training_rows(data: Sequences, bin_values: Doubles) -> TrainingRows:
    return TrainingRows(
        data.offsets, data.feature_ids, data.numeric, bin_values, data.labels, data.weights
    )


def zero_weights(n_features: int, n_numeric: int, n_labels: int) -> Weights:
    return Weights(
        np.zeros((n_features, n_labels)),
        np.zeros((n_numeric, n_labels)),
        np.zeros((n_labels + 1, n_labels)),
    )


def draw_order(n: int, seed: int, round_: int) -> npt.NDArray[np.int64]:
    """A permutation of 0 .. n - 1 that depends on nothing but the seed and the round."""
    stream = np.uint64(mix(np.uint64(seed), np.uint64(round_)))
    keys = np.array([mix(stream, np.uint64(i)) for i in range(n)], np.uint64)
    return np.argsort(keys, kind="stable")


@kernel
def _score(
    rows: TrainingRows,
    first: int,
    length: int,
    weights: Weights,
    scores: npt.NDArray[np.float32],
) -> None:
    """Fill the scores (length, 1, n_labels) of one sequence."""
    n_features, n_labels = weights.categorical.shape
    total = np.empty(n_labels)
    for t in range(length):
        row = first + t
        for k in range(n_labels):
            total[k] = 0.0
        at = np.int64(row)
        while at != NOWHERE:
            for slot in range(rows.feature_ids.shape[1]):
                feature = rows.feature_ids[at, slot]
                if 0 <= feature < n_features:
                    for k in range(n_labels):
                        total[k] += weights.categorical[feature, k]
            at = next_row(rows.feature_ids, at)
        for column in range(rows.numeric.shape[1]):
            value = rows.bin_values[column, rows.numeric[row, column]]
            for k in range(n_labels):
                total[k] += value * weights.numeric[column, k]
        for k in range(n_labels):
            scores[t, 0, k] = total[k]


@kernel
def _best_path(
    scores: npt.NDArray[np.float32],
    steps: StepPotentials,
    beam: int,
    labels: npt.NDArray[np.int32],
    best: Doubles,
) -> None:
    """Write the labels of one sequence: Viterbi, inside a beam if that is above 0.

    scores: (length, 1, n_labels)
    """
    length, _, n_labels = scores.shape
    if steps.order == 0:
        for t in range(length):
            at = 0
            for k in range(1, n_labels):
                if scores[t, 0, k] > scores[t, 0, at]:
                    at = k
            labels[t] = at
        return
    offsets = np.array([0, length])
    if 0 < beam < n_labels:
        nodes = ScoredChunk(scores[:, 0], offsets, 0, 1)
        beam_viterbi_kernel(nodes, steps, beam, labels, best)
        if best[0] > -np.inf:
            return
    viterbi_bigram(ScoredChunk(scores, offsets, 0, 1), steps, labels, best)


@kernel
def _lead_wrong_labels(annotation: npt.NDArray[np.int32], scores: npt.NDArray[np.float32]) -> bool:
    """Give wrong labels their head start; returns whether any label is not annotated."""
    unknown = False
    for t in range(len(annotation)):
        unknown |= annotation[t] < 0
        for k in range(scores.shape[2]):
            if 0 <= annotation[t] != k:
                scores[t, 0, k] += HEAD_START
    return unknown


@kernel
def _forbid_wrong_labels(
    annotation: npt.NDArray[np.int32], scores: npt.NDArray[np.float32]
) -> None:
    """Rule out what disagrees with the annotation, where there is one."""
    for t in range(len(annotation)):
        for k in range(scores.shape[2]):
            if 0 <= annotation[t] != k:
                scores[t, 0, k] = -np.inf


@kernel
def _step(
    rows: TrainingRows,
    first: int,
    order: int,
    right: npt.NDArray[np.int32],
    wrong: npt.NDArray[np.int32],
    size: float,
    weights: Weights,
) -> None:
    """Add size * (features of the right labels - features of the wrong ones)."""
    n_features, n_labels = weights.categorical.shape
    for t in range(len(right)):
        y, z = right[t], wrong[t]
        row = first + t
        if y != z:
            at = np.int64(row)
            while at != NOWHERE:
                for slot in range(rows.feature_ids.shape[1]):
                    feature = rows.feature_ids[at, slot]
                    if 0 <= feature < n_features:
                        weights.categorical[feature, y] += size
                        weights.categorical[feature, z] -= size
                at = next_row(rows.feature_ids, at)
            for column in range(rows.numeric.shape[1]):
                value = size * rows.bin_values[column, rows.numeric[row, column]]
                weights.numeric[column, y] += value
                weights.numeric[column, z] -= value
        if order:
            before_y = right[t - 1] if t else n_labels
            before_z = wrong[t - 1] if t else n_labels
            weights.edges[before_y, y] += size
            weights.edges[before_z, z] -= size


@kernel
def perceptron_pass(
    rows: TrainingRows,
    sequences: npt.NDArray[np.int64],
    masks: StepPotentials,
    beam: int,
    weights: Weights,
    totals: Weights,
    steps: float,
) -> int:
    """Learn from these sequences, one after the other; returns how many were labelled wrong.

    Where a label is not annotated, the right labels are the best ones that agree with what is
    known. masks: 0 or -inf, added to the edges. steps: sequences learned before. weights and
    totals are changed in place.
    """
    offsets = rows.offsets
    n_labels = weights.categorical.shape[1]
    longest = 0
    for s in sequences:
        longest = max(longest, offsets[s + 1] - offsets[s])
    scores = np.empty((longest, 1, n_labels), np.float32)
    best_agreeing = np.empty(longest, np.int32)
    found = np.empty(longest, np.int32)
    best = np.empty(1)
    moves = np.empty((n_labels + 1, n_labels))
    potentials = StepPotentials(masks.order, moves, masks.end)
    n_wrong = 0
    for s in sequences:
        first = offsets[s]
        length = offsets[s + 1] - first
        steps += 1.0
        size = float(rows.weights[first])
        if size == 0.0:
            continue
        for u in range(n_labels + 1):
            for v in range(n_labels):
                moves[u, v] = weights.edges[u, v] + masks.moves[u, v]
        here = scores[:length]
        _score(rows, first, length, weights, here)
        right = rows.labels[first : first + length]
        unknown = _lead_wrong_labels(right, here)
        _best_path(here, potentials, beam, found, best)
        if unknown:
            _forbid_wrong_labels(right, here)
            _best_path(here, potentials, 0, best_agreeing, best)
            right = best_agreeing[:length]
        wrong = False
        for t in range(length):
            wrong |= right[t] != found[t]
        if wrong:
            n_wrong += 1
            _step(rows, first, masks.order, right, found[:length], size, weights)
            _step(rows, first, masks.order, right, found[:length], size * steps, totals)
    return n_wrong
