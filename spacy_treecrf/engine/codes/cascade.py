"""Cascade features (c-SECOC of Hao and Fern 2007): what earlier bits say, as numeric columns.

The probability of an earlier bit at t - 1, t and t + 1 becomes three numeric columns. They hold
bins of its log-odds, finer where a bit is sure; a neighbour outside of the sequence is missing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.sequences import MISSING_BIN
from spacy_treecrf.engine.trees.histogram import N_BINS

WINDOW = 3  # t - 1, t, t + 1
MAX_LOGIT = 4.0
BINS = 31  # 1 .. BINS; 0 is missing


def cascade_columns(
    probabilities: npt.NDArray[np.float32], offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8]:
    """The numeric columns of earlier bits, as bins. shape: (n_rows, n_bits * WINDOW)

    probabilities: P(bit = 1). shape: (n_rows, n_bits)
    """
    n_rows, n_bits = probabilities.shape
    p = np.clip(probabilities.astype(np.float64), 1e-6, 1.0 - 1e-6)
    logit = np.clip(np.log(p / (1.0 - p)), -MAX_LOGIT, MAX_LOGIT)
    bins = 1 + np.rint((logit / MAX_LOGIT + 1.0) * (BINS - 1) / 2.0)
    here = bins.astype(np.uint8)
    before = np.full((n_rows, n_bits), MISSING_BIN, np.uint8)
    after = np.full((n_rows, n_bits), MISSING_BIN, np.uint8)
    before[1:] = here[:-1]
    after[:-1] = here[1:]
    lengths = np.diff(offsets)
    before[offsets[:-1][lengths > 0]] = MISSING_BIN
    after[offsets[1:][lengths > 0] - 1] = MISSING_BIN
    return np.stack([before, here, after], axis=2).reshape(n_rows, n_bits * WINDOW)


def cascade_bin_values(n_bits: int) -> npt.NDArray[np.float64]:
    """The number that each bin stands for in linear scores. shape: (n_bits * WINDOW, N_BINS)"""
    values = np.zeros(N_BINS)
    values[1 : BINS + 1] = np.linspace(-2.0, 2.0, BINS)
    return np.tile(values, (n_bits * WINDOW, 1))
