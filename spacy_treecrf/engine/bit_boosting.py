"""Boosting of one bit of an output code: a CRF of two states, one tree for each round.

Two labels share one score, the log-odds of bit 1, so a round costs one tree; bits share the encoded
columns and nothing else, so they can be trained side by side, each on its own thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.binary import bit_residuals
from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.engine.contexts import list_contexts
from spacy_treecrf.engine.entries import collect
from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.engine.forest import Forest, empty_forest, grow_forest, join_forests
from spacy_treecrf.engine.grower import Limits, TreeInput, grow_tree
from spacy_treecrf.engine.linear import (
    LinearProblem,
    LinearWeights,
    linear_scores,
    solve_linear_round,
)
from spacy_treecrf.engine.potentials import ForestScorer
from spacy_treecrf.engine.sampling import mix
from spacy_treecrf.engine.scoring import add_tree_scores_by_traversal
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.settings import Settings
from spacy_treecrf.engine.threads import Workers

Floats = npt.NDArray[np.float32]

LEAST_GAIN = 1e-9  # what rounding may fake
# A step that lowered the likelihood is halved down to this share of it, and then dropped.
LEAST_FACTOR = 2.0**-6
# Edges meet the two edges beside them (theorem 4.2 of Chen 2015 without its messages).
EDGE_GAMMA = 6.0

_NO_CONTEXTS = list_contexts(1, 0)
_ALONE = Workers(1)


@dataclass(frozen=True)
class Inputs:
    """Rows in the forms that training needs; the same for every bit."""

    data: Sequences
    trees: TreeInput
    bin_values: npt.NDArray[np.float64]  # shape: (n_numeric, 256)
    n_features: int

    @classmethod
    def of(
        cls,
        data: Sequences,
        columns: Columns,
        min_rows: int,
    ) -> Inputs:
        lags = np.zeros(data.n_rows, np.uint8)
        n_tested = int(np.searchsorted(-columns.counts, -min_rows, side="right"))
        trees = TreeInput(
            data.codes,
            np.ascontiguousarray(data.codes.T),
            data.numeric,
            n_tested,
            columns.slot_range,
            columns.column_of,
            len(columns.column_names),
            lags,
            _NO_CONTEXTS.first,
            _NO_CONTEXTS.labels,
            1,
        )
        return cls(data, trees, columns.bin_values, len(columns.counts))

    def with_numeric(
        self, numeric: npt.NDArray[np.uint8], bin_values: npt.NDArray[np.float64]
    ) -> Inputs:
        """The same rows with other numeric columns."""
        old = self.data
        data = Sequences(old.offsets, old.codes, numeric, old.labels, old.weights)
        trees = self.trees._replace(numeric=numeric)
        return Inputs(data, trees, bin_values, self.n_features)


def limits_of(settings: Settings) -> Limits:
    """How far a tree grows."""
    return Limits(
        settings.leaves,
        settings.depth,
        settings.min_rows,
        settings.penalty,
        max(settings.min_gain, LEAST_GAIN),
        settings.colsample,
        settings.node_colsample,
    )


def tree_scores(
    forest: Forest, n_bits: int, n_features: int, data: Sequences, workers: Workers
) -> Floats:
    """What the trees add to their bits at every row. shape: (n_rows, n_bits)"""
    scores = np.zeros((data.n_rows, 1, n_bits), np.float32)
    contexts = list_contexts(n_bits, 0)
    scorer = ForestScorer(forest, n_bits, n_features, data.numeric.shape[1], contexts)
    scorer.add(data, np.zeros(data.n_rows, np.uint8), scores, workers)
    return scores[:, 0]


@dataclass(frozen=True)
class Bit:
    """What is learned of one bit. Scores are the log-odds of 1."""

    linear: LinearWeights  # one column: (n_features, 1) and (n_numeric, 1)
    forest: Forest  # all of class 0
    edges: Floats  # shape: (3, 2)


class _Scored:
    """Rows with their scores under the bit so far."""

    def __init__(self, data: Sequences, n_features: int) -> None:
        self.data = data
        self.n_features = n_features
        self.lags = np.zeros(data.n_rows, np.uint8)
        self.linear = np.zeros((data.n_rows, 1), np.float32)
        self.previous_linear = self.linear
        self.scores = np.zeros((data.n_rows, 1, 1), np.float32)

    def add_forest(self, forest: Forest) -> None:
        """By traversal: for one tree, an index of its tests is not worth making."""
        add_tree_scores_by_traversal(
            self.data.codes,
            self.data.numeric,
            0,
            self.data.n_rows,
            self.lags,
            _NO_CONTEXTS.first,
            _NO_CONTEXTS.labels,
            self.n_features,
            forest.tree_first,
            forest.tree_class,
            forest.kind,
            forest.feature,
            forest.threshold,
            forest.left,
            forest.right,
            forest.value,
            self.scores,
        )

    def set_linear(self, scores: Floats) -> None:
        self.scores += (scores - self.linear)[:, None, :]
        self.previous_linear, self.linear = self.linear, scores


class BitBooster:
    """Training of one bit.

    bits: 0, 1, or -1 where not annotated. settings: those of a boosted CRF.
    """

    def __init__(
        self,
        inputs: Inputs,
        bits: npt.NDArray[np.int8],
        settings: Settings,
        seed: int,
    ) -> None:
        self.inputs = inputs
        self.bits = bits
        self.settings = settings
        self.seed = np.uint64(seed)
        self.train = _Scored(inputs.data, inputs.n_features)
        n_numeric = len(inputs.bin_values)
        self.linear = self.previous = LinearWeights.zeros(inputs.n_features, n_numeric, 1)
        self.forests: list[Forest] = []
        self.edges = np.zeros((3, 2), np.float32)
        self.rounds = 0
        self._g = np.zeros(inputs.data.n_rows, np.float32)
        self._h = np.zeros(inputs.data.n_rows, np.float32)
        self._observed = np.zeros((3, 2))
        self._expected = np.zeros((3, 2))
        self.log_likelihood = self._residuals()

    @property
    def bit(self) -> Bit:
        return Bit(self.linear, join_forests(self.forests), self.edges)

    def boost(self, rounds: int) -> None:
        """Go on until there are `rounds` rounds."""
        while self.rounds < rounds:
            if self.rounds < self.settings.linear_rounds:
                self._take(self._fit_linear(), empty_forest(), 1.0)
            else:
                self._take(None, self._grow(), self.settings.shrinkage)
            self.rounds += 1

    def _residuals(self) -> float:
        data = self.inputs.data
        self._observed[:] = 0.0
        self._expected[:] = 0.0
        value: float = bit_residuals(
            self.train.scores.reshape(-1),
            data.offsets,
            self.edges,
            self.bits,
            data.weights,
            self.settings.max_step,
            self._g,
            self._h,
            self._observed,
            self._expected,
        )
        return value

    def _fit_linear(self) -> LinearWeights:
        train = self.train
        problem = LinearProblem(
            train.data,
            self.inputs.bin_values,
            self._g[None, :, None],
            self._h[None, :, None],
            train.lags,
            self.linear,
            self.previous,
            train.linear - train.previous_linear,
        )
        return solve_linear_round(problem, self.settings.ridge, self.settings.trim, _ALONE)

    def _grow(self) -> Forest:
        settings = self.settings
        seed = np.uint64(mix(self.seed, np.uint64(self.rounds)))
        entries = collect(
            self._g[:, None],
            self._h[:, None],
            self.train.lags,
            1,
            settings.trim,
            settings.subsample,
            seed,
        )
        tree = grow_tree(self.inputs.trees, entries, limits_of(settings), seed)
        return grow_forest([tree], [0], 0)

    def _edge_step(self, rate: float) -> npt.NDArray[np.float64]:
        """Second order, with sum_t p_t (1 - p_t) <= P (1 - P / n) for P = sum_t p_t."""
        if self.settings.order == 0:
            return np.zeros((3, 2))
        gradient = self._observed - self._expected
        totals = np.empty((3, 1))
        totals[:2] = max(self._expected[:2].sum(), 1.0)
        totals[2] = self._expected[2].sum()
        bound = EDGE_GAMMA * self._expected * (1.0 - self._expected / totals)
        bound = np.maximum(bound, np.abs(gradient) / self.settings.max_step)
        step: npt.NDArray[np.float64] = rate * gradient / (bound + self.settings.ridge)
        return step

    def _take(self, linear: LinearWeights | None, forest: Forest, rate: float) -> None:
        """Apply a step, cut down until it raises the likelihood."""
        start_edges, start_linear = self.edges, self.linear
        train = self.train
        start_scores = train.linear, train.previous_linear
        edge_step = self._edge_step(rate)
        factor = 1.0
        while True:
            step = forest.scaled(rate * factor)
            self.edges = to_grid(start_edges + edge_step * factor)
            train.add_forest(step)
            if linear is not None:
                self.linear = start_linear.toward(linear, factor) if factor < 1.0 else linear
                train.set_linear(
                    linear_scores(train.data, self.linear, self.inputs.bin_values, _ALONE)
                )
            value = self._residuals()
            if value >= self.log_likelihood or factor == 0.0:
                break
            # All values lie on the grid, so that nothing of the step remains.
            train.add_forest(step.scaled(-1.0))
            if linear is not None:
                train.set_linear(start_scores[0])
                train.linear, train.previous_linear = start_scores
            factor = factor / 2.0 if factor > LEAST_FACTOR else 0.0
        self.log_likelihood = value
        if linear is not None:
            self.previous = start_linear
        if step.n_trees:
            self.forests.append(step)
