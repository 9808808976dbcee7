"""Exact inference in a linear-chain CRF of any order: normalizers, marginals, path probabilities.

Context c at position t packs the previous labels, c = y[t-1] + K*y[t-2] + ...; lags before the
start count as 0, so only c < K**min(t, order) occurs. The potential of (t, c, y) is
scores[t, c or 0, y] + (start[y] at t = 0, else trans[c % K, y]) + (end[y] at the last position).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.chain.chain_kernels import (
    TINY,
    Doubles,
    Floats,
    Ints,
    Labels,
    Marginals,
    Mask,
    ScoredChunk,
    StepPotentials,
    log_space_pass,
    longest_of,
    path_scores_kernel,
    potential,
    scaled_pass,
)
from spacy_treecrf.engine.limits import MAX_ORDER

__all__ = [
    "EVERYTHING_ALLOWED",
    "Chain",
    "Doubles",
    "Floats",
    "Ints",
    "Labels",
    "Mask",
    "ScoredChunk",
    "StepPotentials",
    "as_kernel_array",
    "kernel_arguments",
    "log_normalizers",
    "log_probability_of",
    "longest_of",
    "node_marginals",
    "node_marginals_kernel",
    "pair_marginals",
    "pair_marginals_kernel",
    "path_scores",
    "potential",
    "span_probability",
    "step_potentials",
]

EVERYTHING_ALLOWED = np.zeros((0, 0), dtype=np.uint8)
_NO_PAIRS = np.zeros((0, 0, 0), dtype=np.float32)
_NO_NODES = np.zeros((0, 0), dtype=np.float64)


class ScaledMoves(NamedTuple):
    """Potentials of moves as factors for the scaled pass."""

    factors: Doubles  # shape: (n_labels + 1, n_labels), exp(moves - top)
    top: float  # the largest potential of a move
    fit: bool  # whether no factor underflows


@dataclass(frozen=True)
class Chain:
    """How labels follow each other: potentials of first, of neighbouring and of last labels.

    A potential of -inf forbids. Order 0 means independent positions and ignores all three arrays.
    The beam says how many states of a position training and label prediction follow where scores
    do not depend on the context; None means all. Probabilities of given paths, of spans and of
    the n best label sequences are exact all the same.
    """

    order: int
    start: Floats  # shape: (n_labels,)
    trans: Floats  # shape: (n_labels, n_labels), trans[u, v]: u before v
    end: Floats  # shape: (n_labels,)
    beam: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.order <= MAX_ORDER:
            raise ValueError(f"treecrf: chain order is {self.order}; use 0 to {MAX_ORDER}")
        for name in ("start", "trans", "end"):
            object.__setattr__(self, name, as_kernel_array(getattr(self, name), np.float32))
        n_labels = self.n_labels
        if n_labels < 1:
            raise ValueError("treecrf: a chain needs at least one label")
        if self.trans.shape != (n_labels, n_labels) or self.end.shape != (n_labels,):
            raise ValueError(
                f"treecrf: chain arrays disagree: start {self.start.shape}, "
                f"trans {self.trans.shape}, end {self.end.shape}; need (K,), (K, K), (K,)"
            )

    @classmethod
    def free(cls, n_labels: int, order: int) -> Chain:
        """A chain that prefers nothing and forbids nothing."""
        zeros = np.zeros(n_labels, dtype=np.float32)
        return cls(order, zeros, np.zeros((n_labels, n_labels), dtype=np.float32), zeros)

    def cooled(self, temperature: float) -> Chain:
        """The chain with its potentials divided by a temperature; what is forbidden stays so."""
        if temperature == 1.0:
            return self
        t = np.float32(temperature)
        return replace(self, start=self.start / t, trans=self.trans / t, end=self.end / t)

    @property
    def n_labels(self) -> int:
        return len(self.start)

    @property
    def n_contexts(self) -> int:
        return int(self.n_labels**self.order)

    @cached
    def steps(self) -> StepPotentials:
        """What kernels add to scores."""
        n_labels = self.n_labels
        moves = np.zeros((n_labels + 1, n_labels))
        if self.order == 0:
            return StepPotentials(0, moves, np.zeros(n_labels))
        moves[:n_labels] = self.trans
        moves[n_labels] = self.start
        return StepPotentials(self.order, moves, self.end.astype(np.float64))

    @cached
    def scaled_moves(self) -> ScaledMoves:
        """The moves of `steps` as factors."""
        moves = self.steps.moves
        possible = moves > -np.inf
        top = float(np.max(moves, where=possible, initial=-np.inf)) if possible.any() else 0.0
        factors = np.exp(moves - top)
        return ScaledMoves(factors, top, not np.any(possible & ~(factors >= TINY)))

    @property
    def pruned(self) -> int:
        """The width of the beam where it leaves states out; 0 where all states fit."""
        return self.beam if self.beam and self.order == 1 and self.beam < self.n_labels else 0


def as_kernel_array(array: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The array in the form that kernels are compiled for: contiguous and writable.

    It is copied only if it is not.
    """
    return np.require(array, dtype, ["C", "W"])


