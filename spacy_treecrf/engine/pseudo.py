"""Pseudo-likelihood residuals: each label given its neighbours (Dietterich 2004, warm start)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.chain import Chain
from spacy_treecrf.engine.residuals import Annotated, Bound, Residuals, edge_hessian
from spacy_treecrf.engine.threads import Workers


@njit(nogil=True, cache=True)
def _pseudo_residuals(
    scores: npt.NDArray[np.float32],
    first_row: int,
    last_row: int,
    order: int,
    edges: npt.NDArray[np.float32],
    end: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int32],
    weight: float,
    g: npt.NDArray[np.float32],
    expected: npt.NDArray[np.float64],
    edge_g: npt.NDArray[np.float64],
) -> float:
    """One sequence: adds sum_t d log P(y_t | all other labels) to g and edge_g; returns the sum.

    A label takes part in the potentials of its own position and of the next `order` ones.
    """
    n_labels = scores.shape[2]
    joint = scores.shape[1] > 1
    total = 0.0
    logit = np.empty(n_labels)
    changed = labels[first_row:last_row].copy()
    length = last_row - first_row
    for t in range(length):
        observed = changed[t]
        reach = min(length, t + order + 1)
        for v in range(n_labels):
            changed[t] = v
            logit[v] = 0.0
            for s in range(t, reach):
                y = changed[s]
                c = 0
                if joint:
                    for lag in range(min(order, s), 0, -1):
                        c = c * n_labels + changed[s - lag]
                logit[v] += scores[first_row + s, c, y]
                if order and s <= t + 1:
                    logit[v] += edges[changed[s - 1] if s else n_labels, y]
                if order and s == length - 1:
                    logit[v] += end[y]
        top = logit.max()
        norm = 0.0
        for v in range(n_labels):
            norm += np.exp(logit[v] - top)
        total += logit[observed] - top - np.log(norm)
        for v in range(n_labels):
            p = np.exp(logit[v] - top) / norm
            residual = weight * ((1.0 if v == observed else 0.0) - p)
            changed[t] = v
            for s in range(t, reach if joint else t + 1):
                c = 0
                if joint:
                    for lag in range(min(order, s), 0, -1):
                        c = c * n_labels + changed[s - lag]
                g[changed[s], first_row + s, c] += residual
            if order:
                for s in range(t, min(length, t + 2)):
                    before = changed[s - 1] if s else n_labels
                    edge_g[before, changed[s]] += residual
                    expected[before, changed[s]] += weight * p
        changed[t] = observed
    return total


def compute_pseudo_residuals(
    annotated: Annotated,
    scores: npt.NDArray[np.float32],
    chain: Chain,
    bound: Bound | None,
    workers: Workers,
) -> Residuals:
    """Like `compute_residuals`; sequences that are not fully annotated contribute nothing yet."""
    data = annotated.data
    n_labels = annotated.n_labels
    g = np.zeros((n_labels, data.n_rows, annotated.n_contexts), np.float32)
    edges = np.vstack([chain.trans, chain.start])

    def sweep(chunk: tuple[int, int]) -> tuple[npt.NDArray[np.float64], float]:
        sums = np.zeros((2, n_labels + 1, n_labels))
        total = 0.0
        for s in range(*chunk):
            if annotated.partial[s]:
                continue
            weight = annotated.sequence_weights[s]
            total += weight * _pseudo_residuals(
                scores,
                data.offsets[s],
                data.offsets[s + 1],
                chain.order,
                edges,
                chain.end,
                annotated.labels,
                weight,
                g,
                sums[0],
                sums[1],
            )
        return sums, total

    parts = workers.map(sweep, data.chunks)
    expected, edge_g = np.sum([part[0] for part in parts], axis=0)
    h = np.empty((n_labels, 0, 0), np.float32)
    gamma = 2.0 * (annotated.order + 1)
    weights = data.weights[None, :, None]
    if bound:
        # |g| (1 - |g|) is p (1 - p) where one term meets the potential, as it does for nodes.
        size = np.divide(np.abs(g), weights, out=np.zeros_like(g), where=weights > 0)
        p = np.minimum(size, 1.0)
        gamma_h = gamma if annotated.joint else 2.0
        h = weights * np.maximum(gamma_h * p * (1.0 - p), size / bound.max_step)
    elif annotated.weighted:
        valid = np.arange(annotated.n_contexts) < n_labels ** annotated.lags.astype(int)[:, None]
        h = np.repeat((data.weights[:, None] * valid)[None], n_labels, axis=0).astype(np.float32)
    return Residuals(
        g,
        h,
        edge_g,
        edge_hessian(annotated, expected, edge_g, gamma, bound),
        float(sum(part[1] for part in parts)),
        np.zeros((0, 0, 0), np.float32),
    )
