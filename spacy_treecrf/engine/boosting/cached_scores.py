"""Scores of a data set under the potentials learned so far, kept from round to round.

A round then costs the evaluation of its own trees, never that of all trees.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.linear import LinearWeights, linear_scores
from spacy_treecrf.engine.boosting.potentials import ForestScorer, Potentials, Update
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.missing_cells import missing_cells
from spacy_treecrf.engine.encoding.missing_methods import in_trees
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import count_lags, list_contexts
from spacy_treecrf.engine.trees.forest import Forest


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
        self.missing = missing_cells(data, columns.map) if self.incomplete else None
        self.linear = self._linear_scores(potentials.linear)  # shape: (n_rows, n_labels)
        self.previous_linear = self._linear_scores(potentials.previous_linear)
        n_contexts = self.n_labels**context_order
        self.scores = np.repeat(self.linear[:, None, :], n_contexts, axis=1)
        self._add_to(self.scores, potentials.forest)

    def apply(self, update: Update) -> None:
        """Bring the scores up to date with one more round."""
        self._add_to(self.scores, update.scored)
        if update.linear:
            self._set_linear(self._linear_scores(update.linear))

    def revert(self, update: Update) -> None:
        """Take back the last update; values lie on a grid, so that nothing of it remains."""
        self._add_to(self.scores, update.scored.scaled(-1.0))
        if update.linear:
            self._set_linear(self.previous_linear)

    def of_trees(self, forest: Forest) -> npt.NDArray[np.float32]:
        """Scores that these trees alone would give. shape: (n_rows, n_contexts, n_labels)"""
        scores = np.zeros_like(self.scores)
        self._add_to(scores, forest)
        return scores

    def _set_linear(self, scores: npt.NDArray[np.float32]) -> None:
        self.scores += (scores - self.linear)[:, None, :]
        self.previous_linear, self.linear = self.linear, scores

    def _linear_scores(self, weights: LinearWeights) -> npt.NDArray[np.float32]:
        return linear_scores(self.data, weights, self.columns.bin_values, self.workers)

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
