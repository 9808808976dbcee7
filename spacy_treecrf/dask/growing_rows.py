"""Trees that grow on the rows of one worker: its part of every node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spacy_treecrf.dask.rooms import FeatureTables, SumsRoom
from spacy_treecrf.dask.tree_messages import Expansion, TreeStart
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.shared_growth import (
    NodeSums,
    divide_part,
    rows_of_part,
    sum_part,
)
from spacy_treecrf.engine.trees.tree_input import Entries, TreeInput

_NOTHING = np.zeros((0, 0), np.float32)


class GrowingRows:
    """The rows of each node of one label's tree.

    entries: Become the tree's own. tables: Of all features, for any tree.
    """

    def __init__(
        self, data: TreeInput, entries: Entries, n_nodes: int, tables: FeatureTables
    ) -> None:
        self.data = data
        self.start = TreeStart(entries.totals, float(entries.sums[:, 2].sum()))
        self.rows = rows_of_part(entries, n_nodes)
        n_contexts, order = data.context_labels.shape
        # Contexts need the gradients of single pairs; else what the rows have of them is enough.
        pairs = (entries.pair_g, entries.pair_h) if order else (_NOTHING, _NOTHING)
        self.entries = Entries(
            entries.rows[:0], entries.sums[:0], entries.totals, entries.scales, *pairs
        )
        # shape: (n_nodes, n_contexts), the contexts of each node
        self.member = np.zeros((n_nodes, n_contexts if order else 0), np.bool_)
        self.member[0] = True
        self.tables = tables
        self.room = SumsRoom(data.n_features)

    def root(self) -> NodeSums:
        return self._sums_of(0)

    def expand(self, expansion: Expansion) -> NodeSums:
        """Divide a leaf's rows; returns the sums of its smaller child."""
        family = expansion.family
        of_children = np.zeros((2, self.member.shape[1]), np.bool_)
        self.rows = divide_part(
            self.data,
            self.entries,
            self.rows,
            expansion.test,
            family,
            self.member[family.parent],
            of_children,
        )
        self.member[[family.left, family.right]] = of_children
        return self._sums_of(expansion.small)

    def _sums_of(self, node: int) -> NodeSums:
        member: npt.NDArray[np.bool_] = self.member[node]
        with self.tables.one() as touched:
            found: NodeSums = sum_part(
                self.data, self.entries, self.rows, touched, node, member, *self.room.one()
            )
        self.room.took(len(found.features))
        return found


def expand_all(
    trees: Sequence[GrowingRows], expansions: Sequence[Expansion], workers: Workers
) -> list[NodeSums]:
    """Expand leaves of several trees; returns the sums of smaller children in this order.

    What was returned before is not valid any more.
    """
    of_tree: dict[int, list[int]] = {}
    for i, expansion in enumerate(expansions):
        of_tree.setdefault(expansion.tree, []).append(i)

    def expand(tree: int) -> list[tuple[int, NodeSums]]:
        trees[tree].room.again()
        return [(i, trees[tree].expand(expansions[i])) for i in of_tree[tree]]

    found = dict(pair for pairs in workers.map(expand, list(of_tree)) for pair in pairs)
    return [found[i] for i in range(len(expansions))]
