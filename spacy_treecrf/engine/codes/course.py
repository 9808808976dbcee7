"""The course of joint training: what was learned in its rounds, and what it takes to go on.

Steps have momentum, so that the trees of a round count more with every round after it. A course
keeps them as they were grown, with the factors of the steps: scores that are added up along it are,
bit for bit, those of the training that made it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.potentials import Potentials
from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.engine.trees.forest import MAX_VALUE, Forest, join_forests
from spacy_treecrf.storage.state_reader import StateReader

Floats = npt.NDArray[np.float32]

# Share of the last step that goes on in the next one (heavy ball): bits that agree for rounds gain
# speed, and those that swing lose it.
MOMENTUM = 0.5
LEAST_FACTOR = 2.0**-6


@dataclass(frozen=True)
class Step:
    """How far one round has gone.

    has_momentum: Whether the step before it went on in this one.
    factor: The share of the round's own trees that was added, from 0 to 1.
    """

    has_momentum: bool
    factor: float

    @property
    def momentum(self) -> float:
        return MOMENTUM if self.has_momentum else 0.0

    def shorter(self) -> Step:
        """The step to try next: first without momentum, then of half the length, at last none."""
        if self.has_momentum:
            return Step(False, self.factor)
        return Step(False, self.factor / 2.0 if self.factor > LEAST_FACTOR else 0.0)

    def moved(self, scores: Floats, speed: Floats, own: Floats) -> tuple[Floats, Floats]:
        """Scores and their speed after the step. own: What the round's trees add as grown."""
        after = scores + (np.float32(self.momentum) * speed + np.float32(self.factor) * own)
        return after, after - scores


@dataclass(frozen=True)
class Course:
    """Rounds of joint training, and where they have led.

    base: What was learned before; its trees count as they are. Its edges are not looked at.
    forests: The trees of each round, as they were grown.
    edges: Scores of transitions before they are rounded. shape: (n_labels + 1, n_labels)
    edge_speed: How much the last step has added to them. shape: (n_labels + 1, n_labels)
    """

    base: Potentials
    forests: tuple[Forest, ...]
    steps: tuple[Step, ...]
    edges: Floats
    edge_speed: npt.NDArray[np.float64]

    @classmethod
    def start(cls, base: Potentials) -> Course:
        """The course that goes on from there, at rest."""
        return cls(base, (), (), base.edges, np.zeros(base.edges.shape))

    @property
    def rounds(self) -> int:
        return self.base.rounds + len(self.steps)

    @property
    def n_trees(self) -> int:
        return self.base.n_trees + sum(forest.n_trees for forest in self.forests)

    def after(
        self, forest: Forest, step: Step, edges: Floats, edge_speed: npt.NDArray[np.float64]
    ) -> Course:
        """The course with one more round."""
        return Course(self.base, (*self.forests, forest), (*self.steps, step), edges, edge_speed)

    @cached
    def potentials(self) -> Potentials:
        """What is learned: the trees of each round count what all steps have made of them."""
        scales = self._scales()
        scaled = [f.scaled(scale) for f, scale in zip(self.forests, scales, strict=True)]
        return replace(
            self.base,
            edges=to_grid(self.edges),
            forests=(*self.base.forests, *scaled),
            rounds=self.rounds,
        )

    def _scales(self) -> list[float]:
        """How much the trees of each round count: their factor times 1 + m + m m' + ..."""
        scales = []
        following = 1.0
        for step in reversed(self.steps):
            scales.append(step.factor * following)
            following = 1.0 + step.momentum * following
        return scales[::-1]

    @property
    def as_grown(self) -> Forest:
        """The trees as they are stored: those of the base, then those of each round as grown."""
        return join_forests([*self.base.forests, *self.forests])

    def to_state(self) -> dict[str, Any]:
        """What is stored beside the trees and the rounded edges."""
        return {
            "has_momentum": np.array([step.has_momentum for step in self.steps], np.bool_),
            "factor": np.array([step.factor for step in self.steps], np.float64),
            "edges": self.edges,
            "edge_speed": self.edge_speed,
        }

    @classmethod
    def from_state(cls, reader: StateReader, stored: Potentials, limit: float) -> Course:
        """Read a course whose trees and rounded edges were read already.

        stored: Holds all trees as one forest, as `as_grown` made it.
        limit: What scores of transitions may be.
        """
        n_labels, n_bits = stored.edges.shape[1], stored.linear.shape[2]
        has_momentum = reader.array("has_momentum", np.bool_, (None,))
        n = len(has_momentum)
        factor = reader.array("factor", np.float64, (n,), low=0.0, high=1.0)
        shape = (n_labels + 1, n_labels)
        edges = reader.array("edges", np.float32, shape, low=-limit, high=limit)
        edge_speed = reader.array("edge_speed", np.float64, shape, low=-limit, high=limit)
        first = stored.rounds - n
        forest = stored.forest
        n_base = int(np.searchsorted(forest.tree_round, first))
        trees = np.arange(forest.n_trees - n_base)
        # A tree for each bit in each round, which also bounds how many rounds there can be.
        if (
            first < 0
            or len(trees) != n * n_bits
            or not np.array_equal(forest.tree_round[n_base:], first + trees // n_bits)
            or not np.array_equal(forest.tree_class[n_base:], trees % n_bits)
        ):
            reader.fail("factor", "a step for each round that has a tree for each bit", "others")
        if not np.array_equal(to_grid(edges), stored.edges):
            reader.fail("edges", "what the model's edges are rounded from", "others")
        base = replace(stored, forests=(forest.reordered(np.arange(n_base)),), rounds=first)
        course = cls(
            base,
            tuple(
                forest.reordered(np.arange(tree, tree + n_bits))
                for tree in range(n_base, forest.n_trees, n_bits)
            ),
            tuple(map(Step, has_momentum.tolist(), factor.tolist())),
            edges,
            edge_speed,
        )
        if np.any(np.abs(course.potentials.forest.value) > MAX_VALUE):
            reader.fail("factor", f"trees whose values stay within {MAX_VALUE}", "others")
        return course
