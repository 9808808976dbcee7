"""Calibration: the temperature that makes the probabilities of a chain honest.

Scores of labels and of transitions are divided by one number, the temperature (Guo et al. 2017,
section 4.2, there for single answers). The result is a chain again, whose probabilities of labels,
spans and whole label sequences agree with each other.

The temperature is the one at which held-out labels are right as often as the model says. The one
that makes whole annotations most probable leaves models of many labels too sure: mistakes in a
sequence come together, and a chain takes them for rarer than they are.

Where one temperature is not enough, `search` finds more.
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

# Scored sequences without rules and curve, and the ids of their gold labels, which may be
# UNKNOWN_LABEL.
Annotated = tuple[ScoredSequences, npt.NDArray[np.int32]]


def honest_temperature(parts: Sequence[Annotated]) -> float:
    """The temperature at which predicted labels are as probable as they are right, in the mean.

    One right and one wrong answer are counted in addition, so that few data without any mistake
    do not make a model certain. Positions without a gold label do not count.
    """
    answers = [_Answers(scored, labels) for scored, labels in parts]
    if not any(own.annotated.any() for own in answers):
        raise ValueError(
            "treecrf: there is no annotated position to calibrate by; pass data that are annotated "
            "with labels of the model"
        )

    def too_sure(log_temperature: float) -> bool:
        found = [own.at(math.exp(log_temperature)) for own in answers]
        sure, right, n = (sum(sums) for sums in zip(*found, strict=True))
        return bool(sure / n > (right + 1.0) / (n + 2.0))

    return math.exp(_last(too_sure, math.log(LOWEST), math.log(HIGHEST), math.log(CLOSE)))


class _Answers:
    """What a model answers at annotated positions, at any temperature."""

    def __init__(self, scored: ScoredSequences, labels: npt.NDArray[np.int32]) -> None:
        self.annotated = labels != UNKNOWN_LABEL
        self._scored = scored
        self._gold = labels[self.annotated]
        # The best label sequence is the best at all temperatures, but not the best single labels.
        best = None if scored.predicts_single_labels else scored.labels()[self.annotated]
        self._fixed = best

    def at(self, temperature: float) -> tuple[float, int, int]:
        """The sum of the answers' probabilities, how many are right, and how many there are."""
        nodes = self._scored.marginals_at(temperature)[self.annotated]
        labels = nodes.argmax(axis=1) if self._fixed is None else self._fixed
        chosen = nodes[np.arange(len(labels)), labels]
        return float(chosen.sum()), int(np.sum(labels == self._gold)), len(labels)


def _last(holds: Callable[[float], bool], low: float, high: float, close: float) -> float:
    """Where something stops to hold that holds below some number and not above, by halving."""
    while high - low > close:
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return (low + high) / 2.0