def kernel_arguments(
    scores: npt.ArrayLike,
    offsets: npt.ArrayLike,
    chain: Chain,
    allowed: npt.ArrayLike | None = None,
) -> tuple[Floats, Ints, Mask]:
    """Scores, offsets and mask as kernels need them, checked: kernels check no bounds."""
    scores = as_kernel_array(scores, np.float32)
    offsets = as_kernel_array(offsets, np.int64)
    n_rows, n_tables, n_labels = scores.shape
    if n_labels != chain.n_labels or n_tables not in (1, chain.n_contexts):
        raise ValueError(
            f"treecrf: scores have shape {scores.shape}, but a chain of order {chain.order} over "
            f"{chain.n_labels} labels needs (rows, 1 or {chain.n_contexts}, {chain.n_labels})"
        )
    if len(offsets) < 1 or offsets[0] < 0 or offsets[-1] > n_rows or np.any(np.diff(offsets) < 0):
        raise ValueError(
            f"treecrf: sequence offsets must rise from 0 to the {n_rows} rows of scores"
        )
    if allowed is None:
        return scores, offsets, EVERYTHING_ALLOWED
    allowed = as_kernel_array(allowed, np.uint8)
    if allowed.shape != (n_rows, n_labels):
        raise ValueError(
            f"treecrf: the mask of allowed labels has shape {allowed.shape}, "
            f"but the scores need {(n_rows, n_labels)}"
        )
    return scores, offsets, allowed


def step_potentials(chain: Chain) -> StepPotentials:
    """What kernels add to scores, from the potentials of the chain; not to be written to."""
    return chain.steps


def log_normalizers(
    scores: Floats, offsets: Ints, chain: Chain, allowed: Mask | None = None
) -> Doubles:
    """Log Z of every sequence, -inf where no label sequence is allowed (0 for an empty sequence).

    allowed (uint8[N, K]) clamps each position to the labels that are not 0 there.
    """
    return _run_all(scores, offsets, chain, allowed)


def pair_marginals(
    scores: Floats, offsets: Ints, chain: Chain, allowed: Mask | None = None
) -> tuple[Floats, Doubles]:
    """P(context c, y_t = y) as float32[N, n_contexts, K] and log Z.

    Contexts that cannot occur hold 0. A sequence without any allowed label sequence has log Z -inf
    and all marginals 0.
    """
    pairs = np.zeros((len(scores), chain.n_contexts, chain.n_labels), dtype=np.float32)
    return pairs, _run_all(scores, offsets, chain, allowed, pairs=pairs)


def node_marginals(
    scores: Floats, offsets: Ints, chain: Chain, allowed: Mask | None = None
) -> tuple[Doubles, Doubles]:
    """P(y_t = y) as float64[N, K] and log Z; all 0 and -inf without any allowed label sequence."""
    nodes = np.zeros((len(scores), chain.n_labels))
    return nodes, _run_all(scores, offsets, chain, allowed, nodes=nodes)


def path_scores(scores: Floats, offsets: Ints, labels: Labels, chain: Chain) -> Doubles:
    """The sum of potentials along the given, complete label sequences; -inf if forbidden."""
    scores, offsets, _ = kernel_arguments(scores, offsets, chain)
    labels = as_kernel_array(labels, np.int32)
    used = labels[offsets[0] : offsets[-1]]
    if len(labels) != len(scores) or np.any((used < 0) | (used >= chain.n_labels)):
        raise ValueError(
            f"treecrf: path_scores needs a label from 0 to {chain.n_labels - 1} for each of the "
            f"{len(scores)} rows; clamp unknown labels with log_normalizers(..., allowed) instead"
        )
    out = np.empty(len(offsets) - 1)
    path_scores_kernel(scores, offsets, labels, step_potentials(chain), out)
    return out


