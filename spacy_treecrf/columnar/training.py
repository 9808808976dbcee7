"""Training a model for column files with the estimator; what is done survives Ctrl-C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spacy_treecrf.columnar.model import ColumnModel, History
from spacy_treecrf.columnar.template import Template
from spacy_treecrf.engine.boosting import RoundInfo
from spacy_treecrf.estimators import BoostedCRF
from spacy_treecrf.models.model import TrainingInterrupted

Data = tuple[Sequence[Sequence[dict[str, Any]]], Sequence[Sequence["str | None"]]]


class TrainingStopped(KeyboardInterrupt):
    """Ctrl-C during training; `model` has the rounds that were done."""

    def __init__(self, model: ColumnModel) -> None:
        super().__init__(f"after {model.crf.potentials.rounds} rounds")
        self.model = model


def fit(
    template: Template,
    training: Data,
    held_out: Data | None,
    settings: dict[str, Any],
    started: ColumnModel | None = None,
    verbose: bool = False,
) -> ColumnModel:
    """Learn from feature dicts and labels. started: a model to go on with."""
    history = History()
    estimator = BoostedCRF(**settings, verbose=verbose)
    if started is not None:
        estimator = _resumed(started, settings, verbose)
        done = started.crf.potentials.rounds
        # Rounds behind the one that was kept are learned anew.
        kept = {name: list(values[:done]) for name, values in started.history.__dict__.items()}
        history = History(**kept)
    if held_out is None:  # the curve would end before that of the training data
        history.held_out_log_likelihood.clear()
        history.held_out_accuracy.clear()
    before = history.seconds[-1] if history.seconds else 0.0

    def remember(info: RoundInfo) -> None:
        history.add(info, before)

    estimator.callback = remember
    X_dev, y_dev = held_out if held_out is not None else (None, None)
    try:
        estimator.fit(*training, X_dev, y_dev)
    except TrainingInterrupted as stopped:
        raise TrainingStopped(ColumnModel(template, estimator.model_, history)) from stopped
    return ColumnModel(template, estimator.model_, history)


def _resumed(started: ColumnModel, settings: dict[str, Any], verbose: bool) -> BoostedCRF:
    """With the settings of the model: going on must give what training in one go would."""
    kept = {name: getattr(started.crf.settings, name) for name in settings}
    if settings["rounds"] is not None:
        kept["rounds"] = settings["rounds"]
    kept["threads"] = settings["threads"]
    estimator = BoostedCRF(**kept, verbose=verbose, warm_start=True)
    estimator.model_ = started.crf
    return estimator
