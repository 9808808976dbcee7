"""Growth of the trees of some labels by all workers: each of them does this at the same time.

What a worker needs of the others comes by mail. All of them learn the same splits, and so choose
the same leaves to split next. Trees are in several groups, which take turns: while the mail of one
group is under way, the worker does its part of the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar

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

GROUPS = 2  # of trees that take turns: one computes while the mail of the other is under way

Result = TypeVar("Result")
Ticket = TypeVar("Ticket")

# Yields a value for each worker, and is sent what all workers have sent here, in their order.
Swaps = Generator[Sequence[Any], list[Any], Result]


class Exchange(Protocol[Ticket]):
    """How workers that do the same give each other values."""

    @property
    def me(self) -> int:
        """Which of them this one is."""
        ...

    def send(self, outgoing: Sequence[Any]) -> Ticket:
        """Send each worker its value, and do not wait. All workers send in the same order."""
        ...

    def take(self, sent: Ticket) -> list[Any]:
        """Wait for what all have sent here in return; returns it in their order."""
        ...


class Grown(NamedTuple):
    """The trees, and what this worker has sent for them."""

    trees: list[Tree]
    n_bytes: int
    n_exchanges: int  # of the group of trees that had most


def in_turn(works: Sequence[Swaps[Result]], exchange: Exchange[Any]) -> list[Result]:
    """Do several works, each as far as it comes until its mail is there; returns their results.

    All workers do the same works, so that their turns are the same.
    """
    results: dict[int, Result] = {}
    waiting = deque((i, exchange.send(next(work))) for i, work in enumerate(works))
    while waiting:
        i, sent = waiting.popleft()
        try:
            outgoing = works[i].send(exchange.take(sent))
        except StopIteration as done:
            results[i] = done.value
        else:
            waiting.append((i, exchange.send(outgoing)))
    return [results[i] for i in range(len(works))]


def groups_of(n_trees: int, n_workers: int, threads: int) -> int:
    """How many groups of trees take turns, each with work for so many threads of a worker."""
    return 1 if n_workers == 1 else max(1, min(GROUPS, n_trees // threads))


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
        exchange: Exchange[Any],
        workers: Workers,
        careful: bool,
    ) -> None:
        self.trees, self.data, self.bounds = trees, data, bounds
        self.exchange, self.workers = exchange, workers
        self.careful = careful

    def grow(
        self,
        labels: Sequence[int],
        trimmed: Sequence[Trimming],
        limits: TreeLimits,
        round_seed: np.uint64,
        n_groups: int,
    ) -> Grown:
        """The trees of these labels. trimmed: of all labels. n_groups: the same on all workers"""
        groups = [range(first, len(labels), n_groups) for first in range(n_groups)]
        works = [
            _Group(self, [self.trees[i] for i in group]).grow(
                [labels[i] for i in group], trimmed, limits, round_seed
            )
            for group in groups
        ]
        found = in_turn(works, self.exchange)
        trees = {
            i: tree
            for group, grown in zip(groups, found, strict=True)
            for i, tree in zip(group, grown.trees, strict=True)
        }
        return Grown(
            [trees[i] for i in range(len(labels))],
            sum(grown.n_bytes for grown in found),
            max(grown.n_exchanges for grown in found),
        )


class _Group:
    """Trees that grow in step."""

    def __init__(self, together: GrowingTogether, trees: Sequence[GrowingRows]) -> None:
        self.trees, self.data, self.bounds = trees, together.data, together.bounds
        self.me, self.workers = together.exchange.me, together.workers
        self.careful = together.careful
        self.n_bytes = 0
        self.n_owners = len(self.bounds) - 1
        self._to, self._from = ([ByteRoom() for _ in range(self.n_owners)] for _ in range(2))

    def grow(
        self,
        labels: Sequence[int],
        trimmed: Sequence[Trimming],
        limits: TreeLimits,
        round_seed: np.uint64,
    ) -> Swaps[Grown]:
        """The trees of these labels. trimmed: of all labels"""
        courses = yield from self._courses(labels, trimmed, limits, round_seed)
        rules = [course.rule for course in courses]
        owner = FeatureOwner(self.data, self.me, self.bounds, rules, room_of(limits))
        roots = self.workers.map(lambda tree: tree.root(), self.trees)
        totals = [course.totals for course in courses]
        found = owner.start((yield from self._mine_of_all(roots)), totals, self.workers)
        splittable = {course.tree for course in courses if course.searches_root}
        yield from self._learn(courses, [each for each in found if each.tree in splittable])
        n_exchanges = 1
        while expansions := _next_expansions(courses):
            made = expand_all(self.trees, expansions, self.workers)
            parts = yield from self._mine_of_all(made)
            yield from self._learn(courses, owner.expand(expansions, parts, self.workers))
            n_exchanges += 1
        grown = [course.grown for course in courses if course.grown is not None]
        return Grown(grown, self.n_bytes, n_exchanges)

    def _courses(
        self,
        labels: Sequence[int],
        trimmed: Sequence[Trimming],
        limits: TreeLimits,
        round_seed: np.uint64,
    ) -> Swaps[list[TreeCourse]]:
        own = [tree.start for tree in self.trees]
        found: list[list[TreeStart]] = yield [own] * self.n_owners
        courses = []
        for tree, (label, starts) in enumerate(zip(labels, zip(*found, strict=True), strict=True)):
            tree_seed = np.uint64(mix(round_seed, np.uint64(label)))
            rule = rule_of_tree(trimmed[label].scales, limits, tree_seed)
            totals = np.sum([start.totals for start in starts], axis=0)
            n_pairs = sum(start.n_pairs for start in starts)
            courses.append(TreeCourse(tree, totals, n_pairs, limits, rule, self.careful))
        return courses

    def _mine_of_all(self, nodes: Sequence[NodeSums]) -> Swaps[list[Sequence[PartOfNode]]]:
        """What all workers have of the features that this one owns. nodes: all that this one has"""
        outgoing: list[Message] = []
        own: list[NodeSums] = []
        for owner, (first, last) in enumerate(pairwise(self.bounds.tolist())):
            slices = [slice_for_owner(node, owner, self.bounds) for node in nodes]
            if owner == self.me:
                own, slices = slices, []
            # A room is free again: owners told what they found after they had added this up.
            outgoing.append(pack_sums(slices, first, last - first, self._to[owner]))
        self.n_bytes += sum(message.nbytes for message in outgoing)
        found: list[Message] = yield outgoing
        return [
            own if peer == self.me else unpack_sums(message, self._from[peer])
            for peer, message in enumerate(found)
        ]

    def _learn(self, courses: list[TreeCourse], found: Sequence[Found]) -> Swaps[None]:
        packed = pack_found(found)
        self.n_bytes += packed.nbytes * (self.n_owners - 1)
        answers: list[npt.NDArray[np.float64]] = yield [packed] * self.n_owners
        learn_all(courses, map(unpack_found, answers))


def _next_expansions(courses: Sequence[TreeCourse]) -> list[Expansion]:
    return [
        expansion
        for course in courses
        if course.grown is None
        for expansion in course.next_expansions()
    ]
