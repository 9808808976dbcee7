"""The temperature curve by which answers of every probability are right as often as they say.

A model that is calibrated by one temperature may still be too sure where it is half sure, and too
modest elsewhere. The curve makes the gaps between probabilities and shares of right answers small,
near each of a few probabilities from 0 to 1, by the steps of Gauss and Newton. A penalty keeps
temperatures from depending on entropies where few answers ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.temperature_curve import (
    MAX_COEFFICIENT,
    TemperatureCurve,
    label_entropies,
)
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL
from spacy_treecrf.models.predictor import ScoredSequences

Doubles = npt.NDArray[np.float64]

N_KNOTS = 11  # probabilities 0, 0.1, ... 1 near which gaps are measured
# Of shift, slope and bend, squared. The loss of honest answers is 0.1 to 0.2 for each knot by
# chance, so that these expect temperatures to change by a factor of about 2 for a nat of entropy.
PENALTIES = np.array([0.01, 0.3, 0.3])
MAX_STEPS = 12
SHARES = (1.0, 1 / 2, 1 / 4, 1 / 8)  # of a step that are tried before the search ends
ENOUGH = 1e-3  # the search ends when a step lowers the loss by less
DIFFERENCE = 0.05  # of a coefficient, to both sides, to tell its effect on gaps


def honest_curve(
    parts: Sequence[tuple[ScoredSequences, npt.NDArray[np.int32]]], temperature: float
) -> TemperatureCurve:
    """The curve of a model whose scores are divided by the temperature that is honest by itself.

    parts: Scored sequences without rules, and the ids of their gold labels, which may be
    UNKNOWN_LABEL. Answers are the labels that the model gives without a curve.
    """
    held_out = _HeldOut(parts, temperature)
    now = held_out.at(np.zeros(3))
    for _ in range(MAX_STEPS):
        step = held_out.step_from(now)
        tried = (held_out.at(now.coefficients + share * step) for share in SHARES)
        after = next((point for point in tried if point.loss < now.loss), None)
        if after is None:
            break
        now, gain = after, now.loss - after.loss
        if gain < ENOUGH:
            break
    return TemperatureCurve(*now.coefficients.tolist())


@dataclass(frozen=True)
class _Point:
    """Coefficients of a curve, and the probabilities that it gives to all answers."""

    coefficients: Doubles  # shape: (3,)
    probabilities: Doubles  # shape: (n_answers,)
    right: Doubles  # shape: (n_answers,), 1 or 0

    @property
    def gaps(self) -> Doubles:
        """Right answers minus probabilities, near each knot, in standard units. (n_knots,)"""
        return self.near_knots(self.right - self.probabilities)

    @property
    def loss(self) -> float:
        return float((self.gaps**2).sum() + PENALTIES @ self.coefficients**2)

    def near_knots(self, values: Doubles) -> Doubles:
        """Sums of the answers' values over the square root of their number, near each knot.

        An answer between two knots belongs to both, the more the nearer it is. One more answer is
        counted at each knot, so that single ones decide nothing.
        """
        place = np.clip(self.probabilities, 0.0, 1.0) * (N_KNOTS - 1)
        below = np.minimum(place.astype(np.int64), N_KNOTS - 2)
        share = place - below

        def summed(own: Doubles) -> Doubles:
            found = np.zeros(N_KNOTS)
            found += np.bincount(below, own * (1.0 - share), N_KNOTS)
            found += np.bincount(below + 1, own * share, N_KNOTS)
            return found

        return summed(values) / np.sqrt(summed(np.ones(len(values))) + 1.0)


class _HeldOut:
    """The answers of a model at annotated positions, under any curve."""

    def __init__(
        self,
        parts: Sequence[tuple[ScoredSequences, npt.NDArray[np.int32]]],
        temperature: float,
    ) -> None:
        self._answers = [_Answers(scored, labels, temperature) for scored, labels in parts]
        self._right = np.concatenate([own.right for own in self._answers])

    def at(self, coefficients: Doubles) -> _Point:
        coefficients = np.clip(coefficients, -MAX_COEFFICIENT, MAX_COEFFICIENT)
        curve = TemperatureCurve(*coefficients.tolist())
        probabilities = np.concatenate([own.probabilities(curve) for own in self._answers])
        return _Point(coefficients, probabilities, self._right)

    def step_from(self, now: _Point) -> Doubles:
        """The change of coefficients that makes gaps the smallest if effects are linear."""
        effects = np.empty((N_KNOTS, 3))
        for i, change in enumerate(DIFFERENCE * np.eye(3)):
            above, below = self.at(now.coefficients + change), self.at(now.coefficients - change)
            # Gaps, not probabilities: an answer that becomes less sure also leaves its knot.
            effects[:, i] = (above.gaps - below.gaps) / (2.0 * DIFFERENCE)
        curvature = effects.T @ effects + np.diag(PENALTIES)
        gradient = effects.T @ now.gaps + PENALTIES * now.coefficients
        return np.linalg.solve(curvature, -gradient).astype(np.float64)


class _Answers:
    """The answers of a model to a part of the data."""

    def __init__(
        self, scored: ScoredSequences, labels: npt.NDArray[np.int32], temperature: float
    ) -> None:
        nodes = scored.marginals_at(temperature)
        best = nodes.argmax(axis=1) if scored.predicts_single_labels else scored.labels()
        self._rows = np.flatnonzero(labels != UNKNOWN_LABEL)
        self._scored = scored
        self._temperature = temperature
        self._entropies = label_entropies(nodes)
        self._labels = best[self._rows]
        self.right = (self._labels == labels[self._rows]).astype(np.float64)

    def probabilities(self, curve: TemperatureCurve) -> Doubles:
        temperatures = curve.temperatures(self._entropies)
        nodes = self._scored.marginals_at(self._temperature, of_rows=temperatures)
        found: Doubles = nodes[self._rows, self._labels]
        return found
