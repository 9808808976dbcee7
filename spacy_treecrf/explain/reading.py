"""Scored sequences as a model reads them: rows after the labels before them, and transitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.chain.chain import Mask
from spacy_treecrf.engine.memm.label_history import turned_round
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.explain.explanation import END, START, Label, Transition
from spacy_treecrf.explain.players import Row, row_of
from spacy_treecrf.explain.score_parts import ScoreParts, with_detectors
from spacy_treecrf.models.memm.base import MEMMBase
from spacy_treecrf.models.predictor import Predictor, ScoredSequences
from spacy_treecrf.models.scored_blocks import Evidence


@dataclass(frozen=True)
class Asked:
    """Scored sequences, what was predicted for them, and how their labels are shown."""

    predictor: Predictor
    scored: ScoredSequences
    predicted: npt.NDArray[np.int32]  # shape: (n_rows,)
    names: Sequence[Label]  # labels by id
    allowed: Mask | None = None

    @property
    def data(self) -> Sequences:
        return self.scored.data

    @property
    def workers(self) -> Workers:
        return self.predictor.workers

    @cached
    def scores(self) -> npt.NDArray[np.float32]:
        return self.scored.scores

    @cached
    def evidence(self) -> Evidence | None:
        return self.scored.evidence

    def sequence_of(self, row: int) -> int:
        return int(np.searchsorted(self.data.offsets, row, side="right")) - 1


class Reading:
    """Sequences in the order in which a model reads them: some read from their ends."""

    def __init__(self, asked: Asked, parts: ScoreParts) -> None:
        self.asked = asked
        self._parts = parts
        self._backwards = self._parts.right_to_left

    @cached
    def _inputs(self) -> tuple[Sequences, npt.NDArray[np.float32]]:
        data = turned_round(self.asked.data) if self._backwards else self.asked.data
        model, workers = self.asked.predictor.model, self.asked.workers
        return with_detectors(self._parts, model, data, workers)

    @property
    def data(self) -> Sequences:
        """Rows as trees see them."""
        return self._inputs[0]

    @property
    def pushes(self) -> npt.NDArray[np.float32]:
        """What detectors push. shape: (n_rows, n_detectors)"""
        return self._inputs[1]

    def seen(self, row: int) -> tuple[int, Row]:
        """A row's number in reading order, and the row after the labels that are read before it."""
        at = self._place(row)
        previous = self._labels_before(row, self._parts.context_order)
        return at, row_of(self.data, at, previous)

    def temperature(self, row: int) -> float:
        """What a temperature curve divides the sum of a row's contributions by; 1.0 without one."""
        return 1.0 if self._temperatures is None else float(self._temperatures[row])

    @cached
    def _temperatures(self) -> npt.NDArray[np.float32] | None:
        curve, asked = self._parts.curve, self.asked
        if curve is None:
            return None
        scores = asked.predictor.model.uncurved.scores(asked.data, asked.workers)
        return curve.temperatures_of(scores, asked.data, asked.scored.chain, asked.workers)

    def _place(self, row: int) -> int:
        first, last = self._bounds(row)
        return first + last - 1 - row if self._backwards else row

    def _bounds(self, row: int) -> tuple[int, int]:
        sequence = self.asked.sequence_of(row)
        first, last = self.asked.data.offsets[sequence : sequence + 2].tolist()
        return first, last

    def _labels_before(self, row: int, n: int) -> tuple[int, ...]:
        """Predicted labels that are read before a row, the nearest first; K beyond the sequence."""
        first, last = self._bounds(row)
        step = 1 if self._backwards else -1
        places = [row + step * (lag + 1) for lag in range(n)]
        beyond = len(self.asked.names)
        predicted = self.asked.predicted
        return tuple(int(predicted[p]) if first <= p < last else beyond for p in places)

    def transitions(self, row: int, label: int) -> tuple[Transition, Transition]:
        """What the labels before and after a row add, given that the row has this label."""
        first, last = self._bounds(row)
        start, trans, end = self._parts.masks
        edges, names, predicted = self._parts.edges, self.asked.names, self.asked.predicted
        n_labels, constrained = len(names), self._parts.order > 0
        ahead = self._of_later_scores(row, label)
        if row == first:
            left = Transition(START, float(edges[n_labels, label]), start[label] == -np.inf)
        else:
            before = int(predicted[row - 1])
            forbidden = trans[before, label] == -np.inf
            left = Transition(names[before], float(edges[before, label]), bool(forbidden))
        if row == last - 1:
            right = Transition(END, 0.0, end[label] == -np.inf)
        else:
            after = int(predicted[row + 1])
            forbidden = trans[label, after] == -np.inf
            right = Transition(names[after], float(edges[label, after]), bool(forbidden))
        left = replace(left, forbidden=constrained and bool(left.forbidden))
        right = replace(right, forbidden=constrained and bool(right.forbidden))
        if self._backwards:
            return replace(left, value=left.value + ahead), right
        return left, replace(right, value=right.value + ahead)

    def _of_later_scores(self, row: int, label: int) -> float:
        """What a label adds to the scores of predicted labels that are read after it.

        It is what they are after this label, minus their mean over all labels in its place. Only
        scores that depend on previous labels differ.
        """
        scores, order = self._joint_scores, self._parts.order
        if scores is None or scores.shape[1] == 1:
            return 0.0
        first, last = self._bounds(row)
        at, n_labels = self._place(row), len(self.asked.names)
        labels = self.asked.predicted[first:last]
        labels = (labels[::-1] if self._backwards else labels).astype(np.int64)
        t = at - first
        total = 0.0
        for later in range(t + 1, min(t + order, len(labels) - 1) + 1):
            previous = labels[max(0, later - order) : later][::-1]  # the nearest first
            place = later - t - 1
            packed = n_labels ** np.arange(len(previous))
            rest = int(np.delete(previous * packed, place).sum())
            choices = scores[first + later, rest + packed[place] * np.arange(n_labels)]
            own = choices[:, labels[later]].astype(np.float64)
            total += float(own[label] - own.mean())
        return total

    @cached
    def _joint_scores(self) -> npt.NDArray[np.float32] | None:
        """Scores of rows in reading order after every context; None where a beam search decides."""
        if self.asked.predictor.model.searches:
            return None
        if not self._backwards:
            return self.asked.scores
        model = self.asked.predictor.model
        assert isinstance(model, MEMMBase)  # no other model reads backwards
        data = turned_round(self.asked.data)
        seen, extra = model.decoder.see(data, self.asked.workers)
        return model.decoder.scorer.joint(seen, extra, self.asked.workers)
