"""Learning curves: what a model, a pipe or spaCy's log has kept of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spacy_treecrf.columnar.model import TrainingCurve
from spacy_treecrf.evaluation.plots import curve_of_log, curve_of_training

Point = tuple[float, float]


@dataclass(frozen=True)
class LearningCurve:
    """Lines over rounds or steps that share one axis of values."""

    x_name: str
    y_name: str
    lines: dict[str, list[Point]]
    kept: float | None = None  # the round or step of the model


def curves_of_column_model(training: TrainingCurve, rounds: int) -> list[LearningCurve]:
    """The likelihood over rounds, and the held-out scores where there were any."""
    likelihood = curve_of_training(training, rounds)
    if likelihood is None:
        return []
    curves = [LearningCurve("round", likelihood.y_name, likelihood.lines, rounds)]
    n = len(training.log_likelihood)
    scores = {"accuracy": training.held_out_accuracy, "span F1": training.held_out_f1}
    lines = {
        name: [(float(n - len(values) + i + 1), value) for i, value in enumerate(values)]
        for name, values in scores.items()
        if values
    }
    if lines:
        curves.append(LearningCurve("round", "held-out score", lines, rounds))
    return curves


def curves_of_spacy_log(path: Path, pipe: str) -> list[LearningCurve]:
    """The loss and the score over steps, from the log of spacy.ConsoleLogger.v3."""
    both = curve_of_log(path, pipe)
    return [
        LearningCurve(both.x_name, name, {name: points}, both.kept)
        for name, points in both.lines.items()
    ]


def curves_of_pipe(history: Sequence[Sequence[float]]) -> list[LearningCurve]:
    """The likelihood over rounds that a pipe has kept: pairs of rounds and the loss after them.

    What was before the first round is left out where there is more: it would dwarf the rest.
    """
    points = [(float(rounds), -float(loss)) for rounds, loss in history]
    points = [point for point in points if point[0]] or points
    if not points:
        return []
    return [LearningCurve("round", "log-likelihood per token", {"training": points})]