def log_probability_of(scores: Floats, offsets: Ints, chain: Chain, allowed: Mask) -> Doubles:
    """Log probability that every label of a sequence lies in its position's allowed set."""
    log_z = log_normalizers(scores, offsets, chain)
    clamped = log_normalizers(scores, offsets, chain, allowed)
    return np.subtract(clamped, log_z, out=clamped, where=clamped > -np.inf)


def span_probability(
    scores: Floats,
    chain: Chain,
    first: int,
    labels: Sequence[int],
    next_forbidden: Collection[int] | None = None,
) -> float:
    """P(y[first : first + len(labels)] = labels) in one sequence (scores[T, C, K]).

    With next_forbidden the label after the span must also be none of these (true at the end of
    the sequence): that the span is an entity, say, and not the head of a longer one.
    """
    length = len(scores)
    after = first + len(labels)
    if first < 0 or after > length:
        raise ValueError(
            f"treecrf: the span {first}:{after} lies outside of a sequence of {length} positions"
        )
    unknown = [y for y in (*labels, *(next_forbidden or ())) if not 0 <= y < chain.n_labels]
    if unknown:
        raise ValueError(
            f"treecrf: the span got label {unknown[0]}; labels are 0 to {chain.n_labels - 1}"
        )
    allowed = np.ones((length, chain.n_labels), dtype=np.uint8)
    allowed[first:after] = 0
    allowed[np.arange(first, after), np.asarray(labels, dtype=np.int64)] = 1
    if next_forbidden is not None and after < length:
        allowed[after, list(next_forbidden)] = 0
    offsets = np.array([0, length], dtype=np.int64)
    return math.exp(log_probability_of(scores, offsets, chain, allowed)[0])


def pair_marginals_kernel(
    sequences: ScoredChunk, chain: Chain, allowed: Mask, out: Floats, log_z: Doubles
) -> None:
    """pair_marginals of the sequences into out and log_z; releases the GIL."""
    _run(sequences, chain, allowed, Marginals(out, _NO_NODES, log_z))


def node_marginals_kernel(
    sequences: ScoredChunk, chain: Chain, allowed: Mask, out: Doubles, log_z: Doubles
) -> None:
    """node_marginals of the sequences into out and log_z; releases the GIL."""
    _run(sequences, chain, allowed, Marginals(_NO_PAIRS, out, log_z))


def _run_all(
    scores: Floats,
    offsets: Ints,
    chain: Chain,
    allowed: Mask | None,
    pairs: Floats = _NO_PAIRS,
    nodes: Doubles = _NO_NODES,
) -> Doubles:
    """Check the arguments, run inference for all sequences on this thread and return log Z."""
    scores, offsets, mask = kernel_arguments(scores, offsets, chain, allowed)
    n = len(offsets) - 1
    log_z = np.empty(n)
    _run(ScoredChunk(scores, offsets, 0, n), chain, mask, Marginals(pairs, nodes, log_z))
    return log_z


def _run(sequences: ScoredChunk, chain: Chain, allowed: Mask, out: Marginals) -> None:
    """Infer what `out` has room for: by the scaled pass, and in log space where that gives up."""
    steps = chain.steps
    moves, offsets = chain.scaled_moves, sequences.offsets
    first, last = sequences.first, sequences.last
    rows = slice(int(offsets[first]), int(offsets[last]))
    for marginals in (out.pairs, out.nodes):
        if len(marginals):
            marginals[rows] = 0.0
    if moves.fit:
        scaled_pass(sequences, steps, moves.factors, allowed, out)
        lengths = offsets[first + 1 : last + 1] - offsets[first:last]  # np.diff is slow for few
        out.log_z[first:last] += moves.top * lengths
    else:
        out.log_z[first:last] = np.nan
    # From here, not from the kernel: most programs never need the twin, nor its compilation.
    for s in first + np.flatnonzero(np.isnan(out.log_z[first:last])):
        out.log_z[s] = log_space_pass(sequences, s, steps, allowed, out)
