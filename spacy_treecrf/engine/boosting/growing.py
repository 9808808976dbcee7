"""Trees of a boosting round on a training set, also where values are missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.cached_scores import CachedScores
from spacy_treecrf.engine.boosting.residuals import ALL_ROWS, Residuals, RowResiduals
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.boosting.unbiased import observed_weight, weigh_observed
from spacy_treecrf.engine.missing_values.incomplete_growing import grow_incomplete_tree
from spacy_treecrf.engine.missing_values.routing import find_missing_branches
from spacy_treecrf.engine.trees.drawn_slots import grow_on_drawn_columns
from spacy_treecrf.engine.trees.forest import Forest, grow_forest
from spacy_treecrf.engine.trees.growing_tree import Tree
from spacy_treecrf.engine.trees.missing_branches import TreeBranches
from spacy_treecrf.engine.trees.tree_input import Entries, TreeInput, TreeLimits
from spacy_treecrf.engine.trees.tree_rounds import Gradient, grow_trees, round_seed, tree_input


class ForestGrower:
    """Grows a tree for each label on the residuals of a training set."""

    def __init__(self, train: CachedScores, annotated: Annotated, settings: Settings) -> None:
        self.annotated = annotated
        self.settings = settings
        self.workers = train.workers
        self.incomplete = train.incomplete
        self.missing = train.missing
        self._train = train

    @cached_property
    def input(self) -> TreeInput:
        """The columns of all rows, also transposed: made for the first trees, not for weights."""
        train = self._train
        return tree_input(
            train.data,
            train.columns,
            self.settings.min_rows,
            train.lags,
            train.contexts,
            train.n_labels,
            train.workers.storage,
        )

    def gradients(
        self, residuals: Residuals | RowResiduals, round_: int
    ) -> Callable[[int], Gradient]:
        """What the tree of each label is fitted to in a round."""
        weight, storage = self._weight_of_observed(round_), self.workers.storage

        def gradient_of(label: int) -> Gradient:
            if weight != 1.0:
                return weigh_observed(self.annotated, residuals, label, weight, storage)
            return residuals.of_label(label, ALL_ROWS)

        return gradient_of

    def grow(self, residuals: Residuals, round_: int) -> Forest:
        gradient_of = self.gradients(residuals, round_)
        labels = range(self.input.n_labels)
        seed = round_seed(self.settings.seed, round_)
        trees = grow_trees(
            self.input, gradient_of, labels, self.settings, seed, self.workers, self._grow_tree
        )
        branches = self._find_missing_branches(trees) if self.incomplete else None
        return grow_forest(trees, labels, round_, branches)

    def _weight_of_observed(self, round_: int) -> float:
        settings = self.settings
        if not settings.unbiased:
            return 1.0
        n_examples = self.annotated.n_labels * self.annotated.n_contexts
        of_trees = round_ - settings.linear_rounds + 1
        rate, exponent = settings.unbiased_rate, settings.unbiased_exponent
        return observed_weight(n_examples, of_trees, rate, exponent)

    def _grow_tree(
        self, rows: TreeInput, entries: Entries, limits: TreeLimits, seed: np.uint64
    ) -> Tree:
        tree: Tree
        if self.incomplete is None or self.missing is None:
            tree = grow_on_drawn_columns(rows, entries, limits, seed)
        else:
            surrogate = not self.incomplete.averages
            tree = grow_incomplete_tree(rows, entries, limits, seed, self.missing, surrogate)
        return tree

    def _find_missing_branches(self, trees: Sequence[Tree]) -> list[TreeBranches]:
        """Find where rows with missing values go, also if no training row lacks a value.

        Rows of a prediction may lack one.
        """
        missing, incomplete = self.missing, self.incomplete
        assert incomplete is not None
        if missing is None:
            n_columns = self.input.n_columns + self.input.numeric.shape[1]
            shape = (len(self.input.feature_ids), n_columns)
            missing = self.workers.storage.zeros(shape, np.bool_)
        cells, surrogate = missing, not incomplete.averages
        return self.workers.map(
            lambda tree: find_missing_branches(tree, self.input, cells, surrogate), trees
        )
