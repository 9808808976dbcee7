"""Growth of the trees of some labels by all workers: each of them does this at the same time.

What a worker needs of the others comes by mail. All of them learn the same splits, and so choose
the same leaves to split next.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from spacy_treecrf.dask.feature_owner import FeatureOwner, PartOfNode
from spacy_treecrf.dask.growing_rows import GrowingRows, expand_all
from spacy_treecrf.dask.packed_sums import Message, pack_sums, unpack_sums
from spacy_treecrf.dask.rooms import ByteRoom
from spacy_treecrf.dask.tree_course import TreeCourse, learn_all, room_of
from spacy_treecrf.dask.tree_messages import (
    Expansion,
    Found,
    TreeStart,
    pack_found,
    slice_for_owner,
    unpack_found,
)
from spacy_treecrf.engine.sampling import mix
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.entries import Trimming
from spacy_treecrf.engine.trees.growing_tree import Tree
from spacy_treecrf.engine.trees.shared_growth import NodeSums, rule_of_tree
from spacy_treecrf.engine.trees.tree_input import TreeInput, TreeLimits

Value = TypeVar("Value")


class Exchange(Protocol):
    """How workers that do the same give each other values."""

    @property
    def me(self) -> int:
        """Which of them this one is."""
        ...

    def swap(self, outgoing: Sequence[Value]) -> list[Value]:
        """Send each worker its value; returns what all have sent here, in their order."""
        ...

    def swap_all(self, value: Value) -> list[Value]:
        """Send the same value to all."""
        ...


class Grown(NamedTuple):
    """The trees, and what this worker has sent for them."""

    trees: list[Tree]
    n_bytes: int
    n_exchanges: int


class GrowingTogether:
    """The trees of some labels on this worker.

    bounds: The features of each owner, one behind the other.
    careful: Whether only leaves whose turn comes soon are split ahead.
    """

    def __init__(
        self,
        trees: Sequence[GrowingRows],
        data: TreeInput,
        bounds: npt.NDArray[np.int64],
        exchange: Exchange,
        workers: Workers,
        careful: bool,
    ) -> None:
        self.trees, self.data, self.bounds = trees, data, bounds
        self.exchange, self.workers = exchange, workers
        self.careful = careful
        self.n_bytes = 0
        n_owners = len(bounds) - 1
        self._to, self._from = ([ByteRoom() for _ in range(n_owners)] for _ in range(2))

    def grow(
        self,
        labels: Sequence[int],
        trimmed: Sequence[Trimming],
        limits: TreeLimits,
        round_seed: np.uint64,
    ) -> Grown:
        """The trees of these labels. trimmed: of all labels"""
        courses = self._courses(labels, trimmed, limits, round_seed)
        rules = [course.rule for course in courses]
        owner = FeatureOwner(self.data, self.exchange.me, self.bounds, rules, room_of(limits))
        roots = self.workers.map(lambda tree: tree.root(), self.trees)
        totals = [course.totals for course in courses]
        found = owner.start(self._mine_of_all(roots), totals, self.workers)
        splittable = {course.tree for course in courses if course.searches_root}
        self._learn(courses, [each for each in found if each.tree in splittable])
        n_exchanges = 1
        while expansions := _next_expansions(courses):
            made = expand_all(self.trees, expansions, self.workers)
            found = owner.expand(expansions, self._mine_of_all(made), self.workers)
            self._learn(courses, found)
            n_exchanges += 1
        grown = [course.grown for course in courses if course.grown is not None]
        return Grown(grown, self.n_bytes, n_exchanges)

    def _courses(
        self,
        labels: Sequence[int],
        trimmed: Sequence[Trimming],
        limits: TreeLimits,
        round_seed: np.uint64,
    ) -> list[TreeCourse]:
        own = [tree.start for tree in self.trees]
        found: list[list[TreeStart]] = self.exchange.swap_all(own)
        courses = []
        for tree, (label, starts) in enumerate(zip(labels, zip(*found, strict=True), strict=True)):
            tree_seed = np.uint64(mix(round_seed, np.uint64(label)))
            rule = rule_of_tree(trimmed[label].scales, limits, tree_seed)
            totals = np.sum([start.totals for start in starts], axis=0)
            n_pairs = sum(start.n_pairs for start in starts)
            courses.append(TreeCourse(tree, totals, n_pairs, limits, rule, self.careful))
        return courses

    def _mine_of_all(self, nodes: Sequence[NodeSums]) -> list[Sequence[PartOfNode]]:
        """What all workers have of the features that this one owns. nodes: all that this one has"""
        outgoing: list[Message] = []
        own: list[NodeSums] = []
        for owner, (first, last) in enumerate(pairwise(self.bounds.tolist())):
            slices = [slice_for_owner(node, owner, self.bounds) for node in nodes]
            if owner == self.exchange.me:
                own, slices = slices, []
            # A room is free again: owners told what they found after they had added this up.
            outgoing.append(pack_sums(slices, first, last - first, self._to[owner]))
        self.n_bytes += sum(message.nbytes for message in outgoing)
        found = self.exchange.swap(outgoing)
        return [
            own if peer == self.exchange.me else unpack_sums(message, self._from[peer])
            for peer, message in enumerate(found)
        ]

    def _learn(self, courses: list[TreeCourse], found: Sequence[Found]) -> None:
        packed = pack_found(found)
        self.n_bytes += packed.nbytes * (len(self.bounds) - 2)
        learn_all(courses, map(unpack_found, self.exchange.swap_all(packed)))


def _next_expansions(courses: Sequence[TreeCourse]) -> list[Expansion]:
    return [
        expansion
        for course in courses
        if course.grown is None
        for expansion in course.next_expansions()
    ]
