"""Calibration: the temperature that makes the probabilities of a chain honest.

Scores of labels and of transitions are divided by one number, the temperature (Guo et al. 2017,
section 4.2, there for single answers). The result is a chain again, whose probabilities of labels,
spans and whole label sequences agree with each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.sequences import UNKNOWN_LABEL
from spacy_treecrf.models.predictor import ScoredSequences

# Temperatures that are looked at, and how close to the best one the search comes, as factors.
LOWEST, HIGHEST = 1 / 16, 16.0
CLOSE = 1.002
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0

# Scored sequences without rules, and the ids of their gold labels, which may be UNKNOWN_LABEL.
Annotated = tuple[ScoredSequences, npt.NDArray[np.int32]]


def best_temperature(parts: Sequence[Annotated]) -> float:
    """The temperature under which the annotation is most probable.

    The log-likelihood of whole annotations is a concave function of 1 / temperature, so that one
    maximum is all there is. Sequences whose annotation is forbidden do not count.
    """
    if not any(np.any(labels != UNKNOWN_LABEL) for _, labels in parts):
        raise ValueError(
            "treecrf: there is no annotated position to calibrate by; pass data that are annotated "
            "with labels of the model"
        )

    def log_likelihood(log_temperature: float) -> float:
        temperature = math.exp(log_temperature)
        found = [scored.log_probability_of(labels, temperature) for scored, labels in parts]
        return sum(float(np.sum(own[own > -np.inf])) for own in found)

    return math.exp(_highest(log_likelihood, math.log(LOWEST), math.log(HIGHEST), math.log(CLOSE)))


def _highest(f: Callable[[float], float], low: float, high: float, close: float) -> float:
    """Where a function with one maximum has it, by golden sections."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = f(left), f(right)
    while high - low > close:
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = f(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = f(right)
    return (low + high) / 2.0
