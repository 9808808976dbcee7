"""The search for a correction: a temperature, and more where one number is not enough.

A curve gives each row a temperature of its own, see `TemperatureCurve`. The other addition lowers
the label O: models of spans that are divided by a temperature alone stay too sure of O, and too
unsure of spans, because a temperature that takes what is wrong with scores of O spreads what is
left over all names of spans. One more number, which is taken off the score of O at all positions,
puts that right. With it a temperature is a "bias-corrected" one (Alexandari et al. 2020, section
2.2, there with a number for each class). Positions outside of spans are most of all, so that this
number is the one that data tell well. Temperature and number are those that make held-out labels,
position by position, most probable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.labels.biluo import OUTSIDE
from spacy_treecrf.models.calibration.curve_fitting import honest_curve
from spacy_treecrf.models.calibration.temperature import honest_temperature
from spacy_treecrf.models.correction import Correction
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.models.predictor import Predictor, ScoredSequences

# Steps of the search, in log temperatures and in scores, of which each is half of the one before.
STEPS = 6
FINEST = 1 / 80
# Log temperatures and scores that the search may reach, in finest steps.
FURTHEST = 320
# Smaller probabilities count as this one, such as those of annotations that are impossible.
LEAST_PROBABILITY = 1e-12

Place = tuple[int, int]  # a log temperature and a score, in finest steps


class Wanted(NamedTuple):
    """What a correction may have besides a temperature: one of both."""

    outside: bool = False  # a lower score of the label O
    curve: bool = False  # temperatures of rows by their entropies

    def check(self) -> None:
        if self.outside and self.curve:
            raise ValueError("treecrf: outside and curve are both asked for; use one of them")


class HeldOutLabels(NamedTuple):
    """Held-out sequences under a model that has not learned from them."""

    scored: ScoredSequences  # without rules and curve
    gold: npt.NDArray[np.int32]  # ids of the labels (n_rows,), which may be UNKNOWN_LABEL
    labels: Sequence[str]  # by id

    @classmethod
    def of(
        cls, predictor: Predictor, data: Sequences, gold: npt.NDArray[np.int32]
    ) -> HeldOutLabels:
        scored = predictor.without_rules().uncurved().apply(data)
        return cls(scored, gold, predictor.model.labels)


def can_lower_outside(labels: Sequence[str], order: int) -> bool:
    """Whether a model has the label O, and edges to it, which a chain of order 0 has not."""
    return OUTSIDE in labels and order > 0


def require_outside(labels: Sequence[str], order: int) -> None:
    """Refuse a model whose label O cannot be lowered."""
    if not can_lower_outside(labels, order):
        lacks = "is of order 0" if OUTSIDE in labels else f"has no label {OUTSIDE!r}"
        raise ValueError(
            f"treecrf: the label O is to be lowered, and a model {lacks}; leave outside out"
        )


def calibratable(model: SequenceModel, holder: str) -> CRF:
    """The model, if it is one that a correction can change."""
    if not isinstance(model, CRF):
        raise ValueError(
            f"treecrf: {holder} has a {type(model).__name__}; only boosted CRFs can be calibrated"
        )
    return model


def found_correction(parts: Sequence[HeldOutLabels], wanted: Wanted) -> Correction:
    """What makes the probabilities of models honest on sequences that they have not seen.

    Unless the label O may be lowered, the temperature is the one at which labels are right as
    often as the models say. Where it may, models without O tell nothing.
    """
    wanted.check()
    if not wanted.outside:
        annotated = [(part.scored, part.gold) for part in parts]
        temperature = honest_temperature(annotated)
        curve = honest_curve(annotated, temperature) if wanted.curve else None
        return Correction(temperature, curve=curve)
    able = [part for part in parts if can_lower_outside(part.labels, part.scored.chain.order)]
    if parts and not able:
        require_outside(parts[0].labels, parts[0].scored.chain.order)
    return likely_correction(able)


def likely_correction(parts: Sequence[HeldOutLabels]) -> Correction:
    """The correction that makes held-out labels, each for itself, most probable.

    To the log-likelihood that of a normal distribution is added, of the logarithm of the
    temperature and of what is taken off, both with a variance of 1: few data change little.
    """
    if not any((part.gold != UNKNOWN_LABEL).any() for part in parts):
        raise ValueError(
            "treecrf: there is no annotated position to calibrate by; pass data that are annotated "
            "with labels of the model"
        )

    def loss(place: Place) -> float:
        log_temperature, outside = place[0] * FINEST, place[1] * FINEST
        correction = Correction(math.exp(log_temperature), outside)
        surprise = sum(_surprise(part, correction) for part in parts)
        return surprise + (log_temperature**2 + outside**2) / 2.0

    log_temperature, outside = lowest_place(loss)
    return Correction(math.exp(log_temperature * FINEST), outside * FINEST)


def _surprise(part: HeldOutLabels, correction: Correction) -> float:
    """The sum of -log P(label) over the annotated positions of held-out sequences."""
    added = np.zeros(part.scored.chain.n_labels, np.float32)
    added[part.labels.index(OUTSIDE)] = -correction.outside
    rows = np.flatnonzero(part.gold != UNKNOWN_LABEL)
    p = part.scored.marginals_at(correction.temperature, added=added)[rows, part.gold[rows]]
    return -float(np.log(np.maximum(p, LEAST_PROBABILITY)).sum())


def lowest_place(loss: Callable[[Place], float]) -> Place:
    """The place of the lowest loss, by steps to the eight sides that become smaller and smaller.

    A compass search (Kolda, Lewis and Torczon 2003) with diagonal steps, because both numbers
    depend on each other. It needs no gradient, and always ends at a place no side of which is
    better.
    """
    known: dict[Place, float] = {}

    def at(place: Place) -> float:
        if place not in known:
            known[place] = loss(place)
        return known[place]

    best: Place = (0, 0)
    for step in (2**k for k in reversed(range(STEPS))):
        while at(nearest := min(_sides(best, step), key=at)) < at(best):
            best = nearest
    return best


def _sides(place: Place, step: int) -> Iterator[Place]:
    """The places a step away, to all eight sides, that are not too far."""
    for down in (-step, 0, step):
        for across in (-step, 0, step):
            found = place[0] + down, place[1] + across
            if (down or across) and max(map(abs, found)) <= FURTHEST:
                yield found
