"""Residuals and step lengths of independently normalised rows, for line searches."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@kernel
def _sum_log_p(
    scores: Floats,
    direction: Floats,
    step: float,
    labels: npt.NDArray[np.int32],
    weights: Floats,
    first: int,
    last: int,
) -> float:
    n_labels = scores.shape[1]
    total = 0.0
    value = np.empty(n_labels)
    for row in range(first, last):
        if weights[row] == 0.0:
            continue
        top = -np.inf
        for y in range(n_labels):
            value[y] = scores[row, y] + step * direction[row, y]
            top = max(top, value[y])
        mass = 0.0
        for y in range(n_labels):
            mass += math.exp(value[y] - top)
        total += weights[row] * (value[labels[row]] - top - math.log(mass))
    return total


def log_likelihood(
    data: Sequences,
    weights: Floats,
    scores: Floats,
    direction: Floats,
    step: float,
    workers: Workers,
) -> float:
    """Sum of weight * log P(y) under scores + step * direction, both (n_rows, n_labels).

    weights: 0 where a row is not annotated.
    """

    def of_chunk(chunk: tuple[int, int]) -> float:
        rows = data.rows_of(chunk)
        value: float = _sum_log_p(
            scores, direction, step, data.labels, weights, rows.start, rows.stop
        )
        return value

    return float(sum(workers.map(of_chunk, data.chunks)))


@kernel
def residuals(
    scores: Floats,
    labels: npt.NDArray[np.int32],
    weights: Floats,
    max_step: float,
    first: int,
    last: int,
    g: Floats,
    h: Floats,
) -> None:
    """g[k, row] = w (I(y = k) - P(y = k)) (proposition 5.1) and its hessian, rows first to last.

    max_step 0: the hessian is the weight; else that of P, bounded as in robust Newton.
    """
    n_labels = scores.shape[1]
    p = np.empty(n_labels)
    for row in range(first, last):
        top = -np.inf
        for y in range(n_labels):
            top = max(top, scores[row, y])
        mass = 0.0
        for y in range(n_labels):
            p[y] = math.exp(scores[row, y] - top)
            mass += p[y]
        weight = weights[row]
        for k in range(n_labels):
            share = p[k] / mass
            residual = (k == labels[row]) - share
            bound = 1.0
            if max_step > 0.0:
                bound = max(2.0 * share * (1.0 - share), abs(residual) / max_step)
            g[k, row, 0] = weight * residual
            h[k, row, 0] = weight * bound
