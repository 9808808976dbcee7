"""The driver's side of growing trees in step: which leaves are split next, and the trees.

Best-first growth splits one leaf after the other. Here the most promising leaves are split at once:
some of them in vain, which costs time and changes no tree.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from spacy_treecrf.dask.tree_messages import Expansion, Found, better
from spacy_treecrf.engine.trees.growing_tree import Family, FoundSplits, Tree
from spacy_treecrf.engine.trees.shared_growth import AheadTree, replay
from spacy_treecrf.engine.trees.splitting import CONTEXT, LEAF, NodeTest, Split, SplitRule
from spacy_treecrf.engine.trees.tree_input import TreeLimits

AHEAD = 2  # times the leaves that a tree may have: so many may be made in all


LIKELY = 0.95  # of the gain of the leaf whose turn it is: then the turn of a leaf comes soon


def room_of(limits: TreeLimits) -> int:
    """How many leaves a tree may get, those made in vain included."""
    return AHEAD * limits.leaves


class TreeCourse:
    """One label's tree: what is known of its nodes, also of those made ahead."""

    def __init__(
        self,
        tree: int,
        totals: npt.NDArray[np.float64],
        n_pairs: float,
        limits: TreeLimits,
        rule: SplitRule,
        careful: bool = False,
    ) -> None:
        """totals: (4,) of the root. n_pairs: of the root's entries, without trimmed rows.

        careful: whether only leaves whose turn comes soon are split ahead.
        """
        self.tree, self.totals, self.limits, self.rule = tree, totals, limits, rule
        n_nodes = 2 * room_of(limits) - 1
        self.ahead = AheadTree(
            FoundSplits(
                np.zeros(n_nodes),
                np.zeros(n_nodes, np.uint8),
                np.zeros(n_nodes, np.int32),
                np.zeros(n_nodes, np.int32),
                np.zeros((n_nodes, 4)),
            ),
            np.full((n_nodes, 2), -1, np.int32),
        )
        self.sums = np.zeros((n_nodes, 4))
        self.sums[0] = totals
        self.n_pairs = np.zeros(n_nodes)  # of entries
        self.n_pairs[0] = n_pairs
        self.depth = np.zeros(n_nodes, np.int32)
        self.parent = np.full(n_nodes, -1, np.int32)
        # A leaf comes after the leaves above it, so that the lowest gain on its path decides.
        self.worth = np.zeros(n_nodes)
        self.n_nodes = 1
        self.careful = careful
        self.grown: Tree | None = None

    @property
    def searches_root(self) -> bool:
        return self.limits.leaves > 1 and self._may_split(0)

    def learn(self, found: Iterable[Split], node: int) -> None:
        """Keep the best of the splits that the owners found for a node."""
        best: Split | None = None
        for split in found:
            if best is None or better(best, split):
                best = split
        if best is None:
            return
        splits = self.ahead.found
        splits.gain[node] = best.gain
        self.worth[node] = min(best.gain, self.worth[self.parent[node]] if node else np.inf)
        splits.kind[node] = best.kind
        splits.feature[node] = best.feature
        splits.threshold[node] = best.threshold
        splits.right[node] = best.g, best.h, best.n, 0.0

    def next_expansions(self) -> list[Expansion]:
        """Leaves to split now, the one whose turn it is among them; none: the tree is grown."""
        needed, tree = replay(self.totals, self.limits, self.rule, self.ahead)
        if needed < 0:
            self.grown = tree
            return []
        n_leaves = (len(tree.kind) + 1) // 2
        leaves = self._open_leaves()
        wanted = 1
        if self.limits.node_columns >= 1.0:  # else what a node may test depends on its turn
            wanted = min((len(leaves) + 1) // 2, self.limits.leaves - n_leaves - 1)
            made, still = (self.n_nodes + 1) // 2, self.limits.leaves - n_leaves
            wanted = min(wanted, 1 + max(0, room_of(self.limits) - made - still))
        gain = self.ahead.found.gain
        least = LIKELY * gain[needed] if self.careful else 0.0
        likely = leaves[(leaves != needed) & (gain[leaves] >= least)]
        chosen = [needed, *likely[: max(0, wanted - 1)].tolist()]
        return [self._expansion(leaf) for leaf in chosen]

    def _open_leaves(self) -> npt.NDArray[np.int64]:
        """Leaves that can be split, the most promising first."""
        found, children = self.ahead
        n = self.n_nodes
        leaves = np.flatnonzero((found.kind[:n] != LEAF) & (children[:n, 0] < 0))
        return leaves[np.argsort(-self.worth[leaves], kind="stable")]

    def _expansion(self, leaf: int) -> Expansion:
        found = self.ahead.found
        left, right = self.n_nodes, self.n_nodes + 1
        self.n_nodes += 2
        self.ahead.children[leaf] = left, right
        self.parent[[left, right]] = leaf
        self.depth[[left, right]] = self.depth[leaf] + 1
        self.sums[right] = found.right[leaf]
        self.sums[left] = self.sums[leaf] - found.right[leaf]
        self.n_pairs[right] = found.right[leaf, 2]
        self.n_pairs[left] = self.n_pairs[leaf] - found.right[leaf, 2]
        # Both sides of a context split have most rows of their parent.
        is_context = found.kind[leaf] == CONTEXT
        small = right if is_context or self.n_pairs[right] <= self.n_pairs[left] else left
        test = NodeTest(*(np.int64(a[leaf]) for a in (found.kind, found.feature, found.threshold)))
        return Expansion(
            self.tree,
            Family(leaf, left, right),
            test,
            small,
            self.sums[[left, right]],
            (self._may_split(left), self._may_split(right)),
        )

    def _may_split(self, node: int) -> bool:
        if self.limits.depth and self.depth[node] >= self.limits.depth:
            return False
        return bool(self.sums[node, 2] >= 2 * self.limits.min_rows)


def learn_all(courses: list[TreeCourse], answers: Iterable[Iterable[Found]]) -> None:
    """Give the owners' answers to the trees that they are about."""
    by_node: dict[tuple[int, int], list[Split]] = {}
    for answer in answers:
        for found in answer:
            by_node.setdefault((found.tree, found.node), []).append(found.split)
    for (tree, node), splits in by_node.items():
        courses[tree].learn(splits, node)
