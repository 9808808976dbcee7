"""Boosting of all bits of an output code together, by the likelihood of the label chain.

A round grows one tree for each bit, n of them where plain boosting grows one for each of K labels,
and the trees still follow the gradient of what is wanted: the likelihood of label sequences.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine import chain as chains
from spacy_treecrf.engine.boosting import Callback, RoundInfo, predict_labels
from spacy_treecrf.engine.chain import Chain
from spacy_treecrf.engine.coded import (
    Bits,
    CodedResiduals,
    Floats,
    code_scores,
    compute_coded_residuals,
)
from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.engine.constraints import Masks
from spacy_treecrf.engine.contexts import list_contexts
from spacy_treecrf.engine.entries import collect
from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.engine.forest import Forest, grow_forest
from spacy_treecrf.engine.grower import Limits, Tree, TreeInput, grow_tree
from spacy_treecrf.engine.potentials import ForestScorer, Potentials, Scorer
from spacy_treecrf.engine.residuals import Annotated, allowed_labels
from spacy_treecrf.engine.sampling import mix
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.settings import Settings
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.tree_rounds import LEAST_GAIN

# Share of the last step that goes on in the next one (heavy ball): bits that agree for rounds gain
# speed, and those that swing lose it.
MOMENTUM = 0.5
LEAST_FACTOR = 2.0**-6
# Transitions are learned faster than bits, and would explain what is the bits' to explain.
EDGE_RATE = 0.75

_NO_CONTEXTS = list_contexts(1, 0)


def damping(code: Bits) -> float:
    """By how much the steps of bits, taken together, are shorter than each would be alone.

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
    """Training of one coded CRF. potentials: classes of trees are bits, edges those of labels."""

    def __init__(
        self,
        data: Sequences,
        columns: Columns,
        code: Bits,
        masks: Masks,
        settings: Settings,
        workers: Workers,
        potentials: Potentials,
        held_out: Sequences | None = None,
    ) -> None:
        weighty = np.add.reduceat(data.weights, data.offsets[:-1]) > 0
        if not weighty.any():
            raise ValueError("treecrf: every sequence has weight 0; give at least one a weight")
        if not weighty.all():
            data = data.subset(np.flatnonzero(weighty))
        self.columns = columns
        self.code = code
        self.masks = masks
        self.settings = settings
        self.workers = workers
        self.n_features = len(columns.counts)
        self.lags = np.zeros(data.n_rows, np.uint8)  # a bit's trees see no labels before
        self.tree_input = TreeInput(
            data.codes,
            np.ascontiguousarray(data.codes.T),
            data.numeric,
            int(np.searchsorted(-columns.counts, -settings.min_rows, side="right")),
            columns.slot_range,
            columns.column_of,
            len(columns.column_names),
            self.lags,
            _NO_CONTEXTS.first,
            _NO_CONTEXTS.labels,
            1,
        )
        self.annotated = Annotated(data, len(code), settings.order, False)
        self.n_annotated = max(1, int((data.labels != UNKNOWN_LABEL).sum()))
        self._start = potentials
        self.edges = potentials.edges
        self._edge_speed = np.zeros(self.edges.shape)
        self.rounds = potentials.rounds
        # of each round here: its trees, their factor so far, and what the next round adds to it
        self._forests: list[Forest] = []
        self._factors: list[float] = []
        self._speeds: list[float] = []
        scorer = Scorer(potentials, columns.bin_values, 0)
        self.train = _Rows(data, scorer.score(data, workers)[:, 0])
        self.held_out = _Rows(held_out, scorer.score(held_out, workers)[:, 0]) if held_out else None
        self.rate = settings.shrinkage / damping(code)
        self._residuals_now: CodedResiduals | None = None

    @property
    def potentials(self) -> Potentials:
        forests = [f.scaled(c) for f, c in zip(self._forests, self._factors, strict=True)]
        return replace(
            self._start,
            edges=to_grid(self.edges),
            forests=(*self._start.forests, *forests),
            rounds=self.rounds,
        )

    @property
    def chain(self) -> Chain:
        start, trans, end = self.masks
        settings = self.settings
        return Chain(
            settings.order, self.edges[-1] + start, self.edges[:-1] + trans, end, settings.beam
        )

    @property
    def log_likelihood(self) -> float:
        """Of the training data now, per annotated row."""
        return self._current().log_likelihood / self.n_annotated

    def boost(self, rounds: int, callback: Callback | None = None) -> Potentials:
        """Go on until `rounds` rounds are done in all; with held-out data, return the best ones."""
        began = time.perf_counter()
        best, best_rounds = self.potentials, self.rounds
        best_value = self._value(self._info(began)) if self.held_out else 0.0
        if not math.isfinite(self._current().log_likelihood):
            raise ValueError(
                f"treecrf: constraints={self.settings.constraints!r} forbid labels of the training "
                "data; correct the labels, or use constraints='observed' or 'none'"
            )
        patience = self.settings.patience
        while self.rounds < rounds:
            self._take(self._grow(self._current()))
            self.rounds += 1
            if callback or self.held_out:
                info = self._info(began)
                if callback:
                    callback(info)
                if self.held_out:
                    if self._value(info) > best_value:
                        best, best_rounds = self.potentials, self.rounds
                        best_value = self._value(info)
                    elif patience and self.rounds - best_rounds >= patience:
                        break
        return best if self.held_out else self.potentials

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
        settings = self.settings
        n_bits = self.code.shape[1]
        round_seed = np.uint64(mix(np.uint64(settings.seed), np.uint64(self.rounds)))
        limits = Limits(
            settings.leaves,
            settings.depth,
            settings.min_rows,
            settings.penalty,
            max(settings.min_gain, LEAST_GAIN),
            settings.colsample,
            settings.node_colsample,
        )

        def grow(j: int) -> Tree:
            entries = collect(
                residuals.g[j][:, None],
                residuals.h[j][:, None],
                self.lags,
                1,
                settings.trim,
                settings.subsample,
                round_seed,
            )
            seed = np.uint64(mix(round_seed, np.uint64(j)))
            tree: Tree = grow_tree(self.tree_input, entries, limits, seed)
            return tree

        trees = self.workers.map(grow, range(n_bits))
        return grow_forest(trees, range(n_bits), self.rounds)

    def _take(self, forest: Forest) -> None:
        """Apply a step with its momentum; without it and shorter where the likelihood falls."""
        start_edges, start_scores = self.edges, [rows.scores for rows in self._sets()]
        try:
            self._search(forest, start_edges, start_scores)
        except KeyboardInterrupt:  # the rounds that are done stay, and nothing else
            self.edges = start_edges
            for rows, scores in zip(self._sets(), start_scores, strict=True):
                rows.scores = scores
            self._residuals_now = None
            raise

    def _search(self, forest: Forest, start_edges: Floats, start_scores: list[Floats]) -> None:
        before = self._current()
        self._residuals_now = None
        forest = forest.scaled(self.rate)
        step = {id(rows): self._scores_of(forest, rows.data) for rows in self._sets()}
        edge_step = np.zeros(self.edges.shape)
        if self.settings.order:
            ridge = self.settings.ridge
            edge_step = (
                EDGE_RATE * self.settings.shrinkage * before.edge_g / (before.edge_h + ridge)
            )
        momentum, factor = MOMENTUM, 1.0
        while True:
            edge_speed = momentum * self._edge_speed + factor * edge_step
            self.edges = (start_edges + edge_speed).astype(np.float32)
            for rows, scores in zip(self._sets(), start_scores, strict=True):
                change = np.float32(momentum) * rows.speed + np.float32(factor) * step[id(rows)]
                rows.scores = scores + change
            after = self._current()
            if after.log_likelihood >= before.log_likelihood or factor == 0.0:
                break
            self._residuals_now = None
            if momentum:
                momentum = 0.0
            else:
                factor = factor / 2.0 if factor > LEAST_FACTOR else 0.0
        self._edge_speed = edge_speed
        for rows, scores in zip(self._sets(), start_scores, strict=True):
            rows.speed = rows.scores - scores
        self._speeds = [momentum * speed for speed in self._speeds] + [factor]
        self._factors = [c + s for c, s in zip([*self._factors, 0.0], self._speeds, strict=True)]
        self._forests.append(forest)

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

    def _info(self, began: float) -> RoundInfo:
        info = RoundInfo(
            self.rounds,
            self.log_likelihood,
            time.perf_counter() - began,
            self._start.n_trees + sum(forest.n_trees for forest in self._forests),
        )
        if self.held_out is None:
            return info
        data = self.held_out.data
        rows = [data.rows_of(chunk) for chunk in data.chunks]
        chunks = [(r.start, r.stop) for r in rows]
        scores = code_scores(self.held_out.scores, self.code, chunks, self.workers)
        allowed = allowed_labels(data.labels, len(self.code))
        log_p = chains.log_probability_of(scores, data.offsets, self.chain, allowed)
        # Hard constraints may forbid a held-out annotation; no round can change that.
        log_p[np.isneginf(log_p)] = 0.0
        labels = predict_labels(scores, data, self.chain, self.settings.predictor, self.workers)
        known: npt.NDArray[np.bool_] = data.labels != UNKNOWN_LABEL
        n = max(1, int(known.sum()))
        return replace(
            info,
            held_out_log_likelihood=float(log_p.sum()) / n,
            held_out_accuracy=float((labels == data.labels)[known].sum()) / n,
        )

    def _value(self, info: RoundInfo) -> float:
        by_accuracy = self.settings.monitor == "accuracy"
        value = info.held_out_accuracy if by_accuracy else info.held_out_log_likelihood
        assert value is not None
        return value
