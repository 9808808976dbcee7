"""Training of a model for column files with the estimator; finished rounds survive Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spacy_treecrf.columnar.model import ColumnModel, TrainingCurve
from spacy_treecrf.columnar.template import SPELLING, Template
from spacy_treecrf.columnar.word_features import WordFeatures
from spacy_treecrf.estimators import BoostedCRF
from spacy_treecrf.labels.schemes import are_span_labels
from spacy_treecrf.models.model import TrainingInterrupted

Data = tuple[Sequence[Sequence[dict[str, Any]]], Sequence[Sequence[Any]]]


class TrainingStopped(KeyboardInterrupt):
    """Training was stopped by Ctrl-C; `model` has the rounds that were done."""

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
    words: WordFeatures | None = None,
    grow: bool = False,
) -> ColumnModel:
    """The model that is learned from feature dicts and labels.

    settings: Those of `BoostedCRF` that are not the defaults.
    started: A model to go on with, whose settings stay, except for `rounds`, `threads` and
    `spill`.
    words: The word features that the feature dicts have; the model keeps them.
    grow: Whether the model to go on with takes in features that are new; then all settings that
    are given count.
    """
    curve = TrainingCurve()
    estimator = BoostedCRF(**settings, verbose=verbose)
    if started is not None:
        estimator = _resumed(started, settings, verbose, grow)
        if grow:
            estimator.add_features(training[0])
        done = started.crf.potentials.rounds
        # Rounds after the one that was kept are learned anew.
        kept = {name: list(values[:done]) for name, values in started.curve.__dict__.items()}
        curve = TrainingCurve(**{**kept, "seconds": []})
    if held_out is None:  # held-out values would end before those of the training data
        curve.held_out_log_likelihood.clear()
        curve.held_out_accuracy.clear()
        curve.held_out_f1.clear()
    estimator.callback = curve.add
    X_dev, y_dev = held_out if held_out is not None else (None, None)
    try:
        estimator.fit(*training, X_dev, y_dev)
    except TrainingInterrupted as stopped:
        raise TrainingStopped(ColumnModel(template, estimator.model_, curve, words)) from stopped
    return ColumnModel(template, estimator.model_, curve, words)


def cross_calibrated(
    model: ColumnModel, training: Data, folds: int, new_names: bool
) -> ColumnModel:
    """The model with honest probabilities, by models of folds of its own training data.

    new_names: Whether words in the spans of a fold are new to the model that judges it.
    """
    if new_names and not are_span_labels(model.crf.labels):
        raise ValueError(
            "treecrf: the labels of this model are no spans, which new names are about; leave "
            "--new-names out"
        )
    estimator = _resumed(model, {}, sys.stderr.isatty(), change=False)
    column = model.template.word_column("--new-names") if new_names else None
    new = f"{column}{SPELLING}" if column else None
    estimator.cross_calibrate(*training, folds=folds, new=new)
    return replace(model, crf=estimator.model_)


def _resumed(
    started: ColumnModel, settings: dict[str, Any], verbose: bool, change: bool
) -> BoostedCRF:
    """An estimator that goes on with a model, under the settings the model was trained with.

    So the result is the same as that of training in one go, unless settings may change.
    """
    kept = started.crf.settings.to_dict()
    if change:
        kept |= settings
    if settings.get("rounds") is not None:
        kept["rounds"] = settings["rounds"]
    kept["threads"] = settings.get("threads", 0)
    kept["spill"] = settings.get("spill")
    done = started.crf.rounds
    if change and kept["rounds"] is not None and kept["rounds"] <= done:
        raise ValueError(
            f"treecrf: the model has {done} rounds already, and {kept['rounds']} in all are asked "
            "for, so that nothing would be learned; give a larger --rounds, which is the total"
        )
    estimator = BoostedCRF(**kept, verbose=verbose, warm_start=True)
    estimator.model_ = started.crf
    return estimator
