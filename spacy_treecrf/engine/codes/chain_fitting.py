"""A chain over labels fitted to given scores of labels: its transitions and a scale of the scores.

The fit maximises sum_s log P(labels of s) - ridge / 2 |transitions, starts, biases|^2 by L-BFGS
(Nocedal 1980), where the potential of label v after u at t is scale * scores[t, v] + bias[v] +
trans[u, v].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.residuals import compute_residuals
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.constraints import Masks
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers

Floats = npt.NDArray[np.float32]
Vector = npt.NDArray[np.float64]

MEMORY = 8  # pairs of steps and gradients that L-BFGS remembers
MAX_STEPS = 60
MAX_HALVINGS = 20
LEAST_RISE = 2e-5  # a step that raises the objective per row by less is the last
MAX_LOG_SCALE = 8.0
SMOOTHING = 0.1  # added to each count of the first guess


@dataclass(frozen=True)
class LabelChain:
    """A scale, biases and transitions that turn scores of labels into a chain over labels."""

    order: int
    scale: float
    bias: Floats  # shape: (n_labels,)
    edges: Floats  # shape: (n_labels + 1, n_labels); the last row is for first positions

    @classmethod
    def plain(cls, n_labels: int) -> LabelChain:
        """A chain of order 0 that leaves scores as they are."""
        return cls(
            0,
            1.0,
            np.zeros(n_labels, np.float32),
            np.zeros((n_labels + 1, n_labels), np.float32),
        )

    def scores(self, scores: Floats) -> Floats:
        """The given scores of labels, scaled and with biases added. shape: (n_rows, n_labels)"""
        return np.float32(self.scale) * scores + self.bias

    def chain(self, masks: Masks, beam: int | None = None) -> Chain:
        start, trans, end = masks
        return Chain(self.order, self.edges[-1] + start, self.edges[:-1] + trans, end, beam)


def fit_label_chain(
    scores: Floats,
    data: Sequences,
    masks: Masks,
    order: int,
    ridge: float,
    workers: Workers,
    beam: int | None = None,
    start: LabelChain | None = None,
) -> LabelChain:
    """The chain of the highest likelihood of the annotation.

    A chain of order 0 learns the scale alone, which changes probabilities but no labels.

    scores: Scores of labels. shape: (n_rows, n_labels)
    start: A chain to begin with; None: one is guessed from counts.
    """
    n_labels = scores.shape[1]
    annotated = Annotated(data, n_labels, order, False)
    chain = start if start is not None and start.order == order else _guess(annotated, order)
    unit = _units(annotated, order, ridge)

    def unpack(x: Vector) -> LabelChain:
        scale = float(np.exp(np.clip(x[0] / unit[0], -MAX_LOG_SCALE, MAX_LOG_SCALE)))
        if not order:
            return replace(LabelChain.plain(n_labels), scale=scale)
        weights = (x / unit).astype(np.float32)[1:]
        bias, edges = weights[:n_labels], weights[n_labels:].reshape(-1, n_labels)
        return LabelChain(order, scale, bias, edges)

    def objective(x: Vector) -> tuple[float, Vector]:
        """The value of the objective and its gradient, both divided by the number of rows."""
        now = unpack(x)
        residuals = compute_residuals(
            annotated, now.scores(scores)[:, None, :], now.chain(masks, beam), None, workers
        )
        g = residuals.g[:, :, 0]  # shape: (n_labels, n_rows)
        value = residuals.log_likelihood
        gradient = np.zeros(len(x))
        gradient[0] = now.scale * float(np.einsum("kn,nk->", g, scores, dtype=np.float64))
        if order:
            weights = x[1:] / unit[1:]
            by_bias = g.sum(axis=1, dtype=np.float64)
            gradient[1:] = np.concatenate([by_bias, residuals.edge_g.ravel()]) - ridge * weights
            value -= 0.5 * ridge * float(np.sum(weights**2))
        return value / data.n_rows, gradient / unit / data.n_rows

    first = [np.log([chain.scale])]
    if order:
        first += [chain.bias.astype(np.float64), chain.edges.ravel().astype(np.float64)]
    return unpack(maximise_by_lbfgs(objective, unit * np.concatenate(first)))


def _units(annotated: Annotated, order: int, ridge: float) -> Vector:
    """Factors that L-BFGS multiplies log scale, biases and edges by: then all are about as curved.

    The curvature of a weight is bounded by a quarter of its count, and frequent transitions have
    thousands of times the count of rare ones: without this the fit takes four times the steps.
    """
    labels = annotated.data.labels
    curvature = [np.ones(1)]
    if order:
        counts = np.bincount(labels[labels != UNKNOWN_LABEL], minlength=annotated.n_labels)
        both = np.concatenate([counts, annotated.edge_counts.ravel()])
        curvature.append((both + max(ridge, 1.0)) / annotated.data.n_rows)
    return np.sqrt(np.concatenate(curvature))


def _guess(annotated: Annotated, order: int) -> LabelChain:
    """A first chain from counts: edges are log P(v | u) - log P(v), scaled down."""
    n_labels = annotated.n_labels
    plain = LabelChain.plain(n_labels)
    if not order:
        return plain
    counts = annotated.edge_counts + SMOOTHING / n_labels
    labels = annotated.data.labels
    share = np.bincount(labels[labels != UNKNOWN_LABEL], minlength=n_labels) + SMOOTHING
    edges = np.log(counts / counts.sum(axis=1, keepdims=True)) - np.log(share / share.sum())
    edges[annotated.edge_counts.sum(axis=1) == 0] = 0.0
    # Scores of bits tell much of the context already: half of the edges is a better start.
    return LabelChain(order, 0.5, plain.bias, (0.5 * edges).astype(np.float32))


def maximise_by_lbfgs(objective: Callable[[Vector], tuple[float, Vector]], x: Vector) -> Vector:
    """The maximum by L-BFGS with backtracking, to a step that rises by less than LEAST_RISE."""
    value, gradient = objective(x)
    steps: list[Vector] = []
    changes: list[Vector] = []
    for _ in range(MAX_STEPS):
        direction = _two_loops(gradient, steps, changes)
        slope = float(np.sum(direction * gradient))
        size = 1.0 if steps else min(1.0, 1.0 / float(np.sum(np.abs(gradient)) + 1e-12))
        for _ in range(MAX_HALVINGS):
            new_x = x + size * direction
            new_value, new_gradient = objective(new_x)
            if new_value >= value + 1e-4 * size * slope:
                break
            size /= 2.0
        else:
            return x
        # L-BFGS is stated for a minimum: the sign of the gradient is turned.
        step, change = new_x - x, gradient - new_gradient
        if float(np.sum(step * change)) > 1e-12:
            steps, changes = [*steps, step][-MEMORY:], [*changes, change][-MEMORY:]
        rise = new_value - value
        x, value, gradient = new_x, new_value, new_gradient
        if rise < LEAST_RISE:
            break
    return x


def _two_loops(gradient: Vector, steps: list[Vector], changes: list[Vector]) -> Vector:
    """The estimated inverse Hessian times the gradient.

    It sums by np.sum, not by BLAS, whose order of adding varies with its threads.
    """
    q = gradient.copy()
    shares = []
    for step, change in zip(reversed(steps), reversed(changes), strict=True):
        share = float(np.sum(step * q) / np.sum(change * step))
        q -= share * change
        shares.append(share)
    if steps:
        q *= float(np.sum(steps[-1] * changes[-1]) / np.sum(changes[-1] ** 2))
    for step, change, share in zip(steps, changes, reversed(shares), strict=True):
        q += step * (share - float(np.sum(change * q) / np.sum(change * step)))
    return q
