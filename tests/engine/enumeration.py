"""Brute force over all label sequences of one sequence: the oracle for everything probabilistic."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from spacy_treecrf.engine.chain.chain import Chain

Path = tuple[int, ...]


@dataclass(frozen=True)
class Enumeration:
    """All label sequences with finite score, their scores, and what follows by summation."""

    n_labels: int
    order: int
    paths: list[Path]
    scores: npt.NDArray[np.float64]

    @property
    def log_z(self) -> float:
        if not self.paths:
            return -np.inf
        top = self.scores.max()
        return float(top + np.log(np.exp(self.scores - top).sum()))

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        return np.exp(self.scores - self.log_z) if self.paths else np.zeros(0)

    def pair_marginals(self, length: int) -> npt.NDArray[np.float64]:
        pairs = np.zeros((length, self.n_labels**self.order, self.n_labels))
        for path, probability in zip(self.paths, self.probabilities, strict=True):
            for t, y in enumerate(path):
                pairs[t, context_of(path, t, self.order, self.n_labels), y] += probability
        return pairs

    def probability_that(self, holds: Callable[[Path], bool]) -> float:
        chosen = np.array([holds(path) for path in self.paths], dtype=bool)
        return float(self.probabilities[chosen].sum())


def context_of(path: Path, t: int, order: int, n_labels: int) -> int:
    return sum(path[t - lag] * n_labels ** (lag - 1) for lag in range(1, min(t, order) + 1))


def path_score(scores: npt.NDArray[np.float32], chain: Chain, path: Path) -> float:
    total = 0.0
    for t, y in enumerate(path):
        c = context_of(path, t, chain.order, chain.n_labels)
        total += float(scores[t, c if scores.shape[1] > 1 else 0, y])
        if chain.order > 0:
            total += float(chain.start[y] if t == 0 else chain.trans[path[t - 1], y])
            if t == len(path) - 1:
                total += float(chain.end[y])
    return total


def enumerate_paths(
    scores: npt.NDArray[np.float32], chain: Chain, allowed: npt.NDArray[np.uint8] | None = None
) -> Enumeration:
    """Every label sequence of one sequence (scores[T, C, K]) that nothing forbids."""
    paths = []
    values = []
    for path in itertools.product(range(chain.n_labels), repeat=len(scores)):
        if allowed is not None and not all(allowed[t, y] for t, y in enumerate(path)):
            continue
        score = path_score(scores, chain, path)
        if score > -np.inf:
            paths.append(path)
            values.append(score)
    return Enumeration(chain.n_labels, chain.order, paths, np.array(values, dtype=np.float64))


@dataclass(frozen=True)
class Problem:
    """Stacked sequences small enough to enumerate, with a chain and a mask of allowed labels."""

    scores: npt.NDArray[np.float32]
    offsets: npt.NDArray[np.int64]
    chain: Chain
    allowed: npt.NDArray[np.uint8]

    def rows(self) -> list[slice]:
        return [slice(*pair) for pair in itertools.pairwise(self.offsets.tolist())]


def random_problem(
    seed: int,
    order: int,
    n_labels: int,
    lengths: list[int],
    *,
    joint: bool,
    scale: float = 2.0,
    forbidden: float = 0.0,
    whole_numbers: bool = False,
) -> Problem:
    """A problem with potentials of the given scale; a part of chain and mask is forbidden."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int, holes: float = 0.0) -> npt.NDArray[np.float32]:
        values = rng.normal(scale=scale, size=shape)
        if whole_numbers:
            values = np.round(values)
        values[rng.random(shape) < holes] = -np.inf
        return values.astype(np.float32)

    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    scores = draw(int(offsets[-1]), n_labels**order if joint else 1, n_labels)
    start, end = draw(n_labels, holes=forbidden), draw(n_labels, holes=forbidden)
    chain = Chain(order, start, draw(n_labels, n_labels, holes=forbidden), end)
    allowed = (rng.random((len(scores), n_labels)) >= forbidden).astype(np.uint8)
    return Problem(scores, offsets, chain, allowed)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    n_labels = draw(st.integers(1, 3))
    longest = {1: 8, 2: 6, 3: 5}[n_labels]
    return random_problem(
        draw(st.integers(0, 2**31)),
        draw(st.integers(0, 4)),
        n_labels,
        draw(st.lists(st.integers(0, longest), min_size=1, max_size=3)),
        joint=draw(st.booleans()),
        scale=draw(st.sampled_from([0.0, 1.0, 20.0, 300.0])),
        forbidden=draw(st.sampled_from([0.0, 0.2, 0.5])),
        whole_numbers=draw(st.booleans()),
    )
