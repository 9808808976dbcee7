"""The rows of one worker: their scores, residuals, and their part of all sums of a round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.dask.growing_rows import GrowingRows
from spacy_treecrf.dask.rooms import FeatureTables
from spacy_treecrf.engine.boosting.annotation import Annotated, AnnotationTotals
from spacy_treecrf.engine.boosting.boosting import make_chain
from spacy_treecrf.engine.boosting.cached_scores import CachedScores
from spacy_treecrf.engine.boosting.growing import ForestGrower
from spacy_treecrf.engine.boosting.linear import (
    Direction,
    FeatureSums,
    LinearProblem,
    bounds_along,
    sum_up_features,
)
from spacy_treecrf.engine.boosting.potentials import Potentials, Update
from spacy_treecrf.engine.boosting.residuals import (
    ALL_ROWS,
    Bound,
    Gradient,
    ResidualSums,
    RowResiduals,
    residuals_of_rows,
)
from spacy_treecrf.engine.boosting.rounds import HeldOutCounts, count_held_out
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.boosting.span_f1 import SpanLabels
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.constraints import Masks
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.exact_sums import exact_terms
from spacy_treecrf.engine.row_storage import RowStorage
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.entries import (
    NO_NUMBERS,
    EntryDraw,
    Magnitudes,
    MagnitudeSums,
    MeasureRoom,
    Trimming,
    entries_in,
    measure_into,
    measured_in,
)
from spacy_treecrf.engine.trees.tree_input import Entries
from spacy_treecrf.engine.trees.tree_rounds import round_seed


@dataclass(frozen=True)
class Job:
    """What a training is about: the same on all workers."""

    columns: Columns
    n_labels: int
    masks: Masks
    settings: Settings
    spans: SpanLabels | None

    def chain(self, edges: npt.NDArray[np.float32]) -> Chain:
        return make_chain(edges, self.masks, self.settings.order, self.settings.beam)


class ShardTotals(NamedTuple):
    """What the driver learns of a worker's rows."""

    annotation: AnnotationTotals
    n_annotated: int


