"""Boosting of all bits of an output code together, by the likelihood of the label chain.

A round grows one tree for each bit, n of them where plain boosting grows one for each of K labels,
and the trees still follow the gradient of what is wanted: the likelihood of label sequences.
"""

from __future__ import annotations

import math

import numpy as np

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.potentials import ForestScorer, Scorer
from spacy_treecrf.engine.boosting.rounds import (
    Callback,
    HeldOut,
    Stopping,
    figures_of,
    refuse_forbidden_labels,
    run_rounds,
)
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.boosting.span_f1 import SpanLabels
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.constraints import Masks
from spacy_treecrf.engine.codes.coded import (
    Bits,
    CodedResiduals,
    Floats,
    code_scores,
    compute_coded_residuals,
)
from spacy_treecrf.engine.codes.course import Course, Step
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import list_contexts
from spacy_treecrf.engine.trees.forest import Forest, grow_forest
from spacy_treecrf.engine.trees.tree_rounds import Gradient, grow_trees, round_seed, tree_input

# Transitions are learned faster than bits, and would explain what is the bits' to explain.
EDGE_RATE = 0.75


def damping(code: Bits) -> float:
    """The factor by which steps of bits, taken together, are shorter than each would be alone.

    Two labels that differ in d bits are moved apart by all d of them. The bound of that is d, for
    every row of two labels; a quarter of its mean is enough where trees fit but a part of the step.
    """
    ones = code.sum(axis=0, dtype=np.float64)
    n_labels = len(code)
    distance = np.sum(ones * (n_labels - ones)) / (n_labels * (n_labels - 1) / 2)
    return max(1.0, float(distance) / 4.0)


class _Rows:
    """Rows with the scores of their bits, and how fast these move."""

    def __init__(self, data: Sequences, scores: Floats) -> None:
        self.data = data
        self.scores = scores  # shape: (n_rows, n_bits)
        self.speed = np.zeros_like(scores)


