"""Weights against the expectation selection bias (Kersting & Gutmann 2006, section 3).

A position gives one regression example for each label in each context, of which one was observed.
So that trees do not merely fit the others, the observed one counts as often as all of them
together in the first round of trees, and less and less in later ones.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.annotation import Annotated, Observed
from spacy_treecrf.engine.boosting.residuals import ALL_ROWS, Residuals, RowResiduals
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.row_storage import IN_MEMORY, RowStorage


def observed_weight(n_examples: int, round_: int, rate: float, exponent: float) -> float:
    """The weight of an observed example: (E - 2) exp(-c (m - 1)^b) + 1 in round m = 1, 2, ...

    E = n_examples is the number of examples at a position, c = rate, b = exponent.
    """
    decay = math.exp(-rate * (round_ - 1) ** exponent)
    return max(n_examples - 2, 0) * decay + 1.0


@kernel
def _weigh(
    g: npt.NDArray[np.float32],
    h: npt.NDArray[np.float32],
    label: int,
    observed: Observed,
    weight: float,
    weighted_g: npt.NDArray[np.float32],
    weighted_h: npt.NDArray[np.float32],
) -> None:
    """Fill weighted_g and weighted_h of one label: g and h times 1 + (weight - 1) P(observed).

    g, h: (n_rows, n_contexts); an empty h means 1 in each of a row's contexts. P is 0 or 1 where
    the label is annotated, else what the model clamped to the annotation expects; where that is
    not known, no pair of the row counts as observed.
    """
    labels, context, n_valid, clamped_row, clamped = observed
    for row in range(g.shape[0]):
        at = clamped_row[row] if len(clamped_row) else -1
        for c in range(g.shape[1]):
            if at < 0:
                share = 1.0 if labels[row] == label and context[row] == c else 0.0
            elif at < clamped.shape[0]:
                share = np.float64(clamped[at, c, label])
            else:
                share = 0.0
            factor = 1.0 + (weight - 1.0) * share
            weighted_g[row, c] = factor * g[row, c]
            if h.shape[0]:
                weighted_h[row, c] = factor * h[row, c]
            else:
                weighted_h[row, c] = factor if c < n_valid[row] else 0.0


def weigh_observed(
    annotated: Annotated,
    residuals: Residuals | RowResiduals,
    label: int,
    weight: float,
    storage: RowStorage = IN_MEMORY,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """g and h of a label's examples, the observed ones weighted. shape: (n_rows, n_contexts)"""
    g, h = residuals.of_label(label, ALL_ROWS)
    weighted_g, weighted_h = (storage.empty(g.shape, np.float32) for _ in range(2))
    observed = annotated.observed(residuals.clamped)
    _weigh(g, h, label, observed, weight, weighted_g, weighted_h)
    return weighted_g, weighted_h
