"""Scores of a locally normalised model: log P(y_t | previous labels, x), all of them or by search.

Rows come in the order in which the model reads them: a right-to-left model gets sequences that
are turned round, and the functions at the end of this module turn its answers back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.linear import LinearScorer, LinearWeights
from spacy_treecrf.engine.boosting.potentials import ForestScorer
from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.chain.chain import Chain, Mask
from spacy_treecrf.engine.memm.beam_search import Beams, HistoryScores, beam_search
from spacy_treecrf.engine.memm.label_history import LabelHistory, normalise, reversal, turn_scores
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import NO_CONTEXTS, Contexts, count_lags, list_contexts
from spacy_treecrf.engine.trees.forest import Forest


@dataclass(frozen=True)
class LocalScorer:
    """Learned trees and linear weights over the features of previous labels and of rows.

    bin_values: values of the numeric columns that have linear weights; only trees test others.
    """

    history: LabelHistory
    forest: Forest
    linear: LinearWeights
    bin_values: npt.NDArray[np.float64]
    n_numeric: int

    @property
    def n_features(self) -> int:
        """The number of features, those of previous labels included."""
        return len(self.linear.categorical)

    def joint(
        self, data: Sequences, extra: npt.NDArray[np.float32] | None, workers: Workers
    ) -> npt.NDArray[np.float32]:
        """log P(y | context, x) for every context. shape: (n_rows, n_labels**order, n_labels)

        extra: added to the scores (n_rows, n_labels) before they are normalised.
        """
        history = self.history
        lags = count_lags(data.offsets, history.order)
        n_contexts = history.n_labels**history.order
        base = self._linear(data, workers)
        if extra is not None:
            base += extra
        scores = np.repeat(base[:, None, :], n_contexts, axis=1)
        for m in range(history.order + 1):
            own = self._context_weights[self._contexts.first[m] : self._contexts.first[m + 1]]
            if own.any():
                scores[lags == m, : len(own)] += own
        self._trees.add(data, lags, scores, workers)
        workers.map(
            lambda chunk: normalise(scores[data.rows_of(chunk)], lags[data.rows_of(chunk)]),
            data.chunks,
        )
        return scores

    def beams(
        self,
        data: Sequences,
        extra: npt.NDArray[np.float32] | None,
        chain: Chain,
        width: int,
        workers: Workers,
        allowed: Mask | None = None,
    ) -> Beams:
        """The most probable label sequences that a search of this width finds."""
        history = self.history
        base = self._linear(data, workers)
        if extra is not None:
            base += extra
        shifted = replace(data, feature_ids=history.shifted(data.feature_ids))
        no_lags = np.zeros(data.n_rows, np.uint8)
        self._plain_trees.add(shifted, no_lags, base[:, None, :], workers)
        return beam_search(
            shifted, base, self._history_scores, self.n_features, chain, width, workers, allowed
        )

    def _linear(self, data: Sequences, workers: Workers) -> npt.NDArray[np.float32]:
        """What linear weights of the rows' own features add. shape: (n_rows, n_labels)"""
        few = replace(data, numeric=data.numeric[:, : len(self.bin_values)])
        return self._own_linear.score(few, workers)

    @cached
    def _own_linear(self) -> LinearScorer:
        own = LinearWeights(self.linear.categorical[self.history.n_features :], self.linear.numeric)
        return LinearScorer(own, self.bin_values)

    @cached
    def _contexts(self) -> Contexts:
        return list_contexts(self.history.n_labels, self.history.order)

    @cached
    def _context_weights(self) -> npt.NDArray[np.float32]:
        """What linear weights of previous labels add to each context. (n_contexts, n_labels)"""
        history, contexts = self.history, self._contexts
        total = np.zeros((len(contexts.labels), history.n_labels), np.float32)
        for lag in range(history.order):
            total += self.linear.categorical[lag * (history.n_labels + 1) + contexts.labels[:, lag]]
        return total

    @cached
    def _trees(self) -> ForestScorer:
        """All trees, with tests of contexts for those of previous labels."""
        forest = self.history.as_contexts(self.forest)
        n_own = self.n_features - self.history.n_features
        return ForestScorer(forest, self.history.n_labels, n_own, self.n_numeric, self._contexts)

    @cached
    def _plain_trees(self) -> ForestScorer:
        """The trees that test no previous label."""
        forest = self.forest.select(~self.history.tests(self.forest))
        return ForestScorer(
            forest, self.history.n_labels, self.n_features, self.n_numeric, NO_CONTEXTS
        )

    @cached
    def _history_scores(self) -> HistoryScores:
        """The linear weights of previous labels, and the trees that test them."""
        forest = self.forest.select(self.history.tests(self.forest))
        return HistoryScores.of(
            np.ascontiguousarray(self.linear.categorical[: self.history.n_features]), forest
        )


def turned_scores(
    scores: npt.NDArray[np.float32], offsets: npt.NDArray[np.int64], order: int
) -> npt.NDArray[np.float32]:
    """Joint scores of sequences that were turned round, as those of a left-to-right chain."""
    out = np.zeros_like(scores)
    turn_scores(scores, offsets, order, out)
    return out


def turned_beams(beams: Beams, offsets: npt.NDArray[np.int64]) -> Beams:
    """The beams of sequences that were turned round, in the order of the sequences."""
    rows = reversal(offsets)
    return beams._replace(labels=beams.labels[rows], nodes=beams.nodes[rows])


def turned_chain(chain: Chain) -> Chain:
    """The chain that allows the same label sequences, read from the other end."""
    return Chain(chain.order, chain.end, np.ascontiguousarray(chain.trans.T), chain.start)
