"""Potentials: everything boosting learns, and the scores it gives to sequences.

A score is the sum of linear weights and of the leaf values of trees; edges join two labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.conjugate import Direction
from spacy_treecrf.engine.boosting.linear import LinearScorer, LinearWeights
from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.chain.temperature_curve import TemperatureCurve
from spacy_treecrf.engine.encoding.missing_cells import missing_cells
from spacy_treecrf.engine.encoding.missing_methods import Incomplete
from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.engine.missing_values.incomplete_scoring import (
    add_scores_of_incomplete_rows,
    walked_trees,
)
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import Contexts, count_lags, list_contexts
from spacy_treecrf.engine.trees.forest import Forest, join_forests, last_trees
from spacy_treecrf.engine.trees.posting_lists import (
    MAX_MASK_LEAVES,
    MAX_MASK_VALUE,
    ScoredRows,
    add_tree_scores,
    build_postings,
    posting_order,
)
from spacy_treecrf.engine.trees.traversal import add_tree_scores_by_traversal
from spacy_treecrf.engine.trees.wide_postings import (
    MAX_WIDE_LEAVES,
    MAX_WIDE_MASKS,
    WidePostings,
    add_wide_tree_scores,
    build_wide_postings,
)


@dataclass(frozen=True)
class Update:
    """What one round of boosting adds to the potentials."""

    edges: npt.NDArray[np.float32]  # shape: (n_labels + 1, n_labels)
    forest: Forest
    linear: LinearWeights | None  # the weights after the round; None in a round of trees
    direction: Direction | None = None  # after the round; None unless it is a conjugate step
    echo: Forest | None = None  # what a conjugate step changes in scores, old trees included

    @property
    def scored(self) -> Forest:
        """The trees whose values are the change of all scores."""
        return self.forest if self.echo is None else self.echo


@dataclass(frozen=True)
class Potentials:
    """The learned functions: linear weights and trees score rows, edges score label pairs."""

    edges: npt.NDArray[np.float32]  # shape: (n_labels + 1, n_labels); last row: the first label
    linear: LinearWeights
    previous_linear: LinearWeights  # before the last linear round: its direction goes on
    forests: tuple[Forest, ...]  # in the order of their rounds
    rounds: int
    direction: Direction | None = None  # of conjugate steps, if there was one
    temperature: float = 1.0  # what scores were divided by since the last round, see `cooled`
    outside: float = 0.0  # how far a label was lowered since the last round, see `lowered`
    curve: TemperatureCurve | None = None  # what is still to divide the scores of each row

    @cached
    def forest(self) -> Forest:
        """All trees, with the values that they add to scores."""
        if self.direction is None:
            return self.as_grown
        return self.as_grown.scaled_by(self.direction.scale)

    @cached
    def as_grown(self) -> Forest:
        """All trees, before conjugate steps have changed how much they count."""
        return join_forests(self.forests)

    @property
    def n_trees(self) -> int:
        return sum(forest.n_trees for forest in self.forests)

    @classmethod
    def zeros(cls, n_labels: int, n_features: int, n_numeric: int) -> Potentials:
        nothing = LinearWeights.zeros(n_features, n_numeric, n_labels)
        edges = np.zeros((n_labels + 1, n_labels), np.float32)
        return cls(edges, nothing, nothing, (), 0)

    def after(self, update: Update) -> Potentials:
        """The potentials after one more round."""
        return replace(
            self,
            edges=to_grid(self.edges + update.edges),
            linear=update.linear or self.linear,
            previous_linear=self.linear if update.linear else self.previous_linear,
            forests=(*self.forests, update.forest),
            rounds=self.rounds + 1,
            direction=update.direction
            or (self.direction and self.direction.left(update.forest.n_trees)),
            temperature=1.0,
            outside=0.0,
            curve=None,
        )

    def cooled(self, temperature: float) -> Potentials:
        """Potentials whose scores are divided by a temperature: above 1 they are less sure.

        The best labellings stay the best, up to the rounding of values to the grid. A temperature
        curve is left out: it was learned for other scores.
        """
        share = 1.0 / temperature
        return replace(
            self,
            edges=to_grid(self.edges * np.float64(share)),
            linear=self.linear.scaled(share),
            previous_linear=self.previous_linear.scaled(share),
            forests=(self.forest.scaled(share),),
            direction=None,
            temperature=self.temperature * temperature,
            outside=self.outside * share,
            curve=None,
        )

    def lowered(self, label: int, by: float) -> Potentials:
        """Potentials under which a label has a lower score at all positions.

        Edges say so: each label of a chain of order 1 or more is at the end of one of them.
        """
        edges = self.edges.copy()
        edges[:, label] -= np.float32(by)
        return replace(self, edges=to_grid(edges), outside=self.outside + by)

    def scaled(self, update: Update, factor: float) -> Update:
        """The update cut (or stretched) to the given share of its step."""
        edges = to_grid(update.edges * np.float64(factor))
        if update.direction:
            # The newest trees count nothing before the step, and their share in it is 1.
            eta = factor * float(update.direction.scale[-1])
            now = self.direction or Direction.start(self.n_trees, self.edges.shape[1])
            scale = np.concatenate([now.scale, np.zeros(update.forest.n_trees)])
            return self.along(replace(update.direction, scale=scale), update.forest, edges, eta)
        return Update(
            edges,
            update.forest.scaled(factor),
            update.linear and self.linear.toward(update.linear, factor),
        )

    def along(
        self, direction: Direction, forest: Forest, edges: npt.NDArray[np.float32], eta: float
    ) -> Update:
        """A step along a direction that ends in the trees of `forest`."""
        after = direction.stepped(eta)
        n = direction.n_active
        n_old = n - forest.n_trees
        old = last_trees(self.forests, n_old)
        # Values are rounded tree by tree: only what is taken away and added as a whole is exact.
        echo = [
            old.scaled_by(direction.scale[self.n_trees - n_old : self.n_trees]).scaled(-1.0),
            join_forests([old, forest]).scaled_by(after.scale[len(after.scale) - n :]),
        ]
        return Update(edges, forest, None, after, join_forests(echo))


def mean_potentials(many: Sequence[Potentials]) -> Potentials:
    """Potentials whose scores are the means of the given potentials' scores.

    They have all trees, one model's after another's, each scaled by one over the number of models.
    Their number of rounds is 0, because no round belongs to all models.
    """
    share = 1.0 / len(many)
    linear = LinearWeights(
        np.mean([each.linear.categorical for each in many], axis=0, dtype=np.float32),
        np.mean([each.linear.numeric for each in many], axis=0, dtype=np.float32),
    )
    return Potentials(
        edges=np.mean([each.edges for each in many], axis=0, dtype=np.float32),
        linear=linear,
        previous_linear=LinearWeights.zeros(*linear.shape),
        forests=tuple(each.forest.scaled(share) for each in many),
        rounds=0,
    )


class ForestScorer:
    """A forest prepared for scoring: posting lists, and traversal for the largest trees.

    incomplete: how missing values are treated, if trees decide about them.
    """

    def __init__(
        self,
        forest: Forest,
        n_labels: int,
        n_features: int,
        n_numeric: int,
        contexts: Contexts,
        incomplete: Incomplete | None = None,
    ) -> None:
        self.contexts = contexts
        self.n_labels = n_labels
        self.n_features = n_features
        sizes = np.diff(forest.tree_first)
        small = (sizes + 1) // 2 <= MAX_MASK_LEAVES
        tree_of = np.repeat(np.arange(forest.n_trees), sizes)
        small[tree_of[np.abs(forest.value) >= MAX_MASK_VALUE]] = False
        self.large = forest.select(~small)
        wide = np.diff(self.large.tree_first) < 2 * MAX_WIDE_LEAVES
        wide &= wide.sum() * len(contexts.labels) <= MAX_WIDE_MASKS
        self.walked = self.large.select(~wide)
        self.wide: WidePostings | None = None
        if wide.any():
            self.wide = build_wide_postings(
                self.large.select(wide), n_features, n_numeric, contexts.labels
            )
        self.small = forest.select(small)
        self.postings = build_postings(self.small, n_labels, n_features, contexts.labels)
        self.incomplete = incomplete if forest.missing_branches is not None else None

    @property
    def n_trees(self) -> int:
        return self.small.n_trees + self.large.n_trees

    def add(
        self,
        data: Sequences,
        lags: npt.NDArray[np.uint8],
        scores: npt.NDArray[np.float32],
        workers: Workers,
        missing: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Add the trees' values to scores (n_rows, n_contexts, n_labels).

        missing: (n_rows, n_columns + n_numeric), which cells are; None where nothing is missing.
        """
        if missing is not None and self.incomplete is not None:
            self._add_incomplete(self.incomplete, data, lags, scores, workers, missing)
            return

        scored = ScoredRows(data.feature_ids, data.numeric, lags)

        def add_wide_trees(chunk: tuple[int, int]) -> None:
            rows = data.rows_of(chunk)
            add_wide_tree_scores(scored, rows.start, rows.stop, self.contexts, self.wide, scores)

        def walk_trees(chunk: tuple[int, int]) -> None:
            rows = data.rows_of(chunk)
            add_tree_scores_by_traversal(
                scored,
                rows.start,
                rows.stop,
                self.contexts,
                self.n_features,
                self.walked.nodes,
                scores,
            )

        self._add_small_trees(data, data.rows_by_bins, lags, scores, workers)
        if self.wide is not None:
            workers.map(add_wide_trees, data.chunks)
        if self.walked.n_trees:
            workers.map(walk_trees, data.chunks)

    def _add_small_trees(
        self,
        data: Sequences,
        pieces: Sequence[npt.NDArray[np.int64]],
        lags: npt.NDArray[np.uint8],
        scores: npt.NDArray[np.float32],
        workers: Workers,
    ) -> None:
        """Add the small trees' values to the scores of the rows in these pieces."""
        scored = ScoredRows(data.feature_ids, data.numeric, lags)

        def add_rows(rows: npt.NDArray[np.int64]) -> None:
            first = self.contexts.first
            add_tree_scores(scored, rows, first, self.n_labels, self.postings, scores)

        workers.map(add_rows, pieces)

    def _add_incomplete(
        self,
        incomplete: Incomplete,
        data: Sequences,
        lags: npt.NDArray[np.uint8],
        scores: npt.NDArray[np.float32],
        workers: Workers,
        missing: npt.NDArray[np.bool_],
    ) -> None:
        """Add the trees' values where some rows lack values, which posting lists cannot treat.

        Complete rows are scored by posting lists, others walk the small trees as well; all rows
        walk the large trees.
        """
        lacks_some: npt.NDArray[np.bool_] = np.logical_or.reduce(missing, axis=1)
        pieces = data.rows_by_bins
        complete = [rows[~lacks_some[rows]] for rows in pieces]
        self._add_small_trees(data, complete, lags, scores, workers)
        scored = ScoredRows(data.feature_ids, data.numeric, lags)

        def walk(forest: Forest, by_postings: bool, some: list[npt.NDArray[np.int64]]) -> None:
            trees = walked_trees(forest, incomplete, data.numeric.shape[1])
            workers.map(
                lambda rows: add_scores_of_incomplete_rows(
                    scored,
                    missing,
                    rows,
                    self.contexts,
                    self.postings,
                    by_postings,
                    trees,
                    scores,
                ),
                some,
            )

        if self.small.n_trees:
            in_order = self.small.reordered(posting_order(self.small))
            walk(in_order, True, [rows[lacks_some[rows]] for rows in pieces])
        if self.large.n_trees:
            walk(self.large, False, pieces)


