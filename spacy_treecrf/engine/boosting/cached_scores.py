"""Scores of a data set under the potentials learned so far, kept from round to round.

A round then costs the evaluation of its own trees, never that of all trees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.linear import (
    LinearScorer,
    LinearWeights,
    ScoresOfRows,
    linear_scores,
)
from spacy_treecrf.engine.boosting.potentials import ForestScorer, Potentials, Update
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.missing_cells import missing_cells
from spacy_treecrf.engine.encoding.missing_methods import in_trees
from spacy_treecrf.engine.sequences import BLOCK_ROWS, Sequences, cut_rows
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import count_lags, list_contexts
from spacy_treecrf.engine.trees.forest import Forest

# Scores of the weights before the last linear round are kept up to this size; larger ones are made
# anew in each linear round, some rows at a time.
MAX_KEPT_BYTES = 2**26


@dataclass
class _LinearPart:
    """Linear weights, and the scores of all rows under them while these are needed."""

    weights: LinearWeights
    scores: npt.NDArray[np.float32] | None = None  # shape: (n_rows, n_labels)


class CachedScores:
    """A data set with its scores under the potentials so far, updated round by round."""

    def __init__(
        self,
        data: Sequences,
        columns: Columns,
        context_order: int,
        potentials: Potentials,
        workers: Workers,
    ) -> None:
        self.data = data
        self.columns = columns
        self.workers = workers
        self.n_labels = potentials.edges.shape[1]
        self.contexts = list_contexts(self.n_labels, context_order)
        self.lags = count_lags(data.offsets, context_order)
        self.incomplete = in_trees(columns.missing, columns.map)
        # shape: (n_rows, n_columns + n_numeric); None where nothing is missing, or where the trees
        # have nothing to do with missing values
        self.missing = (
            missing_cells(data, columns.map, workers.storage) if self.incomplete else None
        )
        self._keeps_previous = 4 * data.n_rows * self.n_labels <= MAX_KEPT_BYTES
        self._linear = _LinearPart(potentials.linear)
        self._previous = _LinearPart(potentials.previous_linear)
        n_contexts = self.n_labels**context_order
        # Scores without contexts and trees are those of the weights, and share their memory.
        self._all_linear = n_contexts == 1 and not potentials.n_trees
        self.scores = self.linear[:, None, :]  # shape: (n_rows, n_contexts, n_labels)
        if not self._all_linear:
            self.scores = workers.storage.repeated(self.scores, n_contexts)
            self._add_to(self.scores, potentials.forest)

    @property
    def linear(self) -> npt.NDArray[np.float32]:
        """Scores of the linear weights alone. shape: (n_rows, n_labels)"""
        return self._scores_of(self._linear)

    @property
    def previous_linear(self) -> ScoresOfRows:
        """Scores of the weights before the last linear round."""
        if self._keeps_previous:
            return self._scores_of(self._previous).__getitem__
        scorer = LinearScorer(self._previous.weights, self.columns.bin_values)
        return lambda rows: scorer.score(self.data, self.workers, rows)

    def apply(self, update: Update) -> None:
        """Bring the scores up to date with one more round."""
        if update.linear:
            self._move_linear(_LinearPart(update.linear))
        else:
            self.forget_linear()
            self._all_linear = False
        self._add_to(self.scores, update.scored)

    def forget_linear(self) -> None:
        """Free the linear parts, where rounds of trees follow; who asks has them scored again."""
        self._linear.scores = self._previous.scores = None

    def revert(self, update: Update) -> None:
        """Take back the last update; values lie on a grid, so that nothing of it remains."""
        self._add_to(self.scores, update.scored.scaled(-1.0))
        if update.linear:
            self._move_linear(self._previous)

    def of_trees(self, forest: Forest) -> npt.NDArray[np.float32]:
        """Scores that these trees alone would give. shape: (n_rows, n_contexts, n_labels)"""
        scores = self.workers.storage.zeros(self.scores.shape, np.float32)
        self._add_to(scores, forest)
        return scores

    def _move_linear(self, part: _LinearPart) -> None:
        """Replace the linear part of the scores."""
        if part is not self._previous:
            self._previous.scores = None  # not needed any more, and as large as the scores
        if self._all_linear:
            if not self._keeps_previous:  # there is memory for one; who takes it back makes it anew
                self._linear.scores = None
                self.scores = np.zeros((0, 1, self.n_labels), np.float32)
            self.scores = self._scores_of(part)[:, None, :]
        else:
            old, new = self.linear, self._scores_of(part)
            for rows in cut_rows(len(new), BLOCK_ROWS):
                self.scores[rows] += (new[rows] - old[rows])[:, None, :]
        self._previous, self._linear = self._linear, part
        if not self._keeps_previous:
            self._previous.scores = None

    def _scores_of(self, part: _LinearPart) -> npt.NDArray[np.float32]:
        if part.scores is None:
            bin_values = self.columns.bin_values
            part.scores = linear_scores(self.data, part.weights, bin_values, self.workers)
        return part.scores

    def _add_to(self, scores: npt.NDArray[np.float32], forest: Forest) -> None:
        if forest.n_trees:
            scorer = ForestScorer(
                forest,
                self.n_labels,
                len(self.columns.counts),
                len(self.columns.bin_values),
                self.contexts,
                self.incomplete,
            )
            scorer.add(self.data, self.lags, scores, self.workers, self.missing)
