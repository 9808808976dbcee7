"""The MEMM with future features: detectors of patterns at later positions.

Hao 2009, section 5.3, for any number of labels: each label has detectors of its own, and the trees
of all labels may test all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spacy_treecrf.engine.boosting.linear import LinearWeights
from spacy_treecrf.engine.boosting.rounds import Callback
from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.chain.constraints import Masks
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.future.detectors import Detector, DetectorScorer, push, thermometer
from spacy_treecrf.engine.future.future_boosting import FutureBooster
from spacy_treecrf.engine.future.future_potentials import Course, FuturePotentials
from spacy_treecrf.engine.memm.label_history import LabelHistory, turned_round
from spacy_treecrf.engine.memm.memm_scoring import LocalScorer
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.models.memm.base import MEMMBase, MEMMBaseRecipe, read_common
from spacy_treecrf.models.memm.decoding import Inputs, MEMMDecoder
from spacy_treecrf.models.memm.detector_words import describe_detector
from spacy_treecrf.models.memm.holding_out import hold_out
from spacy_treecrf.models.memm.settings import MAX_STEP, FutureSettings
from spacy_treecrf.models.model import Trainer
from spacy_treecrf.models.new_labels import history_moved, new_label_forests
from spacy_treecrf.storage.state_reader import StateReader

MAX_DETECTORS = 10**5
MAX_START = 1e3


@dataclass(frozen=True)
class FutureMEMM(MEMMBase):
    """A learned MEMM whose trees also test detectors of patterns at later positions."""

    settings: FutureSettings
    potentials: FuturePotentials

    def describe_detectors(self, paths: int = 3) -> list[str]:
        """A sentence for each detector: what it looks for, where, and which label that favours.

        paths: How many patterns of each detector are named, the strongest first.
        """
        return [
            describe_detector(
                detector, self.columns, self.labels[detector.label], self.settings, paths
            )
            for detector in self.potentials.detectors
        ]

    @cached
    def decoder(self) -> MEMMDecoder:
        n_features = self.history.n_features + len(self.columns.counts)
        n_numeric = len(self.columns.numeric_names)
        scorer = LocalScorer(
            self.history,
            self.potentials.forest,
            LinearWeights.zeros(n_features, n_numeric, len(self.labels)),
            self.columns.bin_values,
            n_numeric + len(self.potentials.detectors),
        )
        return MEMMDecoder(scorer, self.settings, self.masks, self._with_detectors)

    @cached
    def detector_scorer(self) -> DetectorScorer:
        return DetectorScorer(
            self.potentials.detectors,
            len(self.columns.counts),
            len(self.columns.numeric_names),
            self.settings.bag_size,
        )

    def _with_detectors(self, data: Sequences, workers: Workers) -> Inputs:
        """Rows with a numeric column for each detector, and what detectors add to scores."""
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

    def _wider_potentials(self, old: LabelHistory, wide: LabelHistory) -> FuturePotentials:
        was = self.potentials
        forests = [history_moved(forest, old, wide) for forest in was.forests]
        added = range(old.n_labels, wide.n_labels)
        return replace(was, forests=new_label_forests(forests, added, was.rounds), course=None)

    def to_state(self) -> dict[str, Any]:
        potentials = self.potentials
        course = {} if potentials.course is None else {"course": potentials.course.to_state()}
        return self.common_state("future_memm") | {
            "forest": potentials.forest.to_state(),
            "detectors": {
                "label": np.array([d.label for d in potentials.detectors], np.int32),
                "start": np.array([d.start for d in potentials.detectors], np.float64),
                "eta": np.array([d.eta for d in potentials.detectors], np.float64),
                "forests": [d.forest.to_state() for d in potentials.detectors],
            },
            "rounds": potentials.rounds,
            **course,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FutureMEMM:
        reader = StateReader(state)
        settings, labels, columns, masks = read_common(reader, "future_memm", FutureSettings)
        n_labels = len(labels)
        detectors = _read_detectors(reader.nested("detectors"), n_labels, columns)
        n_features = LabelHistory(n_labels, settings.order).n_features + len(columns.counts)
        n_numeric = len(columns.numeric_names) + len(detectors)
        forest = Forest.from_state(reader.nested("forest"), n_labels, n_features, n_numeric, 0)
        n_rounds = int(forest.tree_round[-1]) + 1 if forest.n_trees else 0
        rounds = reader.integer("rounds", n_rounds, 2**31 - 1)
        course = None
        if reader.has("course"):
            sizes = (n_labels, len(columns.numeric_names))
            course = Course.from_state(reader.nested("course"), forest, detectors, sizes)
        potentials = FuturePotentials((forest,), detectors, rounds, course)
        reader.done()
        return cls(settings, labels, columns, masks, potentials)


def _read_detectors(reader: StateReader, n_labels: int, columns: Columns) -> tuple[Detector, ...]:
    label = reader.array("label", np.int32, (None,), low=0, high=n_labels - 1)
    n = len(label)
    if n > MAX_DETECTORS:
        reader.fail("label", f"at most {MAX_DETECTORS} detectors", f"{n}")
    start = reader.array("start", np.float64, (n,), low=-MAX_START, high=MAX_START)
    eta = reader.array("eta", np.float64, (n,), low=0.0, high=MAX_STEP)
    n_features, n_numeric = len(columns.counts), len(columns.numeric_names)
    forests = [
        Forest.from_state(own, 1, n_features, n_numeric, 0)
        for own in reader.nested_list("forests", n)
    ]
    return tuple(
        Detector(int(label[i]), float(start[i]), float(eta[i]), forest)
        for i, forest in enumerate(forests)
    )


class FutureTrainer(Trainer):
    """A trainer whose rounds grow trees and detectors by turns.

    Without held-out data it holds a part of the training data out.
    """

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
        return self._with(self._booster.learned)

    @property
    def log_likelihood(self) -> float:
        return self._booster.log_likelihood

    def _boost(self, rounds: int, callback: Callback | None) -> FuturePotentials:
        return self._booster.boost(rounds, callback)

    def _with(self, learned: FuturePotentials) -> FutureMEMM:
        return replace(self._model, potentials=learned)


@dataclass(frozen=True)
class FutureRecipe(MEMMBaseRecipe):
    """How to make a MEMM with future features."""

    settings: FutureSettings
    model_type = FutureMEMM
    name = "a MEMM with future features"

    def untrained(
        self, settings: FutureSettings, labels: list[str], columns: Columns, masks: Masks
    ) -> FutureMEMM:
        return FutureMEMM(settings, labels, columns, masks, FuturePotentials((), (), 0))
