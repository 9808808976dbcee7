"""The histograms of some features over the rows of all workers, and the best splits by them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spacy_treecrf.dask.packed_sums import PackedNode, add_packed
from spacy_treecrf.dask.rooms import FeatureTables
from spacy_treecrf.dask.tree_messages import Expansion, Found, numeric_range
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.open_leaves import Siblings
from spacy_treecrf.engine.trees.shared_growth import (
    NodeSums,
    add_part,
    best_of_part,
    keep_part,
    replace_part,
    room_for_part,
)
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, NUMERIC, Split, SplitRule
from spacy_treecrf.engine.trees.tree_input import TreeInput

PartOfNode = NodeSums | PackedNode  # what one worker has of a node: its own, or as it came


class FeatureOwner:
    """An owner of features: what it has of the trees that are grown together.

    data: the columns of all features, of which rows do not matter here.
    bounds: the features of each owner, one behind the other.
    """

    def __init__(
        self,
        data: TreeInput,
        owner: int,
        bounds: npt.NDArray[np.int64],
        rules: Sequence[SplitRule],
        n_leaves: int,
    ) -> None:
        n_owners = len(bounds) - 1
        self.first = int(bounds[owner])
        self.numeric = numeric_range(data.numeric.shape[1], owner, n_owners)
        column_of = np.ascontiguousarray(data.column_of[self.first : int(bounds[owner + 1])])
        with_contexts = owner == 0
        self.data = data._replace(
            feature_ids=data.feature_ids[:0],
            columns=data.columns[:, :0],
            numeric=data.numeric[:0, self.numeric],
            n_features=len(column_of),
            column_of=column_of,
            n_columns=data.n_columns + self.numeric.start,
            lags=data.lags[:0],
            context_labels=data.context_labels if with_contexts else data.context_labels[:1, :0],
        )
        self.rules = rules
        self.owned = [room_for_part(self.data, n_leaves) for _ in rules]
        self.n_places = [1 for _ in rules]
        self.tables = FeatureTables(len(column_of))

    def start(
        self,
        parts: Sequence[Sequence[PartOfNode]],
        totals: Sequence[npt.NDArray[np.float64]],
        workers: Workers,
    ) -> list[Found]:
        """Add the workers' sums of all roots, and search them. totals: (4,) of each root"""

        def search(tree: int) -> Found:
            self._keep(tree, Siblings(0, -1), [part[tree] for part in parts])
            return Found(tree, 0, self._best(tree, 0, totals[tree]))

        return workers.map(search, range(len(self.rules)))

    def expand(
        self,
        expansions: Sequence[Expansion],
        parts: Sequence[Sequence[PartOfNode]],
        workers: Workers,
    ) -> list[Found]:
        """Add the workers' sums of smaller children, and search both children of each leaf."""
        of_tree: dict[int, list[int]] = {}
        for i, expansion in enumerate(expansions):
            of_tree.setdefault(expansion.tree, []).append(i)

        def search(tree: int) -> list[Found]:
            found = []
            for i in of_tree[tree]:
                found += self._expand(expansions[i], [part[i] for part in parts])
            return found

        return [each for some in workers.map(search, list(of_tree)) for each in some]

    def _expand(self, expansion: Expansion, parts: Sequence[PartOfNode]) -> list[Found]:
        tree, family = expansion.tree, expansion.family
        big = family.left if expansion.small == family.right else family.right
        new = Siblings(expansion.small, big)
        free = self.n_places[tree]
        self.n_places[tree] += 1
        replace_part(self.data, self.owned[tree], expansion.test, family.parent, new, free)
        self._keep(tree, new, parts)
        children = zip(family[1:], expansion.sums, expansion.searched, strict=True)
        return [
            Found(tree, node, self._best(tree, node, sums))
            for node, sums, searched in children
            if searched
        ]

    def _keep(self, tree: int, new: Siblings, parts: Sequence[PartOfNode]) -> None:
        bins, contexts = parts[0].bins, parts[0].contexts
        for part in parts[1:]:
            bins, contexts = bins + part.bins, contexts + part.contexts
        owned, rule, n_touched = self.owned[tree], self.rules[tree], 0
        with self.tables.one() as touched:
            for part in parts:
                if isinstance(part, PackedNode):
                    n_touched = add_packed(touched, part, n_touched)
                else:
                    n_touched = add_part(touched, part, self.first, n_touched)
            self.owned[tree] = keep_part(
                self.data, owned, touched, bins, contexts, n_touched, new, rule
            )

    def _best(self, tree: int, node: int, sums: npt.NDArray[np.float64]) -> Split:
        """The best split of a node, with the feature's number among all features."""
        split: Split = best_of_part(self.data, self.owned[tree], node, sums, self.rules[tree])
        if split.kind == CATEGORICAL:
            return split._replace(feature=int(split.feature) + self.first)
        if split.kind == NUMERIC:
            return split._replace(feature=int(split.feature) + self.numeric.start)
        return split
