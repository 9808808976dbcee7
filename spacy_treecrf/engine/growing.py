"""One round of trees on a training set: a tree for each label, by the settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spacy_treecrf.engine.cached_scores import CachedScores
from spacy_treecrf.engine.detours import TreeDetours
from spacy_treecrf.engine.entries import collect
from spacy_treecrf.engine.forest import Forest, grow_forest
from spacy_treecrf.engine.grower import Entries, Limits, Tree, TreeInput, grow_tree
from spacy_treecrf.engine.incomplete import grow_incomplete_tree
from spacy_treecrf.engine.residuals import Annotated, Residuals
from spacy_treecrf.engine.routing import find_detours
from spacy_treecrf.engine.sampling import mix
from spacy_treecrf.engine.settings import Settings
from spacy_treecrf.engine.tree_rounds import LEAST_GAIN
from spacy_treecrf.engine.unbiased import observed_weight, weigh_observed


class ForestGrower:
    """Grows the trees of a round on the residuals of a training set."""

    def __init__(self, train: CachedScores, annotated: Annotated, settings: Settings) -> None:
        data, columns = train.data, train.columns
        self.annotated = annotated
        self.settings = settings
        self.workers = train.workers
        self.incomplete = train.incomplete
        self.missing = train.missing
        n_tested = int(np.searchsorted(-columns.counts, -settings.min_rows, side="right"))
        self.input = TreeInput(
            data.codes,
            np.ascontiguousarray(data.codes.T),
            data.numeric,
            n_tested,
            columns.slot_range,
            columns.column_of,
            len(columns.column_names),
            train.lags,
            train.contexts.first,
            train.contexts.labels,
            train.n_labels,
        )

    def grow(self, residuals: Residuals, round_: int) -> Forest:
        settings = self.settings
        limits = Limits(
            settings.leaves,
            settings.depth,
            settings.min_rows,
            settings.penalty,
            max(settings.min_gain, LEAST_GAIN),
            settings.colsample,
            settings.node_colsample,
        )
        round_seed = _seed(settings.seed, round_)
        weight = self._weight_of_observed(round_)

        def grow(k: int) -> Tree:
            g, h = residuals.g[k], residuals.h[k]
            if weight != 1.0:
                g, h = weigh_observed(self.annotated, residuals, k, weight)
            entries = collect(
                g,
                h,
                self.input.lags,
                self.input.n_labels,
                settings.trim,
                settings.subsample,
                round_seed,
            )
            return self._grow_tree(entries, limits, _seed(round_seed, k))

        labels = range(self.input.n_labels)
        trees = self.workers.map(grow, labels)
        detours = self._find_detours(trees) if self.incomplete else None
        return grow_forest(trees, labels, round_, detours)

    def _weight_of_observed(self, round_: int) -> float:
        settings = self.settings
        if not settings.unbiased:
            return 1.0
        n_examples = self.annotated.n_labels * self.annotated.n_contexts
        of_trees = round_ - settings.linear_rounds + 1
        rate, exponent = settings.unbiased_rate, settings.unbiased_exponent
        return observed_weight(n_examples, of_trees, rate, exponent)

    def _grow_tree(self, entries: Entries, limits: Limits, seed: np.uint64) -> Tree:
        tree: Tree
        if self.incomplete is None or self.missing is None:
            tree = grow_tree(self.input, entries, limits, seed)
        else:
            surrogate = not self.incomplete.averages
            tree = grow_incomplete_tree(self.input, entries, limits, seed, self.missing, surrogate)
        return tree

    def _find_detours(self, trees: Sequence[Tree]) -> list[TreeDetours]:
        """Also where no row of the training lacks a value: those of a prediction may."""
        missing, incomplete = self.missing, self.incomplete
        assert incomplete is not None
        if missing is None:
            n_columns = self.input.n_columns + self.input.numeric.shape[1]
            missing = np.zeros((len(self.input.codes), n_columns), np.bool_)
        cells, surrogate = missing, not incomplete.averages
        return self.workers.map(
            lambda tree: find_detours(tree, self.input, cells, surrogate), trees
        )


def _seed(seed: int | np.uint64, item: int) -> np.uint64:
    # numba hands back a Python int, which it would read as int64
    return np.uint64(mix(np.uint64(seed), np.uint64(item)))