class Scorer:
    """Potentials prepared for scoring many sequences."""

    def __init__(
        self,
        potentials: Potentials,
        bin_values: npt.NDArray[np.float64],
        context_order: int,
        incomplete: Incomplete | None = None,
    ) -> None:
        """context_order: how many previous labels the trees see; 0 unless the family is joint.

        incomplete: how missing values are treated, if trees decide about them.
        """
        self.linear = LinearScorer(potentials.linear, bin_values)
        self.n_features, self.n_labels = potentials.linear.categorical.shape
        self.n_numeric = len(bin_values)
        self.order = context_order
        contexts = list_contexts(self.n_labels, context_order)
        self.trees = ForestScorer(
            potentials.forest, self.n_labels, self.n_features, len(bin_values), contexts, incomplete
        )

    def score(self, data: Sequences, workers: Workers) -> npt.NDArray[np.float32]:
        """Scores of the rows. shape: (n_rows, n_contexts, n_labels)"""
        scores = self.linear.score(data, workers)[:, None, :]
        if self.order:
            scores = np.repeat(scores, self.n_labels**self.order, axis=1)
        if self.trees.n_trees:
            incomplete = self.trees.incomplete
            missing = missing_cells(data, incomplete.columns) if incomplete else None
            self.trees.add(data, count_lags(data.offsets, self.order), scores, workers, missing)
        return scores
