"""The structured perceptron (Collins 2002): Viterbi, and a step for each label it gets wrong.

Weights are of (feature, label) and of label bigrams. Their average over all steps, kept as sums of
steps times their number, needs no further pass: average = weights - totals / steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.beam import beam_viterbi_kernel
from spacy_treecrf.engine.decoding import viterbi_bigram
from spacy_treecrf.engine.sampling import mix

Doubles = npt.NDArray[np.float64]

# What a wrong label is ahead by while learning: less than a step, so that it only decides ties. If
# the label with the lower number won them, it would gain no weight where it is right, the other
# would where that is right, and averages would lean towards the other.
HEAD_START = 1e-3


class Weights(NamedTuple):
    """Weights, or totals of the same shapes."""

    categorical: Doubles  # shape: (n_features, n_labels)
    numeric: Doubles  # shape: (n_numeric, n_labels), of standardised values
    edges: Doubles  # shape: (n_labels + 1, n_labels); last row: the first label


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


@njit(nogil=True, cache=True)
def _score(
    codes: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    bin_values: Doubles,
    first: int,
    length: int,
    weights: Weights,
    scores: npt.NDArray[np.float32],
) -> None:
    """Scores (length, 1, n_labels) of one sequence."""
    n_features, n_labels = weights.categorical.shape
    total = np.empty(n_labels)
    for t in range(length):
        row = first + t
        for k in range(n_labels):
            total[k] = 0.0
        for slot in range(codes.shape[1]):
            feature = codes[row, slot]
            if 0 <= feature < n_features:
                for k in range(n_labels):
                    total[k] += weights.categorical[feature, k]
        for column in range(numeric.shape[1]):
            value = bin_values[column, numeric[row, column]]
            for k in range(n_labels):
                total[k] += value * weights.numeric[column, k]
        for k in range(n_labels):
            scores[t, 0, k] = total[k]


@njit(nogil=True, cache=True)
def _best_path(
    scores: npt.NDArray[np.float32],
    order: int,
    moves: Doubles,
    end: Doubles,
    beam: int,
    labels: npt.NDArray[np.int32],
    best: Doubles,
) -> None:
    """Labels of one sequence (length, 1, n_labels): Viterbi, inside a beam if it is above 0."""
    length, _, n_labels = scores.shape
    if order == 0:
        for t in range(length):
            at = 0
            for k in range(1, n_labels):
                if scores[t, 0, k] > scores[t, 0, at]:
                    at = k
            labels[t] = at
        return
    offsets = np.array([0, length])
    if 0 < beam < n_labels:
        beam_viterbi_kernel(scores[:, 0], offsets, 0, 1, moves, end, beam, labels, best)
        if best[0] > -np.inf:
            return
    viterbi_bigram(scores, offsets, 0, 1, moves, end, labels, best)


@njit(nogil=True, cache=True)
def _step(
    codes: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    bin_values: Doubles,
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
            for slot in range(codes.shape[1]):
                feature = codes[row, slot]
                if 0 <= feature < n_features:
                    weights.categorical[feature, y] += size
                    weights.categorical[feature, z] -= size
            for column in range(numeric.shape[1]):
                value = size * bin_values[column, numeric[row, column]]
                weights.numeric[column, y] += value
                weights.numeric[column, z] -= value
        if order:
            before_y = right[t - 1] if t else n_labels
            before_z = wrong[t - 1] if t else n_labels
            weights.edges[before_y, y] += size
            weights.edges[before_z, z] -= size


@njit(nogil=True, cache=True)
def perceptron_pass(
    codes: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
    bin_values: Doubles,
    offsets: npt.NDArray[np.int64],
    annotation: npt.NDArray[np.int32],
    row_weights: npt.NDArray[np.float32],
    sequences: npt.NDArray[np.int64],
    order: int,
    masks: Doubles,
    end: Doubles,
    beam: int,
    weights: Weights,
    totals: Weights,
    steps: float,
) -> int:
    """Learn from these sequences, one after the other; returns how many were labelled wrong.

    annotation: -1 where there is none; the right labels are then the best ones that agree with
    what is known. masks: (n_labels + 1, n_labels), 0 or -inf, added to the edges. steps: sequences
    learned before; weights and totals are changed in place.
    """
    n_labels = weights.categorical.shape[1]
    longest = 0
    for s in sequences:
        longest = max(longest, offsets[s + 1] - offsets[s])
    scores = np.empty((longest, 1, n_labels), np.float32)
    right = np.empty(longest, np.int32)
    found = np.empty(longest, np.int32)
    best = np.empty(1)
    moves = np.empty((n_labels + 1, n_labels))
    n_wrong = 0
    for s in sequences:
        first = offsets[s]
        length = offsets[s + 1] - first
        steps += 1.0
        size = float(row_weights[first])
        if size == 0.0:
            continue
        for u in range(n_labels + 1):
            for v in range(n_labels):
                moves[u, v] = weights.edges[u, v] + masks[u, v]
        here = scores[:length]
        _score(codes, numeric, bin_values, first, length, weights, here)
        unknown = False
        for t in range(length):
            right[t] = annotation[first + t]
            unknown |= right[t] < 0
            for k in range(n_labels):
                if 0 <= right[t] != k:
                    here[t, 0, k] += HEAD_START
        _best_path(here, order, moves, end, beam, found, best)
        if unknown:
            for t in range(length):
                for k in range(n_labels):
                    if annotation[first + t] >= 0 and k != annotation[first + t]:
                        here[t, 0, k] = -np.inf
            _best_path(here, order, moves, end, 0, right, best)
        wrong = False
        for t in range(length):
            wrong |= right[t] != found[t]
        if wrong:
            n_wrong += 1
            _step(
                codes,
                numeric,
                bin_values,
                first,
                order,
                right[:length],
                found[:length],
                size,
                weights,
            )
            _step(
                codes,
                numeric,
                bin_values,
                first,
                order,
                right[:length],
                found[:length],
                size * steps,
                totals,
            )
    return n_wrong
