"""What boosting with future features works on: settings, data sets, a detector's likelihood."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.future.detectors import log_nones, thermometer
from spacy_treecrf.engine.future.local_steps import log_likelihood
from spacy_treecrf.engine.future.noisy_or import detector_log_likelihood
from spacy_treecrf.engine.memm.label_history import LabelHistory
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.tree_rounds import TreeSettings

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


class FutureSettings(TreeSettings, Protocol):
    """Settings of boosting with future features."""

    @property
    def step(self) -> str: ...
    @property
    def max_step(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def patience(self) -> int: ...
    @property
    def max_alpha(self) -> float: ...
    @property
    def max_beta(self) -> float: ...
    @property
    def max_eta(self) -> float: ...
    @property
    def detector_start(self) -> float: ...
    @property
    def detector_rounds(self) -> int: ...


class Part:
    """A data set: its rows as detectors and as top-level trees see them, and its scores so far."""

    def __init__(self, data: Sequences, history: LabelHistory, workers: Workers) -> None:
        self.data = data
        self.rows = history.rows(data)
        self.workers = workers
        known = data.labels != UNKNOWN_LABEL
        self.weights = np.where(known, data.weights, 0.0).astype(np.float32)
        self.n_annotated = max(1, int((self.weights > 0).sum()))
        self.labels = np.maximum(data.labels, 0)
        self._labelled = replace(data, labels=self.labels)
        self.scores = np.zeros((data.n_rows, history.n_labels), np.float32)
        self.no_lags = np.zeros(data.n_rows, np.uint8)

    def log_likelihood(
        self, direction: Floats | None = None, step: float = 0.0, scores: Floats | None = None
    ) -> float:
        scores = self.scores if scores is None else scores
        direction = scores if direction is None else direction
        return log_likelihood(self._labelled, self.weights, scores, direction, step, self.workers)

    def accuracy(self, scores: Floats) -> float:
        """Accuracy of the best labels, each after the annotated labels before it."""
        right = (scores.argmax(axis=1) == self.data.labels) & (self.weights > 0)
        return float(right.sum()) / self.n_annotated

    def add_column(self, q: Doubles) -> None:
        column = thermometer(q)[:, None]
        self.rows = replace(self.rows, numeric=np.concatenate([self.rows.numeric, column], axis=1))


@dataclass(frozen=True)
class Field:
    """The likelihood of a part as a function of one detector."""

    part: Part
    bag: int
    workers: Workers
    own: Doubles  # score of the detector's label without the detector
    others: Doubles  # log-sum-exp of the other labels' scores
    is_own: npt.NDArray[np.bool_]

    def slopes(self, scores: Doubles, eta: float) -> Doubles:
        """eta (I(y_t = k) - P(y_t = k)) (1 - p_t) of every row: proposition 5.2 without p_tj."""
        nones = log_nones(scores, self.part.data, self.bag, self.workers)
        score = self.own - eta * np.expm1(nones)
        p = 1.0 / (1.0 + np.exp(np.clip(self.others - score, -500.0, 500.0)))
        slopes: Doubles = eta * self.part.weights * (self.is_own - p) * np.exp(nones)
        return slopes

    def value(self, scores: Doubles, eta: float) -> float:
        """scores: G of every row."""
        data = self.part.data
        nones = log_nones(scores, data, self.bag, self.workers)

        def of_chunk(chunk: tuple[int, int]) -> float:
            rows = data.rows_of(chunk)
            total: float = detector_log_likelihood(
                nones,
                self.own,
                self.others,
                self.is_own,
                self.part.weights,
                eta,
                rows.start,
                rows.stop,
            )
            return total

        return float(sum(self.workers.map(of_chunk, data.chunks)))