class CodedBooster:
    """Training of one coded CRF, which goes on from the end of a course.

    course: Classes of its trees are bits, its edges are those of labels.
    """

    def __init__(
        self,
        data: Sequences,
        columns: Columns,
        code: Bits,
        masks: Masks,
        settings: Settings,
        workers: Workers,
        course: Course,
        held_out: Sequences | None = None,
    ) -> None:
        data = data.with_weight()
        self.columns = columns
        self.code = code
        self.masks = masks
        self.settings = settings
        self.workers = workers
        self.n_features = len(columns.counts)
        self.tree_input = tree_input(data, columns, settings.min_rows)
        self.annotated = Annotated(data, len(code), settings.order, False)
        self.n_annotated = data.n_annotated
        self.course = course
        self.edges = course.edges
        scorer = Scorer(course.base, columns.bin_values, 0)
        self.train = _Rows(data, scorer.score(data, workers)[:, 0])
        self.held_out = _Rows(held_out, scorer.score(held_out, workers)[:, 0]) if held_out else None
        for forest, step in zip(course.forests, course.steps, strict=True):
            for rows in self._sets():
                own = self._scores_of(forest, rows.data)
                rows.scores, rows.speed = step.moved(rows.scores, rows.speed, own)
        self.rate = settings.shrinkage / damping(code)
        self.spans: SpanLabels | None = None  # of the labels, for the F1 of held-out data
        self._residuals_now: CodedResiduals | None = None

    @property
    def rounds(self) -> int:
        return self.course.rounds

    @property
    def chain(self) -> Chain:
        start, trans, end = self.masks
        settings = self.settings
        return Chain(
            settings.order, self.edges[-1] + start, self.edges[:-1] + trans, end, settings.beam
        )

    @property
    def learned(self) -> Course:
        return self.course

    @property
    def finished(self) -> bool:
        return False

    @property
    def n_trees(self) -> int:
        return self.course.n_trees

    @property
    def log_likelihood(self) -> float:
        """Training log-likelihood per annotated row."""
        return self._current().log_likelihood / self.n_annotated

    def boost(self, rounds: int, callback: Callback | None = None) -> Course:
        """Go on until `rounds` rounds are done in all; with held-out data, return the best ones."""
        settings = self.settings
        if not math.isfinite(self._current().log_likelihood):
            refuse_forbidden_labels(settings.constraints)
        return run_rounds(self, rounds, Stopping(settings.patience, settings.monitor), callback)

    def learn_round(self) -> None:
        self._take(self._grow(self._current()))

    def round_log_likelihood(self) -> float:
        return self.log_likelihood

    def held_out_figures(self) -> HeldOut | None:
        if self.held_out is None:
            return None
        data = self.held_out.data
        rows = [data.rows_of(chunk) for chunk in data.chunks]
        chunks = [(r.start, r.stop) for r in rows]
        scores = code_scores(self.held_out.scores, self.code, chunks, self.workers)
        return figures_of(
            scores, data, self.chain, self.settings.predictor, self.workers, self.spans
        )

    def _current(self) -> CodedResiduals:
        if self._residuals_now is None:
            self._residuals_now = compute_coded_residuals(
                self.annotated,
                self.train.scores,
                self.code,
                self.chain,
                self.settings.max_step,
                self.workers,
            )
        return self._residuals_now

    def _grow(self, residuals: CodedResiduals) -> Forest:
        """One tree for each bit, not yet applied."""

        def gradient_of(bit: int) -> Gradient:
            return residuals.g[bit][:, None], residuals.h[bit][:, None]

        bits = range(self.code.shape[1])
        seed = round_seed(self.settings.seed, self.rounds)
        trees = grow_trees(self.tree_input, gradient_of, bits, self.settings, seed, self.workers)
        return grow_forest(trees, bits, self.rounds)

    def _take(self, forest: Forest) -> None:
        """Apply a step with its momentum; without it and shorter where the likelihood falls."""
        start = [(rows.scores, rows.speed) for rows in self._sets()]
        try:
            self.course = self._search(forest.scaled(self.rate), start)
        except KeyboardInterrupt:  # the rounds that are done stay, and nothing else
            self.edges = self.course.edges
            for rows, (scores, speed) in zip(self._sets(), start, strict=True):
                rows.scores, rows.speed = scores, speed
            self._residuals_now = None
            raise

    def _search(self, forest: Forest, start: list[tuple[Floats, Floats]]) -> Course:
        """Move along the trees as far as the likelihood rises; returns the course with the step.

        start: Scores and speed of each set of rows before the step.
        """
        before, course = self._current(), self.course
        self._residuals_now = None
        own = [self._scores_of(forest, rows.data) for rows in self._sets()]
        edge_step = np.zeros(self.edges.shape)
        if self.settings.order:
            ridge = self.settings.ridge
            edge_step = (
                EDGE_RATE * self.settings.shrinkage * before.edge_g / (before.edge_h + ridge)
            )
        step = Step(has_momentum=True, factor=1.0)
        while True:
            edge_speed = step.momentum * course.edge_speed + step.factor * edge_step
            self.edges = (course.edges + edge_speed).astype(np.float32)
            for rows, (scores, speed), added in zip(self._sets(), start, own, strict=True):
                rows.scores, rows.speed = step.moved(scores, speed, added)
            after = self._current()
            if after.log_likelihood >= before.log_likelihood or step.factor == 0.0:
                return course.after(forest, step, self.edges, edge_speed)
            self._residuals_now = None
            step = step.shorter()

    def _scores_of(self, forest: Forest, data: Sequences) -> Floats:
        """What the trees of one round add to the bits. shape: (n_rows, n_bits)"""
        n_bits = self.code.shape[1]
        scores = np.zeros((data.n_rows, 1, n_bits), np.float32)
        n_numeric = data.numeric.shape[1]
        scorer = ForestScorer(forest, n_bits, self.n_features, n_numeric, list_contexts(n_bits, 0))
        scorer.add(data, np.zeros(data.n_rows, np.uint8), scores, self.workers)
        return scores[:, 0]

    def _sets(self) -> list[_Rows]:
        return [self.train] if self.held_out is None else [self.train, self.held_out]
