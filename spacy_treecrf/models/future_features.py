"""MEMM with future features: patterns of later positions that resolve what is ambiguous here.

Hao 2009, section 5.3, for any number of labels: each label has detectors of its own, and the trees
of all labels may test all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spacy_treecrf.engine.boosting import Callback
from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.engine.constraints import Masks
from spacy_treecrf.engine.detectors import Detector, DetectorScorer, push, thermometer
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.forest import Forest
from spacy_treecrf.engine.future_boosting import FutureBooster, FuturePotentials
from spacy_treecrf.engine.history import History, turned_round
from spacy_treecrf.engine.linear import LinearWeights
from spacy_treecrf.engine.local import LocalScorer
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.detector_words import describe
from spacy_treecrf.models.holding_out import hold_out
from spacy_treecrf.models.local_decoding import Inputs, LocalDecoder, LocalModel
from spacy_treecrf.models.local_settings import (
    MAX_STEP,
    FutureSettings,
    read_settings,
    settings_state,
)
from spacy_treecrf.models.model import Recipe, SequenceModel, Trainer
from spacy_treecrf.models.new_labels import history_moved, new_label_forests
from spacy_treecrf.models.parts import masks_state, new_masks, read_masks, wider_masks

MAX_DETECTORS = 10**5
MAX_START = 1e3


@dataclass(frozen=True)
class FutureMEMM(LocalModel):
    """A learned model."""

    settings: FutureSettings
    labels: list[str]
    columns: Columns
    masks: Masks  # start, transition and end: 0, or -inf where forbidden
    potentials: FuturePotentials

    @property
    def rounds(self) -> int:
        return self.potentials.rounds

    def describe_detectors(self, paths: int = 3) -> list[str]:
        """For each detector a sentence: what it looks for, where, and which label that favours.

        paths: how many patterns of each are named, the strongest first.
        """
        return [
            describe(detector, self.columns, self.labels[detector.label], self.settings, paths)
            for detector in self.potentials.detectors
        ]

    @cached_property
    def decoder(self) -> LocalDecoder:
        n_features = self.history.n_features + len(self.columns.counts)
        n_numeric = len(self.columns.numeric_names)
        scorer = LocalScorer(
            self.history,
            self.potentials.forest,
            LinearWeights.zeros(n_features, n_numeric, len(self.labels)),
            self.columns.bin_values,
            n_numeric + len(self.potentials.detectors),
        )
        return LocalDecoder(scorer, self.settings, self.masks, self._see)

    @cached_property
    def detector_scorer(self) -> DetectorScorer:
        return DetectorScorer(
            self.potentials.detectors,
            len(self.columns.counts),
            len(self.columns.numeric_names),
            self.settings.bag_size,
        )

    def _see(self, data: Sequences, workers: Workers) -> Inputs:
        """Rows with a column for each detector, and what detectors add to scores."""
        qs = self.detector_scorer.bag_probabilities(data, workers)
        extra = np.zeros((data.n_rows, len(self.labels)), np.float32)
        for detector, q in zip(self.potentials.detectors, qs, strict=True):
            extra[:, detector.label] += push(detector, q)
        numeric = np.concatenate([data.numeric, thermometer(qs).T], axis=1)
        return replace(data, numeric=np.ascontiguousarray(numeric)), extra

    def trainer(
        self, data: Sequences, workers: Workers, held_out: Sequences | None = None
    ) -> FutureTrainer:
        return FutureTrainer(self, data, workers, held_out)

    def with_labels(self, labels: list[str]) -> FutureMEMM:
        new = [label for label in dict.fromkeys(labels) if label not in self.labels]
        if not new:
            return self
        names = [*self.labels, *new]
        self.settings.check_labels(len(names))
        old, wide = self.history, History(len(names), self.settings.order)
        was = self.potentials
        forests = [history_moved(forest, old, wide) for forest in was.forests]
        added = range(old.n_labels, wide.n_labels)
        potentials = replace(was, forests=new_label_forests(forests, added, was.rounds))
        masks = wider_masks(self.masks, self.settings.constraints, names, self.settings.order)
        return replace(self, labels=names, masks=masks, potentials=potentials)

    def to_state(self) -> dict[str, Any]:
        potentials = self.potentials
        return {
            "kind": "future_memm",
            "settings": settings_state(self.settings),
            "labels": self.labels,
            "columns": self.columns.to_state(),
            "masks": masks_state(self.masks),
            "forest": potentials.forest.to_state(),
            "detectors": {
                "label": np.array([d.label for d in potentials.detectors], np.int32),
                "start": np.array([d.start for d in potentials.detectors], np.float64),
                "eta": np.array([d.eta for d in potentials.detectors], np.float64),
                "forests": [d.forest.to_state() for d in potentials.detectors],
            },
            "rounds": potentials.rounds,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FutureMEMM:
        fields = Fields(state)
        fields.string("kind", choices=("future_memm",))
        settings = read_settings(fields.fields("settings"), FutureSettings)
        labels = fields.strings("labels", unique=True)
        if not labels:
            fields.fail("labels", "at least one label", "none")
        n_labels = len(labels)
        columns = Columns.from_state(fields.table("columns"))
        masks = read_masks(fields.fields("masks"), n_labels)
        try:
            settings.check_labels(n_labels)
        except ValueError as error:
            fields.fail("labels", "few enough for the order", str(error))
        detectors = _read_detectors(fields.fields("detectors"), n_labels, columns)
        n_features = History(n_labels, settings.order).n_features + len(columns.counts)
        n_numeric = len(columns.numeric_names) + len(detectors)
        forest = Forest.from_state(fields.fields("forest"), n_labels, n_features, n_numeric, 0)
        n_rounds = int(forest.tree_round[-1]) + 1 if forest.n_trees else 0
        potentials = FuturePotentials(
            (forest,), detectors, fields.integer("rounds", n_rounds, 2**31 - 1)
        )
        fields.done()
        return cls(settings, labels, columns, masks, potentials)


def _read_detectors(fields: Fields, n_labels: int, columns: Columns) -> tuple[Detector, ...]:
    label = fields.array("label", np.int32, (None,), low=0, high=n_labels - 1)
    n = len(label)
    if n > MAX_DETECTORS:
        fields.fail("label", f"at most {MAX_DETECTORS} detectors", f"{n}")
    start = fields.array("start", np.float64, (n,), low=-MAX_START, high=MAX_START)
    eta = fields.array("eta", np.float64, (n,), low=0.0, high=MAX_STEP)
    n_features, n_numeric = len(columns.counts), len(columns.numeric_names)
    forests = [
        Forest.from_state(own, 1, n_features, n_numeric, 0)
        for own in fields.fields_list("forests", n)
    ]
    return tuple(
        Detector(int(label[i]), float(start[i]), float(eta[i]), forest)
        for i, forest in enumerate(forests)
    )


class FutureTrainer(Trainer):
    """Top-level trees and detectors by turns; holds a part out if none is given."""

    def __init__(
        self, model: FutureMEMM, data: Sequences, workers: Workers, held_out: Sequences | None
    ) -> None:
        settings = model.settings
        self._model = model
        self.data = data
        self.n_annotated = max(1, int((data.labels != UNKNOWN_LABEL).sum()))
        if held_out is None:
            data, held_out = hold_out(data, settings.dev_share, len(model.labels), settings.seed)
        if settings.right_to_left:
            data = turned_round(data)
            held_out = held_out and turned_round(held_out)
        self._booster = FutureBooster(
            data,
            model.columns,
            model.history,
            settings.bag_size,
            settings,
            workers,
            model.potentials,
            held_out,
        )

    @property
    def model(self) -> FutureMEMM:
        return replace(self._model, potentials=self._booster.now)

    @property
    def log_likelihood(self) -> float:
        return self._booster.log_likelihood

    def train(self, rounds: int, callback: Callback | None = None) -> FutureMEMM:
        return replace(self._model, potentials=self._booster.boost(rounds, callback))


@dataclass(frozen=True)
class FutureRecipe(Recipe):
    """A MEMM with future features and these settings."""

    settings: FutureSettings

    def changed(self, **settings: Any) -> FutureRecipe:
        return FutureRecipe(replace(self.settings, **settings))

    def new(self, labels: list[str], columns: Columns, data: Sequences) -> FutureMEMM:
        settings = self.settings.resolved(len(labels))
        settings.check_labels(len(labels))
        masks = new_masks(settings.constraints, labels, settings.order, data)
        return FutureMEMM(settings, labels, columns, masks, FuturePotentials((), (), 0))

    def continued(self, model: SequenceModel) -> FutureMEMM:
        """What the model is stays as it is: its order, bag, direction and constraints."""
        if not isinstance(model, FutureMEMM):
            raise ValueError(
                "treecrf: only a MEMM with future features can be trained on as one; train a new "
                "model"
            )
        was = model.settings
        settings = replace(
            self.settings,
            order=was.order,
            bag=was.bag,
            right_to_left=was.right_to_left,
            constraints=was.constraints,
        ).resolved(len(model.labels))
        settings.check_labels(len(model.labels))
        return replace(model, settings=settings)
