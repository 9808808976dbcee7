"""Boosting with future features: top-level trees and detectors by turns (Hao 2009, section 5.3).

Top-level rounds add trees over the local features and the future features known so far, until the
held-out likelihood stalls. Then lower-level rounds learn detectors, whose Q becomes a future
feature, and top-level rounds go on. All ends when detectors no longer help the held-out part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.potentials import ForestScorer
from spacy_treecrf.engine.boosting.rounds import Callback, HeldOut, Stopping, run_rounds
from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.future.detector_growth import DetectorGrower, Growing
from spacy_treecrf.engine.future.detectors import (
    Detector,
    DetectorScorer,
    bag_probability,
    push,
)
from spacy_treecrf.engine.future.future_parts import Field, FutureSettings, Part
from spacy_treecrf.engine.future.future_potentials import (
    Course,
    FuturePotentials,
    Mark,
    in_order_of_learning,
)
from spacy_treecrf.engine.future.line_search import maximise
from spacy_treecrf.engine.future.local_steps import residuals
from spacy_treecrf.engine.memm.label_history import LabelHistory
from spacy_treecrf.engine.sequences import DIGEST_BYTES, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import NO_CONTEXTS
from spacy_treecrf.engine.trees.forest import MAX_VALUE, Forest, grow_forest
from spacy_treecrf.engine.trees.tree_input import TreeInput
from spacy_treecrf.engine.trees.tree_rounds import grow_trees, round_seed, stepped, tree_input

ALPHA_MAGNITUDES = 8  # powers of 4 below its upper bound that the line search tries
LEAST_PROGRESS = 1e-4  # of the held-out log-likelihood per row: less does not count

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Snapshot:
    """A state to come back to."""

    value: float  # held-out log-likelihood per annotated row
    potentials: FuturePotentials
    scores: list[Floats]  # of both parts
    rows: list[Sequences]


class FutureBooster:
    """Training of one model. Without held-out data the training data take their place."""

    def __init__(
        self,
        data: Sequences,
        columns: Columns,
        history: LabelHistory,
        bag: int,
        settings: FutureSettings,
        workers: Workers,
        potentials: FuturePotentials | None = None,
        held_out: Sequences | None = None,
    ) -> None:
        self.columns = columns
        self.top_columns = history.columns(columns)
        self.history = history
        self.bag = bag
        self.settings = settings
        self.workers = workers
        self.learned = potentials or FuturePotentials((), (), 0)  # until the last finished round
        self.potentials = replace(self.learned, course=None)  # without detectors that are growing
        self.train = Part(data, history, workers)
        self.held_out = Part(held_out, history, workers) if held_out else self.train
        self.parts = [self.train, self.held_out] if held_out else [self.train]
        self.grower = DetectorGrower(columns, bag, settings, self.parts, workers)
        self._top_rows: TreeInput | None = None
        self._growing: list[Growing] = []
        self._tried: set[int] = set()  # labels that had their turn since the last top level
        self.finished = history.n_labels < 2
        self._best_before: _Snapshot | None = None  # of the top-level phase before the last
        self._stalled = 0
        course = self.learned.course
        if course is not None and np.array_equal(course.digest, self._digest):
            self._go_on(course)
        else:
            for part in self.parts:
                self._apply(part, self.potentials)
            self._best_of_phase = self._snapshot()

    @cached
    def _digest(self) -> npt.NDArray[np.uint8]:
        """A digest of the data. shape: (2, DIGEST_BYTES)"""
        digests = np.zeros((2, DIGEST_BYTES), np.uint8)
        for row, part in zip(digests, self.parts, strict=False):
            row[:] = part.data.digest()
        return digests

    def _go_on(self, course: Course) -> None:
        """Take up a training where it stopped; scores are added up in its order, bit for bit."""
        whole = self.potentials
        n_done = len(whole.detectors) - int(course.ready.sum())
        ready = iter(whole.detectors[n_done:])
        now = Mark(0, 0)
        for mark in (course.before, course.best, Mark(whole.end.n_trees, n_done)):
            if mark is None:
                continue
            for learned in in_order_of_learning(whole, now, mark):
                for part in self.parts:
                    self._take_up(part, learned)
            now, self.potentials = mark, whole.until(mark)
            if mark is course.before:
                self._best_before = self._snapshot()
            elif mark is course.best:
                self._best_of_phase = self._snapshot()
        self._stalled, self.finished = course.stalled, course.finished
        self._tried = set(course.tried.tolist())
        self._growing = [
            self.grower.taken_up(next(ready), may_grow) if is_ready else self.grower.started(label)
            for label, is_ready, may_grow in zip(
                course.growing.tolist(), course.ready, course.open.tolist(), strict=True
            )
        ]

    def _take_up(self, part: Part, learned: Forest | Detector) -> None:
        """Add the trees of a round, or a detector, to the scores of a part."""
        if isinstance(learned, Forest):
            self._add_trees(part, learned, part.scores)
            return
        q = bag_probability(
            self.grower.instance_scores(learned, part), part.data, self.bag, self.workers
        )
        part.scores[:, learned.label] += push(learned, q)
        part.add_column(q)

    def _learned_now(self) -> FuturePotentials:
        """What was learned so far, with detectors that could still grow, and where training is."""
        kept = [growing for growing in self._growing if growing.rounds or growing.open]
        course = Course(
            self._digest,
            np.array([growing.detector.label for growing in kept], np.int32),
            np.array([growing.rounds > 0 for growing in kept], np.bool_),
            np.array([growing.open for growing in kept], np.bool_),
            np.array(sorted(self._tried), np.int32),
            self._stalled,
            self.finished,
            self._best_of_phase.potentials.end,
            None if self._best_before is None else self._best_before.potentials.end,
        )
        ready = [growing.detector for growing in kept if growing.rounds]
        detectors = (*self.potentials.detectors, *ready)
        return replace(self.potentials, detectors=detectors, course=course)

    @property
    def rounds(self) -> int:
        return self.potentials.rounds

    @property
    def n_trees(self) -> int:
        return self.learned.n_trees

    @property
    def log_likelihood(self) -> float:
        """Training log-likelihood per annotated row."""
        scores = self._with_pushes(0)
        return self.train.log_likelihood(scores=scores) / self.train.n_annotated

    def boost(self, rounds: int, callback: Callback | None = None) -> FuturePotentials:
        """Go on until `rounds` rounds are done in all, or nothing helps any more."""
        # Patience ends a phase here, and not the training: see `_top_round`.
        return run_rounds(self, rounds, Stopping(0, "log_likelihood"), callback)

    def learn_round(self) -> None:
        if self._growing:
            self._lower_round()
        else:
            self._top_round()
        self.learned = self._learned_now()

    def round_log_likelihood(self) -> float:
        return self.log_likelihood

    def held_out_figures(self) -> HeldOut:
        scores = self._with_pushes(len(self.parts) - 1)
        return HeldOut(self._held_out_value(), self.held_out.accuracy(scores))

    # -- top level

    def _top_round(self) -> None:
        settings, train = self.settings, self.train
        round_ = self._count_round()
        shape = (self.history.n_labels, train.data.n_rows, 1)
        g, h = np.empty(shape, np.float32), np.empty(shape, np.float32)
        max_step = settings.max_step if settings.step == "newton" else 0.0
        self.workers.map(
            lambda chunk: residuals(
                train.scores,
                train.labels,
                train.weights,
                max_step,
                int(train.data.offsets[chunk[0]]),
                int(train.data.offsets[chunk[1]]),
                g,
                h,
            ),
            train.data.chunks,
        )
        # Of two labels only the second has a score, as in section 5.3.2.
        classes = range(self.history.n_labels) if self.history.n_labels > 2 else range(1, 2)
        if self._top_rows is None:
            self._top_rows = tree_input(train.rows, self._columns_now(), settings.min_rows)
        seed = round_seed(settings.seed, round_)
        trees = grow_trees(
            self._top_rows, lambda k: (g[k], h[k]), classes, settings, seed, self.workers
        )
        forest = grow_forest(trees, classes, round_)
        direction = np.zeros_like(train.scores)
        self._add_trees(train, forest, direction)
        alpha, _ = maximise(
            lambda step: train.log_likelihood(direction, step),
            settings.max_alpha,
            train.log_likelihood(),
            ALPHA_MAGNITUDES,
        )
        if alpha > 0.0:
            forest = stepped(forest, alpha, MAX_VALUE)
            for part in self.parts:
                self._add_trees(part, forest, part.scores)
            self.potentials = replace(self.potentials, forests=(*self.potentials.forests, forest))
        value = self._held_out_value()
        if value > self._best_of_phase.value + LEAST_PROGRESS:
            self._best_of_phase = self._snapshot()
            self._stalled = 0
        else:
            self._stalled += 1
        if alpha == 0.0 or self._stalled >= max(1, self.settings.patience):
            self._end_top_phase()

    def _end_top_phase(self) -> None:
        """Back to the best of it; then detectors, unless the last ones were of no use."""
        self._restore(self._best_of_phase)
        before = self._best_before
        if before is not None and self._best_of_phase.value <= before.value + LEAST_PROGRESS:
            self._restore(before)
            self.finished = True
            return
        if self._best_of_phase.value > -LEAST_PROGRESS:
            self.finished = True  # nothing is left to explain
            return
        self._best_before = self._best_of_phase
        self._tried.clear()
        self._begin_detectors()

    # -- lower level

    def _begin_detectors(self) -> None:
        """One detector for each label; of two labels for the second, then for the first."""
        labels = [k for k in range(self.history.n_labels) if k not in self._tried]
        if self.history.n_labels == 2:
            labels = labels[-1:]
        if not labels:
            self.finished = True
        self._tried.update(labels)
        self._growing = [self.grower.started(k) for k in labels]

    def _lower_round(self) -> None:
        round_ = self._count_round()
        self._grow_detectors(round_)
        # Labels whose turn comes only now, because others found nothing, are tried at once.
        while not any(growing.open or growing.rounds for growing in self._growing):
            self._begin_detectors()
            if self.finished:
                return
            self._grow_detectors(round_)
        if not any(growing.open for growing in self._growing):
            self._end_lower_phase()

    def _grow_detectors(self, round_: int) -> None:
        for i, growing in enumerate(self._growing):
            if growing.open:
                fields = [self._field(part, growing) for part in range(len(self.parts))]
                seed = round_seed(self.settings.seed, round_, growing.detector.label)
                self._growing[i] = self.grower.grown(growing, fields, round_, seed)

    def _end_lower_phase(self) -> None:
        """What was learned becomes future features."""
        ready = [growing for growing in self._growing if growing.rounds]
        self._growing = []
        for growing in ready:
            for part, g, pushed in zip(self.parts, growing.scores, growing.pushes, strict=True):
                part.scores[:, growing.detector.label] += pushed
                part.add_column(bag_probability(g, part.data, self.bag, self.workers))
        detectors = (*self.potentials.detectors, *(growing.detector for growing in ready))
        self.potentials = replace(self.potentials, detectors=detectors)
        self._begin_top_phase()

    def _begin_top_phase(self) -> None:
        self._top_rows = None
        self._stalled = 0
        self._best_of_phase = self._snapshot()

    def _field(self, i: int, growing: Growing) -> Field:
        """What a detector meets in a part: all scores, without its own pushes."""
        part, k = self.parts[i], growing.detector.label
        scores = self._with_pushes(i, but=growing).astype(np.float64)
        others = np.logaddexp.reduce(np.delete(scores, k, axis=1), axis=1)
        return Field(part, self.bag, self.workers, scores[:, k], others, part.labels == k)

    def _with_pushes(self, i: int, but: Growing | None = None) -> Floats:
        scores = self.parts[i].scores.copy()
        for growing in self._growing:
            if growing is not but:
                scores[:, growing.detector.label] += growing.pushes[i]
        return scores

    # -- helpers

    def _count_round(self) -> int:
        round_ = self.potentials.rounds
        self.potentials = replace(self.potentials, rounds=round_ + 1)
        return round_

    def _columns_now(self) -> Columns:
        """Top-level trees test a numeric column for each detector as well."""
        names = [f"future[{i}]" for i in range(len(self.potentials.detectors))]
        return replace(self.top_columns, numeric_names=self.top_columns.numeric_names + names)

    def _add_trees(self, part: Part, forest: Forest, scores: Floats) -> None:
        scorer = ForestScorer(
            forest,
            self.history.n_labels,
            len(self.top_columns.counts),
            part.rows.numeric.shape[1],
            NO_CONTEXTS,
        )
        scorer.add(part.rows, part.no_lags, scores[:, None, :], self.workers)

    def _apply(self, part: Part, potentials: FuturePotentials) -> None:
        """Bring a new part up to what is learned already."""
        scorer = DetectorScorer(
            potentials.detectors,
            len(self.columns.counts),
            len(self.columns.numeric_names),
            self.bag,
        )
        qs = scorer.bag_probabilities(part.data, self.workers)
        for detector, q in zip(potentials.detectors, qs, strict=True):
            part.scores[:, detector.label] += push(detector, q)
            part.add_column(q)
        if potentials.forests:
            self._add_trees(part, potentials.forest, part.scores)

    def _held_out_value(self) -> float:
        i = len(self.parts) - 1
        scores = self._with_pushes(i)
        return self.held_out.log_likelihood(scores=scores) / self.held_out.n_annotated

    def _snapshot(self) -> _Snapshot:
        return _Snapshot(
            self._held_out_value(),
            self.potentials,
            [part.scores.copy() for part in self.parts],
            [part.rows for part in self.parts],
        )

    def _restore(self, snapshot: _Snapshot) -> None:
        self.potentials = replace(snapshot.potentials, rounds=self.potentials.rounds)
        for part, scores, rows in zip(self.parts, snapshot.scores, snapshot.rows, strict=True):
            part.scores[:] = scores
            part.rows = rows
        self._top_rows = None
