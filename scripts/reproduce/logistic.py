"""Logistic regression with standard errors, for the significance tests of the papers."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MAX_STEPS = 50
TOLERANCE = 1e-10


class LogisticFit(NamedTuple):
    coefficients: Floats
    errors: Floats  # their standard errors

    def p_value(self, i: int) -> float:
        """The p-value of Wald's test that coefficient i is zero, two-sided."""
        return math.erfc(abs(self.coefficients[i] / self.errors[i]) / math.sqrt(2))


def fit_logistic(design: Floats, successes: Floats, trials: Floats) -> LogisticFit:
    """Maximum likelihood by Newton's method; a row stands for many trials under one condition.

    design: (n_rows, n_coefficients), with full column rank. successes, trials: (n_rows,).
    """
    coefficients = np.zeros(design.shape[1])
    for _ in range(MAX_STEPS):
        p = 1.0 / (1.0 + np.exp(-design @ coefficients))
        information = design.T @ (design * (trials * p * (1.0 - p))[:, None])
        try:
            inverse = np.linalg.inv(information)
        except np.linalg.LinAlgError:
            break
        step = inverse @ (design.T @ (successes - trials * p))
        coefficients += step
        if np.abs(step).max() < TOLERANCE:
            return LogisticFit(coefficients, np.sqrt(np.diag(inverse)))
    raise ValueError(
        "treecrf: the logistic regression does not converge; some condition has only successes, "
        "or only failures: use more trials"
    )
