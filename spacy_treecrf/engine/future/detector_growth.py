"""Lower-level rounds: a detector gets one more tree (Hao 2009, proposition 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.potentials import ForestScorer
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.future.detectors import Detector, DetectorScorer, bag_probability, push
from spacy_treecrf.engine.future.future_parts import Field, FutureSettings, Part
from spacy_treecrf.engine.future.line_search import maximise
from spacy_treecrf.engine.future.noisy_or import instance_gradient
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import NO_CONTEXTS
from spacy_treecrf.engine.trees.forest import Forest, empty_forest, grow_forest, join_forests
from spacy_treecrf.engine.trees.tree_rounds import grow_trees, stepped, tree_input

# Powers of 4 below their upper bounds that the line searches try. beta may have any magnitude.
BETA_MAGNITUDES = 16
ETA_MAGNITUDES = 8
FIRST_ETA = 1.0  # of a detector without trees; after each tree it has a line search of its own
LEAST_PROGRESS = 1e-5  # of the held-out log-likelihood per row: less does not count
MAX_LEAF = 1e4  # sigmoid is flat long before

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Growing:
    """A detector that is being learned. Lists: one entry for each part of the data."""

    detector: Detector
    scores: list[Doubles]  # G of each row
    pushes: list[Floats]  # what it adds to its label's score
    rounds: int  # that brought a tree
    open: bool  # may grow further


class DetectorGrower:
    """parts: training data, which trees and steps are fitted to, and held-out data if any."""

    def __init__(
        self,
        columns: Columns,
        bag: int,
        settings: FutureSettings,
        parts: Sequence[Part],
        workers: Workers,
    ) -> None:
        self.columns = columns
        self.bag = bag
        self.settings = settings
        self.parts = parts
        self.workers = workers
        self.rows = tree_input(parts[0].data, columns, settings.min_rows)

    def started(self, label: int) -> Growing:
        start = self.settings.detector_start
        return Growing(
            Detector(label, start, FIRST_ETA, empty_forest()),
            [np.full(part.data.n_rows, start) for part in self.parts],
            [np.zeros(part.data.n_rows, np.float32) for part in self.parts],
            0,
            True,
        )

    def grown(
        self, growing: Growing, fields: Sequence[Field], round_: int, seed: np.uint64
    ) -> Growing:
        """The detector with a tree more and a new eta; closed if the held-out part gains nothing.

        fields: what the detector meets in each part.
        """
        settings = self.settings
        trained, judged = fields[0], fields[-1]
        tree = self._tree(growing, trained, round_, seed)
        if tree is None:
            return replace(growing, open=False)
        forest = join_forests([growing.detector.forest, tree])
        detector = replace(growing.detector, forest=forest)
        scores = [self.instance_scores(detector, part) for part in self.parts]
        eta, _ = maximise(
            lambda step: trained.value(scores[0], step),
            settings.max_eta,
            trained.value(scores[0], 0.0),
            ETA_MAGNITUDES,
        )
        before = judged.value(growing.scores[-1], growing.detector.eta if growing.rounds else 0.0)
        gained = judged.value(scores[-1], eta) - before
        if eta == 0.0 or gained <= LEAST_PROGRESS * self.parts[-1].n_annotated:
            return replace(growing, open=False)
        may_grow = forest.n_trees < settings.detector_rounds
        return self._with_pushes(replace(detector, eta=eta), scores, may_grow)

    def taken_up(self, detector: Detector, may_grow: bool) -> Growing:
        """A detector that has trees already, to be learned further."""
        scores = [self.instance_scores(detector, part) for part in self.parts]
        return self._with_pushes(detector, scores, may_grow)

    def _with_pushes(self, detector: Detector, scores: list[Doubles], may_grow: bool) -> Growing:
        pushes = [
            push(detector, bag_probability(own, part.data, self.bag, self.workers))
            for own, part in zip(scores, self.parts, strict=True)
        ]
        return Growing(detector, scores, pushes, detector.forest.n_trees, may_grow)

    def _tree(self, growing: Growing, field: Field, round_: int, seed: np.uint64) -> Forest | None:
        """A tree fitted to the gradient, times the best step beta; None if no step helps."""
        settings, part = self.settings, self.parts[0]
        scores, eta = growing.scores[0], growing.detector.eta
        slopes = field.slopes(scores, eta)
        gradient, bags = np.empty(part.data.n_rows), np.empty(part.data.n_rows)
        self.workers.map(
            lambda chunk: instance_gradient(
                scores, slopes, part.data.offsets, *chunk, self.bag, gradient, bags
            ),
            part.data.chunks,
        )
        # The gradient may be tiny. The line search finds its step whatever it is, so trees, whose
        # leaves lie on a grid, are grown on the gradient in units of its largest value.
        unit = float(np.abs(gradient).max())
        if unit == 0.0:
            return None
        own = (gradient / unit).astype(np.float32)[:, None], bags.astype(np.float32)[:, None]
        trees = grow_trees(self.rows, lambda _: own, [0], settings, seed, self.workers)
        forest = grow_forest(trees, [0], round_)
        direction = np.zeros((part.data.n_rows, 1), np.float32)
        n_features, n_numeric = len(self.columns.counts), len(self.columns.numeric_names)
        scorer = ForestScorer(forest, 1, n_features, n_numeric, NO_CONTEXTS)
        scorer.add(part.data, part.no_lags, direction[:, None, :], self.workers)
        along = unit * direction[:, 0].astype(np.float64)
        beta, _ = maximise(
            lambda step: field.value(scores + step * along, eta),
            settings.max_beta,
            field.value(scores, eta),
            BETA_MAGNITUDES,
        )
        if beta == 0.0:
            return None
        return stepped(forest, beta * unit, MAX_LEAF)

    def instance_scores(self, detector: Detector, part: Part) -> Doubles:
        n_features, n_numeric = len(self.columns.counts), len(self.columns.numeric_names)
        scorer = DetectorScorer([detector], n_features, n_numeric, self.bag)
        scores: Doubles = scorer.instance_scores(part.data, self.workers)[0]
        return scores