class Shard:
    """Rows with their cached scores. They are whole chunks of all rows, in order.

    numbers: (n_rows,) those of the rows among all rows, for random draws.
    """

    def __init__(
        self,
        job: Job,
        data: Sequences,
        numbers: npt.NDArray[np.int64],
        held_out: Sequences | None,
        potentials: Potentials,
        workers: Workers,
    ) -> None:
        self.job, self.workers = job, workers
        settings = job.settings
        order = settings.context_order
        self.train = CachedScores(data, job.columns, order, potentials, workers)
        self.held_out: CachedScores | None = None
        if held_out is not None:
            self.held_out = CachedScores(held_out, job.columns, order, potentials, workers)
        self.annotated = Annotated(data, job.n_labels, settings.order, order > 0)
        self.grower = ForestGrower(self.train, self.annotated, settings)
        self.numbers = numbers if settings.subsample < 1.0 else NO_NUMBERS
        self.potentials = potentials  # of which only the linear part is kept up to date
        self.rows: RowResiduals | None = None
        self.measured: dict[int, Magnitudes] = {}
        self.trees: list[GrowingRows] = []
        self.tables = FeatureTables(self.grower.input.n_features)
        self.linear = self._linear_before = potentials.linear
        self._applied: Update | None = None

    @property
    def totals(self) -> ShardTotals:
        known = self.train.data.labels != UNKNOWN_LABEL
        return ShardTotals(self.annotated.totals, int(known.sum()))

    def move(self, back: bool, step: Update) -> None:
        """Bring all scores up to date with a step; `back`: take the last one back before."""
        self.rows = None
        for cached in filter(None, (self.train, self.held_out)):
            if back:
                assert self._applied is not None
                cached.revert(self._applied)
            cached.apply(step)
        self.linear = self._linear_before if back else self.linear
        self._linear_before = self.linear
        self.linear = step.linear or self.linear
        self._applied = step

    def forget_linear(self) -> None:
        for cached in filter(None, (self.train, self.held_out)):
            cached.forget_linear()

    def residuals(self, edges: npt.NDArray[np.float32], bound: Bound | None) -> ResidualSums:
        """Find the residuals under the scores of now; returns these rows' part of all sums."""
        self.rows = None  # there is memory for one
        chain = self.job.chain(edges)
        self.rows = residuals_of_rows(self.annotated, self.train.scores, chain, bound, self.workers)
        return ResidualSums(*map(exact_terms, self.rows.sums))  # fewer than there are chunks

    def count_held_out(self, edges: npt.NDArray[np.float32]) -> HeldOutCounts | None:
        if self.held_out is None:
            return None
        return count_held_out(
            self.held_out.scores,
            self.held_out.data,
            self.job.chain(edges),
            self.job.settings.predictor,
            self.workers,
            self.job.spans,
        )

    def measure_linear(self) -> list[MagnitudeSums]:
        """How large each label's gradients are, for a linear round."""
        return self._measure(1.0, np.uint64(0), self._linear_gradient, NO_NUMBERS)

    def sum_up_linear(
        self, labels: Sequence[int], trimmed: Sequence[Trimming]
    ) -> list[FeatureSums]:
        """Sums of features, of each of these labels. trimmed: of all labels"""
        data = self.train.data
        n_features = len(self.job.columns.counts)

        def sums(label: int) -> FeatureSums:
            entries = self._entries(label, self._linear_gradient(label), trimmed[label])
            found: FeatureSums = sum_up_features(
                data.feature_ids, data.numeric, entries, n_features
            )
            return found

        return self.workers.map(sums, labels)

    def bound_linear(self, direction: Direction) -> npt.NDArray[np.float64]:
        """Terms of the bounds along a direction. shape: (n_terms, n_labels, 5)"""
        assert self.rows is not None
        train, start = self.train, self.potentials
        problem = LinearProblem(
            train.data,
            self.job.columns.bin_values,
            self.rows.of_label,
            train.lags,
            start.linear,
            start.previous_linear,
            train.linear,
            train.previous_linear,
        )
        return exact_terms(bounds_along(problem, direction, self.workers))

    def measure_trees(self, round_: int) -> list[MagnitudeSums]:
        """How large each label's gradients are, for a round of trees."""
        assert self.rows is not None
        gradient_of = self.grower.gradients(self.rows, round_)
        seed = round_seed(self.job.settings.seed, round_)
        return self._measure(self.job.settings.subsample, seed, gradient_of, self.numbers)

    def start_trees(
        self, round_: int, labels: Sequence[int], trimmed: Sequence[Trimming], n_nodes: int
    ) -> None:
        """Begin the trees of these labels. trimmed: of all labels"""
        assert self.rows is not None
        gradient_of = self.grower.gradients(self.rows, round_)
        self.trees = []

        def start(label: int) -> GrowingRows:
            entries = self._entries(label, gradient_of(label), trimmed[label])
            return GrowingRows(self.grower.input, entries, n_nodes, self.tables)

        self.trees = self.workers.map(start, labels)

    def _linear_gradient(self, label: int) -> Gradient:
        assert self.rows is not None
        return self.rows.of_label(label, ALL_ROWS)

    def _measure(
        self,
        subsample: float,
        seed: np.uint64,
        gradient_of: Callable[[int], Gradient],
        numbers: npt.NDArray[np.int64],
    ) -> list[MagnitudeSums]:
        lags, n_labels, storage = self.train.lags, self.job.n_labels, self.workers.storage
        draw = EntryDraw(self.job.settings.trim, subsample, seed)
        self.measured = {}
        rooms = _rooms_in_files(storage, n_labels, len(lags)) if storage.spills else None

        def sums(label: int) -> MagnitudeSums:
            g, h = gradient_of(label)
            found: Magnitudes
            if rooms is None:
                found = measured_in(storage, g, h, lags, n_labels, draw, numbers)
            else:
                found = measure_into(rooms[label], g, h, lags, n_labels, subsample, seed, numbers)
            self.measured[label] = found
            return found.sums

        return self.workers.map(sums, range(n_labels))

    def _entries(self, label: int, gradient: Gradient, trimmed: Trimming) -> Entries:
        """The entries of a label whose rows were measured; what was measured is forgotten."""
        lags, n_labels = self.train.lags, self.job.n_labels
        found = self.measured.pop(label)
        return entries_in(self.workers.storage, *gradient, lags, n_labels, found, trimmed)


def _rooms_in_files(storage: RowStorage, n_labels: int, n_rows: int) -> list[MeasureRoom]:
    """Room to measure the rows of each label: files for all of them, as each costs a handle."""
    sampled = storage.empty((n_labels, n_rows), np.bool_)
    magnitudes = storage.empty((n_labels, n_rows), np.float32)
    return [MeasureRoom(*of_label) for of_label in zip(sampled, magnitudes, strict=True)]
