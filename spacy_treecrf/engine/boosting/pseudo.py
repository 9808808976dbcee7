"""Pseudo-likelihood residuals: each label given its neighbours (Dietterich 2004, warm start).

They need no forward-backward pass: all but one label are as annotated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.residuals import Bound, Residuals, edge_hessian
from spacy_treecrf.engine.chain.chain import (
    Chain,
    ScoredChunk,
    StepPotentials,
    step_potentials,
)
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.sequences import BLOCK_ROWS, cut_rows
from spacy_treecrf.engine.threads import Workers


class _Sums(NamedTuple):
    """What the sequences of a chunk add to."""

    g: npt.NDArray[np.float32]  # shape: (n_labels, n_rows, n_contexts)
    expected: npt.NDArray[np.float64]  # shape: (n_labels + 1, n_labels), of edges
    edge_g: npt.NDArray[np.float64]  # shape: (n_labels + 1, n_labels)


@kernel
def _context_of(labels: npt.NDArray[np.int32], t: int, order: int, n_labels: int) -> int:
    """The context at position t: c = y[t-1] + K*y[t-2] + ..., of up to `order` labels."""
    c = 0
    for lag in range(min(order, t), 0, -1):
        c = c * n_labels + labels[t - lag]
    return c


@kernel
def _fill_logits(
    scores: npt.NDArray[np.float32],
    first_row: int,
    t: int,
    labels: npt.NDArray[np.int32],
    steps: StepPotentials,
    logit: npt.NDArray[np.float64],
) -> None:
    """The sum of the potentials that the label of position t takes part in, for each label.

    These are the potentials of its own position and of the next `order` ones. labels: those of
    the sequence; that of position t is overwritten.
    """
    order, moves, end = steps
    n_labels = len(logit)
    length = len(labels)
    joint = scores.shape[1] > 1
    for v in range(n_labels):
        labels[t] = v
        logit[v] = 0.0
        for s in range(t, min(length, t + order + 1)):
            y = labels[s]
            c = _context_of(labels, s, order, n_labels) if joint else 0
            logit[v] += scores[first_row + s, c, y]
            if s <= t + 1:
                logit[v] += moves[labels[s - 1] if s else n_labels, y]
            if s == length - 1:
                logit[v] += end[y]


@kernel
def _pseudo_residuals(
    scores: npt.NDArray[np.float32],
    first_row: int,
    annotation: npt.NDArray[np.int32],
    steps: StepPotentials,
    weight: float,
    sums: _Sums,
) -> float:
    """Add sum_t d log P(y_t | all other labels) of one sequence to sums; returns sum_t log P.

    annotation: the labels of the sequence, all of them known.
    """
    g, expected, edge_g = sums
    n_labels = scores.shape[2]
    joint = scores.shape[1] > 1
    order = steps.order
    total = 0.0
    logit = np.empty(n_labels)
    labels = annotation.copy()
    length = len(labels)
    for t in range(length):
        observed = annotation[t]
        _fill_logits(scores, first_row, t, labels, steps, logit)
        top = logit.max()
        norm = 0.0
        for v in range(n_labels):
            norm += np.exp(logit[v] - top)
        total += logit[observed] - top - np.log(norm)
        for v in range(n_labels):
            p = np.exp(logit[v] - top) / norm
            residual = weight * ((1.0 if v == observed else 0.0) - p)
            labels[t] = v
            for s in range(t, min(length, t + order + 1) if joint else t + 1):
                c = _context_of(labels, s, order, n_labels) if joint else 0
                g[labels[s], first_row + s, c] += residual
            if order:
                for s in range(t, min(length, t + 2)):
                    before = labels[s - 1] if s else n_labels
                    edge_g[before, labels[s]] += residual
                    expected[before, labels[s]] += weight * p
        labels[t] = observed
    return total


@kernel
def _sweep(
    sequences: ScoredChunk,
    labels: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64],
    steps: StepPotentials,
    sums: _Sums,
) -> float:
    """Add the sequences to sums; returns their weighted sum of log P.

    labels: (n_rows,). weights: (n_sequences,), 0 for those that contribute nothing.
    """
    offsets = sequences.offsets
    total = 0.0
    for s in range(sequences.first, sequences.last):
        if weights[s] != 0.0:
            annotation = labels[offsets[s] : offsets[s + 1]]
            total += weights[s] * _pseudo_residuals(
                sequences.scores, offsets[s], annotation, steps, weights[s], sums
            )
    return total


def _fill_hessian(
    annotated: Annotated,
    g: npt.NDArray[np.float32],
    gamma: float,
    bound: Bound,
    h: npt.NDArray[np.float32],
) -> None:
    """Fill the bound of the hessian of one label. g, h: (n_rows, n_contexts)"""
    for rows in cut_rows(len(g), BLOCK_ROWS):
        weights = annotated.data.weights[rows, None]
        # |g| (1 - |g|) is p (1 - p) where one term meets the potential, as it does for nodes.
        size = np.divide(np.abs(g[rows]), weights, out=np.zeros_like(g[rows]), where=weights > 0)
        p = np.minimum(size, 1.0)
        gamma_h = gamma if annotated.joint else 2.0
        h[rows] = weights * np.maximum(gamma_h * p * (1.0 - p), size / bound.max_step)


def compute_pseudo_residuals(
    annotated: Annotated,
    scores: npt.NDArray[np.float32],
    chain: Chain,
    bound: Bound | None,
    workers: Workers,
) -> Residuals:
    """Residuals of the pseudo-likelihood, in the form of `compute_residuals`.

    Sequences that are not fully annotated contribute nothing yet.
    """
    data = annotated.data
    n_labels = annotated.n_labels
    g = workers.storage.zeros((n_labels, data.n_rows, annotated.n_contexts), np.float32)
    steps = step_potentials(chain)
    weights = np.where(annotated.partial, 0.0, annotated.sequence_weights)

    def sweep(chunk: tuple[int, int]) -> tuple[npt.NDArray[np.float64], float]:
        """Add the chunk to g; returns its expected edges and their gradient, and its sum."""
        edges = np.zeros((2, n_labels + 1, n_labels))
        sequences = ScoredChunk(scores, data.offsets, *chunk)
        sums = _Sums(g, edges[0], edges[1])
        return edges, _sweep(sequences, annotated.labels, weights, steps, sums)

    parts = workers.map(sweep, data.chunks)
    expected, edge_g = np.sum([part[0] for part in parts], axis=0)
    h = np.empty((n_labels, 0, 0), np.float32)
    gamma = 2.0 * (annotated.order + 1)
    if bound:
        h = workers.storage.empty(g.shape, np.float32)
        workers.map(lambda k: _fill_hessian(annotated, g[k], gamma, bound, h[k]), range(n_labels))
    elif annotated.weighted:
        valid = np.arange(annotated.n_contexts) < n_labels ** annotated.lags.astype(int)[:, None]
        h = (data.weights[:, None] * valid).astype(np.float32)[None]  # the same for all labels
    return Residuals(
        lambda label, rows: (g[label, rows], h[label % len(h), rows]),
        edge_g,
        edge_hessian(annotated.totals, expected, edge_g, gamma, bound),
        float(sum(part[1] for part in parts)),
        np.zeros((0, 0, 0), np.float32),
    )
