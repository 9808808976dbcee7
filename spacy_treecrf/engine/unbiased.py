"""Weights against the expectation selection bias (Kersting & Gutmann 2006, section 3).

A position gives one regression example for each label in each context, of which one was observed.
So that trees do not merely fit the others, the observed one counts as often as all of them
together in the first round of trees, and less and less in later ones.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine.residuals import Annotated, Residuals


def observed_weight(n_examples: int, round_: int, rate: float, exponent: float) -> float:
    """(E - 2) exp(-c (m - 1)^b) + 1 for E examples at a position, in round m = 1, 2, ..."""
    decay = math.exp(-rate * (round_ - 1) ** exponent)
    return max(n_examples - 2, 0) * decay + 1.0


@njit(nogil=True, cache=True)
def _weigh(
    g: npt.NDArray[np.float32],
    h: npt.NDArray[np.float32],
    label: int,
    labels: npt.NDArray[np.int32],
    context: npt.NDArray[np.int64],
    n_valid: npt.NDArray[np.int64],
    clamped_row: npt.NDArray[np.int64],
    clamped: npt.NDArray[np.float32],
    weight: float,
    weighted_g: npt.NDArray[np.float32],
    weighted_h: npt.NDArray[np.float32],
) -> None:
    """g and h of one label times 1 + (weight - 1) P(observed).

    g, h: (n_rows, n_contexts); an empty h means 1 in each of a row's contexts. P is 0 or 1 where
    the label is annotated, else what the model clamped to the annotation expects; rows of
    clamped_row that are not in `clamped` have no observed pair.
    """
    for row in range(g.shape[0]):
        at = clamped_row[row] if len(clamped_row) else -1
        for c in range(g.shape[1]):
            if at < 0:
                observed = 1.0 if labels[row] == label and context[row] == c else 0.0
            elif at < clamped.shape[0]:
                observed = np.float64(clamped[at, c, label])
            else:
                observed = 0.0
            factor = 1.0 + (weight - 1.0) * observed
            weighted_g[row, c] = factor * g[row, c]
            if h.shape[0]:
                weighted_h[row, c] = factor * h[row, c]
            else:
                weighted_h[row, c] = factor if c < n_valid[row] else 0.0


def weigh_observed(
    annotated: Annotated, residuals: Residuals, label: int, weight: float
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """g and h of a label's examples, the observed ones weighted. shape: (n_rows, n_contexts)"""
    g, h = residuals.g[label], residuals.h[label]
    weighted_g, weighted_h = np.empty_like(g), np.empty_like(g)
    partial = annotated.partial.any()
    _weigh(
        g,
        h,
        label,
        annotated.labels,
        annotated.context,
        annotated.n_labels ** annotated.lags.astype(np.int64),
        annotated.clamped_row if partial else np.zeros(0, np.int64),
        residuals.clamped,
        weight,
        weighted_g,
        weighted_h,
    )
    return weighted_g, weighted_h
