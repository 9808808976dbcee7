"""Boosting on rows that workers have: the driver's side of a round.

The logic of rounds is that of training on one machine. Sums over rows come from the workers, and
are exact; so what is learned does not depend on who has which rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from spacy_treecrf.dask.cluster_rows import Encoding, PlacedRows
from spacy_treecrf.dask.crew import Traffic, WorkersLost
from spacy_treecrf.dask.growing_together import Grown, groups_of
from spacy_treecrf.dask.shard import Job, ShardTotals
from spacy_treecrf.engine.boosting.annotation import AnnotationTotals
from spacy_treecrf.engine.boosting.boosting import RoundBooster
from spacy_treecrf.engine.boosting.linear import Direction, LinearWeights, best_weights
from spacy_treecrf.engine.boosting.potentials import Potentials, Update
from spacy_treecrf.engine.boosting.residuals import (
    Gradient,
    Residuals,
    ResidualSums,
    RowResiduals,
    joined_residuals,
)
from spacy_treecrf.engine.boosting.rounds import HeldOut, HeldOutCounts
from spacy_treecrf.engine.boosting.span_f1 import SpanCounts
from spacy_treecrf.engine.exact_sums import exact_total
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.entries import MagnitudeSums, Trimming, trimming
from spacy_treecrf.engine.trees.forest import Forest, grow_forest
from spacy_treecrf.engine.trees.growing_tree import Tree

# Labels whose trees grow at the same time: as many as have so many entries on a worker, and no
# more than these, because each tree has rooms for its histograms, and files where rows are spilled.
BATCH_ENTRIES = 2**23
BATCH_LABELS = 64

TRY_AGAIN = 20  # rounds after which trees are taken for no chains

Result = TypeVar("Result")


class ClusterBooster(RoundBooster):
    """Training on rows of a cluster. `traffic` has what travelled, for each round."""

    def __init__(
        self, job: Job, rows: PlacedRows, encoding: Encoding, potentials: Potentials
    ) -> None:
        super().__init__(job.n_labels, job.masks, job.settings, potentials)
        self.job, self.rows, self.crew = job, rows, rows.crew
        self.encoding = encoding
        self.traffic: list[Traffic] = []
        self.totals: AnnotationTotals | None = None
        self.workers = Workers(1)
        # Whether splitting ahead saves no exchanges, because trees are chains of splits.
        self._is_chain = False

    def start(self) -> None:
        """Let the workers score their rows."""
        self._whatever_happens(self._begin)

    def learn_round(self) -> None:
        before, self.crew.traffic = self.potentials, Traffic()

        def learn() -> None:
            self.potentials = before
            if self.rows.has_joined():
                self._residuals_now = None
                self.rows.settle(self.encoding)
                self._begin()
            RoundBooster.learn_round(self)

        self._whatever_happens(learn)
        self.crew.finished_round()
        self.traffic.append(self.crew.traffic)

    def held_out_figures(self) -> HeldOut | None:
        if not self.rows.held_out:
            return None
        counts = self._whatever_happens(
            lambda: self.crew.each("count_held_out", self.potentials.edges)
        )
        return _added([each for each in counts if each is not None]).figures()

    def _current(self) -> Residuals:
        if self._residuals_now is None:
            self._residuals_now = self._whatever_happens(self._residuals)
        return self._residuals_now

    def _whatever_happens(self, work: Callable[[], Result]) -> Result:
        """What the work returns; where workers are lost, it is done again from the model so far."""
        before = self.potentials
        while True:
            try:
                return work()
            except WorkersLost:
                self.potentials, self._residuals_now = before, None
                self._recover()

    def _recover(self) -> None:
        while True:
            try:
                self.rows.settle(self.encoding)
                return self._begin()
            except WorkersLost:
                continue

    def _begin(self) -> None:
        shared = self.crew.share(self.job), self.crew.share(self.potentials)
        totals: list[ShardTotals] = self.crew.each("begin", *shared)
        annotations = zip(*(each.annotation for each in totals), strict=True)
        counts, starts, inner, n_rows = annotations
        self.totals = AnnotationTotals(np.sum(counts, axis=0), sum(starts), sum(inner), sum(n_rows))
        self.n_annotated = max(1, sum(each.n_annotated for each in totals))

    def _residuals(self) -> Residuals:
        assert self.totals is not None
        bound = self._bound()
        found: list[ResidualSums] = self.crew.each("residuals", self.potentials.edges, bound)
        sums = ResidualSums(*(np.concatenate(terms) for terms in zip(*found, strict=True)))
        rows = RowResiduals(_elsewhere, np.zeros((0, 0, 0), np.float32), sums)
        return joined_residuals(rows, self.totals, bound)

    def _move(self, back: Update | None, step: Update) -> None:
        self.crew.each("move", back is not None, self.crew.share(step))

    def _forget_linear(self) -> None:
        self.crew.each("forget_linear")

    def _along_conjugate(
        self, residuals: Residuals, forest: Forest, edges: npt.NDArray[np.float64]
    ) -> Update:
        raise ValueError(
            "treecrf: step='conjugate' is not for clusters; use 'newton' or 'gradient'"
        )

    def _fit_linear(self, residuals: Residuals) -> LinearWeights:
        trimmed = self._trimmed(self.crew.each("measure_linear"))
        crew = self.crew
        n_owners = len(crew.members)
        owned = [list(range(owner, self.n_labels, n_owners)) for owner in range(n_owners)]
        crew.each("sum_up_linear", n_owners, trimmed)
        found = crew.exchange(None, "own_linear", lambda owner: (owner, owned[owner], trimmed))
        steps: dict[int, Any] = {}
        for labels, of_labels in zip(owned, found, strict=True):
            steps.update(zip(labels, of_labels, strict=True))
        direction = Direction(*zip(*(steps[k] for k in range(self.n_labels)), strict=True))
        terms = crew.each("bound_linear", crew.share(direction))
        bounds = exact_total(np.concatenate(terms))
        now = self.potentials
        ridge = self.settings.ridge
        return best_weights(now.linear, now.previous_linear, direction, bounds, ridge, self.workers)

    def _trimmed(self, found: Sequence[Sequence[MagnitudeSums]]) -> list[Trimming]:
        """How the rows of each label are trimmed and scaled, from what workers measured."""
        return [trimming(total, self.settings.trim) for total in _totals(found)]

    def _grow(self, residuals: Residuals, round_: int) -> Forest:
        measured = self.crew.each("measure_trees", round_)
        trimmed = self._trimmed(measured)
        n_entries = [
            int(total.rows[each.cut :].sum())
            for total, each in zip(_totals(measured), trimmed, strict=True)
        ]
        trees: list[Tree] = []
        for labels in batches(n_entries, BATCH_ENTRIES * len(self.crew.members)):
            trees += self._grow_together(round_, labels, trimmed)
        return grow_forest(trees, range(self.n_labels), round_)

    def _grow_together(
        self, round_: int, labels: Sequence[int], trimmed: Sequence[Trimming]
    ) -> list[Tree]:
        """The trees of some labels, grown in step by all workers."""
        crew = self.crew
        careful = self._is_chain and round_ % TRY_AGAIN > 0
        n_owners = len(crew.members)
        n_groups = groups_of(len(labels), n_owners, crew.most_threads())
        found: list[Grown] = crew.together(
            "grow", round_, labels, trimmed, n_owners, n_groups, careful
        )
        if not careful:
            self._is_chain = found[0].n_exchanges > self.settings.leaves // 2
        crew.traffic.worker_bytes += sum(grown.n_bytes for grown in found)
        crew.traffic.exchanges += found[0].n_exchanges
        return found[0].trees


def batches(n_entries: Sequence[int], most: int) -> list[list[int]]:
    """Labels in order, cut where they are too many or have more entries together than is wanted."""
    found: list[list[int]] = []
    total = 0
    for label, n in enumerate(n_entries):
        if not found or total + n > most or len(found[-1]) == BATCH_LABELS:
            found.append([])
            total = 0
        found[-1].append(label)
        total += n
    return found


def _totals(found: Sequence[Sequence[MagnitudeSums]]) -> list[MagnitudeSums]:
    """What all workers measured of each label."""
    return [
        MagnitudeSums(*(np.sum(arrays, axis=0) for arrays in zip(*of_label, strict=True)))
        for of_label in zip(*found, strict=True)
    ]


def _added(counts: Sequence[HeldOutCounts]) -> HeldOutCounts:
    spans = [each.spans for each in counts if each.spans is not None]
    return HeldOutCounts(
        np.concatenate([each.log_likelihood for each in counts]),
        sum(each.n_annotated for each in counts),
        sum(each.n_right for each in counts),
        SpanCounts(*map(sum, zip(*spans, strict=True))) if spans else None,
    )


def _elsewhere(label: int, rows: slice) -> Gradient:
    raise AssertionError("the gradients of rows stay on their workers")
