"""What boosting with future features learns, and what it takes to go on with it.

Top-level rounds and detectors take turns, and each turn may go back to the best of those before.
A course says where in this a training was, so that one which goes on makes, bit for bit, the
model of one that never stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.future.detectors import Detector
from spacy_treecrf.engine.sequences import DIGEST_BYTES
from spacy_treecrf.engine.trees.forest import Forest, join_forests
from spacy_treecrf.engine.trees.splitting import NUMERIC
from spacy_treecrf.storage.state_reader import StateReader

MAX_COUNT = 2**31 - 1


@dataclass(frozen=True)
class Mark:
    """The first trees of the top level and the first detectors: a state to come back to."""

    n_trees: int
    n_detectors: int

    def to_state(self) -> dict[str, Any]:
        return {"trees": self.n_trees, "detectors": self.n_detectors}

    @classmethod
    def from_state(cls, reader: StateReader, past: Mark) -> Mark:
        return cls(
            reader.integer("trees", 0, past.n_trees),
            reader.integer("detectors", 0, past.n_detectors),
        )


@dataclass(frozen=True)
class Course:
    """Where a training was when a round had ended.

    digest: Of the training data and of the held-out data, if any. A course belongs to its data.
    growing: Labels whose detectors are being learned; empty while top-level trees are.
    ready: Which of them have trees: these are the last of the potentials' detectors.
    open: Which of them may grow further.
    tried: Labels that had their turn since the last top level.
    stalled: Rounds since the best one of this top level.
    best: The best round of this top level, or of the one before while detectors grow.
    before: The best round of the top level before it, if any.
    """

    digest: npt.NDArray[np.uint8]  # shape: (2, DIGEST_BYTES)
    growing: npt.NDArray[np.int32]  # shape: (n_growing,)
    ready: npt.NDArray[np.bool_]  # shape: (n_growing,)
    open: npt.NDArray[np.bool_]  # shape: (n_growing,)
    tried: npt.NDArray[np.int32]
    stalled: int
    finished: bool
    best: Mark
    before: Mark | None

    def to_state(self) -> dict[str, Any]:
        before = [] if self.before is None else [self.before.to_state()]
        return self.__dict__ | {"best": self.best.to_state(), "before": before}

    @classmethod
    def from_state(
        cls,
        reader: StateReader,
        forest: Forest,
        detectors: tuple[Detector, ...],
        sizes: tuple[int, int],
    ) -> Course:
        """Read a course of the trees and detectors that were read already.

        sizes: How many labels there are, and numeric columns beside those of detectors.
        """
        n_labels, n_numeric = sizes
        growing = reader.array("growing", np.int32, (None,), low=0, high=n_labels - 1)
        ready = reader.array("ready", np.bool_, (len(growing),))
        labels = [detector.label for detector in detectors]
        n_done = len(detectors) - int(ready.sum())
        if n_done < 0 or growing[ready].tolist() != labels[n_done:]:
            reader.fail("ready", "the labels of the last detectors", "others")
        end = Mark(forest.n_trees, n_done)
        best = Mark.from_state(reader.nested("best"), end)
        marks = [Mark.from_state(mark, best) for mark in reader.nested_list("before")[:1]]
        known = known_detectors(forest, detectors[:n_done])
        for mark in (best, *marks):
            low = int(known[mark.n_trees - 1]) if mark.n_trees else 0
            high = int(known[mark.n_trees]) if mark.n_trees < len(known) else n_done
            if not low <= mark.n_detectors <= high:
                reader.fail("best", "the detectors that its trees know", "others")
        tests = forest.kind == NUMERIC
        known_at = np.repeat(known, np.diff(forest.tree_first))
        if np.any(forest.feature[tests] - n_numeric >= known_at[tests]):
            reader.fail("best", "trees that test detectors of earlier rounds", "others")
        return cls(
            reader.array("digest", np.uint8, (2, DIGEST_BYTES)),
            growing,
            ready,
            reader.array("open", np.bool_, (len(growing),)),
            reader.array("tried", np.int32, (None,), low=0, high=n_labels - 1),
            reader.integer("stalled", 0, MAX_COUNT),
            reader.boolean("finished"),
            best,
            marks[0] if marks else None,
        )


@dataclass(frozen=True)
class FuturePotentials:
    """What is learned: top-level trees, and detectors in the order of their columns.

    course: What it takes to go on. None: nothing is learned yet, labels were added since, or the
        model is of version 0.1.0, which stored none.
    """

    forests: tuple[Forest, ...]  # over `LabelHistory` features, own numeric columns, then detectors
    detectors: tuple[Detector, ...]
    rounds: int
    course: Course | None = None

    @property
    def forest(self) -> Forest:
        return join_forests(self.forests)

    @property
    def n_trees(self) -> int:
        """How many trees there are in all, those of detectors included."""
        return self.end.n_trees + sum(detector.forest.n_trees for detector in self.detectors)

    @property
    def end(self) -> Mark:
        return Mark(sum(forest.n_trees for forest in self.forests), len(self.detectors))

    def until(self, mark: Mark) -> FuturePotentials:
        """What was learned up to there."""
        first = self.forest.reordered(np.arange(mark.n_trees))
        return FuturePotentials((first,), self.detectors[: mark.n_detectors], self.rounds)


def known_detectors(forest: Forest, detectors: tuple[Detector, ...]) -> npt.NDArray[np.int64]:
    """How many detectors were there when each top-level tree was grown. shape: (n_trees,)"""
    rounds = [max(detector.forest.tree_round, default=-1) for detector in detectors]
    in_order = np.maximum.accumulate(np.array(rounds, np.int64))
    return np.searchsorted(in_order, forest.tree_round, side="left").astype(np.int64)


def in_order_of_learning(
    potentials: FuturePotentials, first: Mark, last: Mark
) -> Iterator[Forest | Detector]:
    """The trees of each round, and the detectors, that are between two marks."""
    forest, detectors = potentials.forest, potentials.detectors[: last.n_detectors]
    known = known_detectors(forest, detectors)
    n_detectors, tree = first.n_detectors, first.n_trees
    while tree < last.n_trees:
        yield from detectors[n_detectors : known[tree]]
        n_detectors = max(n_detectors, int(known[tree]))
        past = int(np.searchsorted(forest.tree_round, forest.tree_round[tree], side="right"))
        past = min(past, last.n_trees)
        yield forest.reordered(np.arange(tree, past))
        tree = past
    yield from detectors[n_detectors:]
