"""The forest: all learned trees as flat arrays.

Stored forests are checked when they are loaded. Rows are scored by posting lists made of a forest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.engine.limits import MAX_LEAVES
from spacy_treecrf.engine.trees.growing_tree import Tree
from spacy_treecrf.engine.trees.missing_branches import MissingBranches, TreeBranches
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, CONTEXT, LEAF, NUMERIC
from spacy_treecrf.storage.state_reader import StateReader

MAX_VALUE = 1e6
MAX_ROWS = 1e18
ROUNDING = 1e-5  # of stored counts of rows


class TreeNodes(NamedTuple):
    """The nodes of a forest, as kernels take them that walk from node to node."""

    tree_first: npt.NDArray[np.int64]
    tree_class: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Forest:
    """Nodes of all trees, tree after tree; children are indices within their tree."""

    tree_first: npt.NDArray[np.int64]  # shape: (n_trees + 1,)
    tree_class: npt.NDArray[np.int32]  # shape: (n_trees,)
    tree_round: npt.NDArray[np.int32]  # shape: (n_trees,), never falling
    kind: npt.NDArray[np.uint8]  # shape: (n_nodes,)
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]
    gain: npt.NDArray[np.float32]
    rows: npt.NDArray[np.float32]  # of training, that reached a node; all 0 where a tree has none
    # of models that leave missing values to the trees
    missing_branches: MissingBranches | None = None

    @property
    def n_trees(self) -> int:
        return len(self.tree_class)

    @property
    def nodes(self) -> TreeNodes:
        return TreeNodes(*(getattr(self, name) for name in TreeNodes._fields))

    def reordered(self, trees: npt.NDArray[np.int64]) -> Forest:
        """Return the given trees, in the given order."""
        sizes = np.diff(self.tree_first)[trees]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        nodes = np.repeat(self.tree_first[trees] - first[:-1], sizes) + np.arange(first[-1])
        arrays = {name: getattr(self, name)[nodes] for name in NODE_FIELDS}
        return Forest(
            tree_first=first,
            tree_class=self.tree_class[trees],
            tree_round=self.tree_round[trees],
            missing_branches=self.missing_branches and self.missing_branches.reordered(nodes),
            **arrays,
        )

    def select(self, trees: npt.NDArray[np.bool_]) -> Forest:
        """Return the trees for which the mask holds."""
        return self.reordered(np.flatnonzero(trees))

    def scaled(self, factor: float) -> Forest:
        """Return the same trees with all leaf values multiplied."""
        return replace(self, value=to_grid(self.value * np.float64(factor)))

    def scaled_by(self, factors: npt.NDArray[np.float64]) -> Forest:
        """Return the same trees, the leaf values of each multiplied by its factor."""
        factor = np.repeat(factors, np.diff(self.tree_first))
        return replace(self, value=to_grid(np.clip(self.value * factor, -MAX_VALUE, MAX_VALUE)))

    def with_missing_branches(self) -> Forest:
        """Return the same trees, with branches that lead left if they have none."""
        branches = self.missing_branches or MissingBranches.all_left(len(self.kind))
        return replace(self, missing_branches=branches)

    def to_state(self) -> dict[str, Any]:
        """Return what is stored of the forest."""
        state = {name: getattr(self, name) for name in (*TREE_FIELDS, *NODE_FIELDS)}
        if not self.rows.any():
            del state["rows"]
        if self.missing_branches is not None:
            state["detours"] = self.missing_branches.to_state()
        return state

    @classmethod
    def from_state(
        cls,
        state: StateReader,
        n_labels: int,
        n_features: int,
        n_numeric: int,
        order: int,
        with_missing_branches: bool = False,
    ) -> Forest:
        """Read a stored forest; refuse whatever could send a kernel out of bounds or in circles."""
        tree_class = state.array("tree_class", np.int32, (None,), low=0, high=n_labels - 1)
        n_trees = len(tree_class)
        tree_round = state.array("tree_round", np.int32, (n_trees,), low=0)
        tree_first = state.array("tree_first", np.int64, (n_trees + 1,), low=0)
        kind = state.array("kind", np.uint8, (None,), low=LEAF, high=CONTEXT)
        n_nodes = len(kind)
        forest = cls(
            tree_first,
            tree_class,
            tree_round,
            kind,
            state.array("feature", np.int32, (n_nodes,)),
            state.array("threshold", np.int32, (n_nodes,)),
            state.array("left", np.int32, (n_nodes,)),
            state.array("right", np.int32, (n_nodes,)),
            state.array("value", np.float32, (n_nodes,), low=-MAX_VALUE, high=MAX_VALUE),
            state.array("gain", np.float32, (n_nodes,)),
            state.array("rows", np.float32, (n_nodes,), low=0.0, high=MAX_ROWS)
            if state.has("rows")  # not in models of 0.1, and in none that is compact
            else np.zeros(n_nodes, np.float32),
            MissingBranches.from_state(state.nested("detours"), n_nodes, n_features, n_numeric)
            if with_missing_branches
            else None,
        )
        state.done()
        forest._check(state, n_labels, n_features, n_numeric, order)
        return forest

    def _check(
        self, state: StateReader, n_labels: int, n_features: int, n_numeric: int, order: int
    ) -> None:
        """Refuse trees that are no trees, and tests of what does not exist."""
        sizes = np.diff(self.tree_first)
        if self.tree_first[0] != 0 or self.tree_first[-1] != len(self.kind):
            state.fail("tree_first", f"offsets from 0 to {len(self.kind)}", "others")
        if np.any(sizes < 1) or np.any(sizes % 2 == 0) or np.any(sizes > 2 * MAX_LEAVES - 1):
            state.fail("tree_first", "trees of an odd number of nodes", "other sizes")
        if np.any(np.diff(self.tree_round) < 0):
            state.fail("tree_round", "rounds in rising order", "others")
        limits = {CATEGORICAL: n_features, NUMERIC: n_numeric, CONTEXT: order}
        for kind, limit in limits.items():
            feature = self.feature[self.kind == kind]
            if np.any((feature < 0) | (feature >= limit)):
                state.fail("feature", f"0 to {limit - 1} for tests of kind {kind}", "others")
        highest = np.where(self.kind == CONTEXT, n_labels, 255)
        if np.any((self.threshold < 0) | (self.threshold > highest)):
            state.fail("threshold", "bins 0 to 255 and labels within range", "others")
        # Each node but the root is the child of exactly one earlier node of its tree: no cycles,
        # no shared subtrees, and every walk ends in a leaf.
        inner = np.flatnonzero(self.kind != LEAF)
        tree_of = np.repeat(np.arange(self.n_trees), sizes)
        within = np.arange(len(self.kind)) - self.tree_first[tree_of]
        for name in ("left", "right"):
            child = getattr(self, name)[inner]
            if np.any((child <= within[inner]) | (child >= sizes[tree_of[inner]])):
                state.fail(name, "children behind their parents within the tree", "others")
        children = np.concatenate(
            [
                self.tree_first[tree_of[inner]] + getattr(self, name)[inner]
                for name in ("left", "right")
            ]
        )
        expected = np.flatnonzero(within > 0)
        if not np.array_equal(np.sort(children), expected):
            state.fail("left", "one parent for every node but the root", "others")
        below = self.rows[children].reshape(2, -1).sum(axis=0, dtype=np.float64)
        if not np.allclose(below, self.rows[inner], rtol=ROUNDING, atol=0.0):
            state.fail("rows", "as many at both children as at their parent", "others")


TREE_FIELDS = ("tree_first", "tree_class", "tree_round")
NODE_FIELDS = ("kind", "feature", "threshold", "left", "right", "value", "gain", "rows")


def empty_forest() -> Forest:
    """Return a forest without trees."""
    return grow_forest([], [], 0)


def grow_forest(
    trees: Sequence[Tree],
    classes: Sequence[int],
    round_: int,
    branches: Sequence[TreeBranches] | None = None,
) -> Forest:
    """Return the trees of one round as a forest, their values rounded to the grid."""
    sizes = [len(tree.kind) for tree in trees]

    def joined(name: str, dtype: type) -> npt.NDArray[Any]:
        parts = [getattr(tree, name) for tree in trees]
        return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)

    return Forest(
        tree_first=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        tree_class=np.array(classes, np.int32),
        tree_round=np.full(len(trees), round_, np.int32),
        kind=joined("kind", np.uint8),
        feature=joined("feature", np.int32),
        threshold=joined("threshold", np.int32),
        left=joined("left", np.int32),
        right=joined("right", np.int32),
        value=to_grid(joined("value", np.float64)),
        gain=joined("gain", np.float32),
        rows=joined("rows", np.float32),
        missing_branches=None if branches is None else MissingBranches.of_trees(branches),
    )


def join_forests(forests: Sequence[Forest]) -> Forest:
    """Return one forest with the trees of all, in order."""
    if not forests:
        return empty_forest()
    shifts = np.cumsum([0] + [int(f.tree_first[-1]) for f in forests[:-1]])
    first = [f.tree_first[:-1] + s for f, s in zip(forests, shifts, strict=True)]
    last = shifts[-1] + forests[-1].tree_first[-1]
    names = (*TREE_FIELDS[1:], *NODE_FIELDS)
    branches = None
    if any(forest.missing_branches is not None for forest in forests):
        branches = MissingBranches.join(
            [f.missing_branches or MissingBranches.all_left(len(f.kind)) for f in forests]
        )
    arrays = {name: np.concatenate([getattr(f, name) for f in forests]) for name in names}
    return Forest(
        tree_first=np.concatenate([*first, [last]]).astype(np.int64),
        missing_branches=branches,
        **arrays,
    )


def last_trees(forests: Sequence[Forest], n: int) -> Forest:
    """Return the last n trees of all, in order; forests before them are not looked at."""
    first = len(forests)
    n_trees = 0
    while n_trees < n:
        first -= 1
        n_trees += forests[first].n_trees
    joined = join_forests(forests[first:])
    return joined.reordered(np.arange(n_trees - n, n_trees))
