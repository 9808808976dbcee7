"""Residuals: what is annotated minus what the model expects, for every row, context and label.

This is the functional gradient of the log-likelihood (Hao 2009, proposition 3.1). Where labels
are not annotated, the annotated side is its expectation under the model clamped to the labels
that are known, so nothing else changes for partial labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.annotation import Annotated, AnnotationTotals, Observed
from spacy_treecrf.engine.chain import chain as chains
from spacy_treecrf.engine.chain.beam import beam_forward_backward
from spacy_treecrf.engine.chain.chain import EVERYTHING_ALLOWED, Chain, ScoredChunk
from spacy_treecrf.engine.chain.mixing import edge_gamma, joint_messages, node_gamma
from spacy_treecrf.engine.chain.transition_chain import (
    TransitionMarginals,
    forward_backward,
    independent,
    transition_factors,
)
from spacy_treecrf.engine.exact_sums import exact_total
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.threads import Workers

# Bounds without regard to neighbours: sum_j |H_ij| = 2 p (1 - p) among the labels of one
# position; an edge also meets the two edges beside it (theorem 4.2 without its messages).
LOCAL_NODE_GAMMA = 2.0
LOCAL_EDGE_GAMMA = 6.0

# g and h, the negative gradient and the bound of its curvature: each (n_rows, n_contexts)
Gradient = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
# The gradient of one label's pairs, of some rows. An empty h means that every hessian is 1.
GradientOfLabel = Callable[[int, slice], Gradient]

ALL_ROWS = slice(None)
_NO_PAIRS = np.zeros((0, 0, 0), np.float32)


@dataclass(frozen=True)
class Bound:
    """How the hessian of a row is bounded; without a bound each pair's hessian is its weight."""

    mixing: bool  # gamma from the mixing rate, else the local constants
    max_step: float  # h >= |g| / max_step: no leaf can exceed max_step ("robust Newton")


@dataclass(frozen=True)
class Residuals:
    """Gradients and hessians of the log-likelihood, and the log-likelihood itself.

    Those of all labels together would take twice the memory of the scores, so that they are made
    label by label when they are asked for.
    """

    of_label: GradientOfLabel
    edge_g: npt.NDArray[np.float64]  # shape: (n_labels + 1, n_labels); last: the first label
    edge_h: npt.NDArray[np.float64]
    log_likelihood: float
    # shape: (n_clamped_rows, n_contexts, n_labels), see Annotated.clamped_row; may be empty
    clamped: npt.NDArray[np.float32]

    @property
    def g(self) -> npt.NDArray[np.float32]:
        """Gradients of all labels. shape: (n_labels, n_rows, n_contexts)"""
        return np.stack([self.of_label(k, ALL_ROWS)[0] for k in range(self.edge_g.shape[1])])

    @property
    def h(self) -> npt.NDArray[np.float32]:
        """Hessians of all labels; shape (n_labels, 0, 0) where every hessian is 1."""
        return np.stack([self.of_label(k, ALL_ROWS)[1] for k in range(self.edge_g.shape[1])])


class ResidualSums(NamedTuple):
    """Terms, along the first axis of each array, whose exact sums are those over all chunks."""

    expected_edges: npt.NDArray[np.float64]  # shape: (n_terms, n_labels + 1, n_labels)
    clamped_edges: npt.NDArray[np.float64]  # the same of partly annotated sequences
    gamma: npt.NDArray[np.float64]  # shape: (n_terms,), of the edges' gamma times rows
    log_likelihood: npt.NDArray[np.float64]  # shape: (n_terms,)


class RowResiduals(NamedTuple):
    """The gradients of some rows, and what these rows add to the sums of all."""

    of_label: GradientOfLabel
    clamped: npt.NDArray[np.float32]  # see `Residuals`
    sums: ResidualSums


@dataclass(frozen=True)
class Expectation:
    """What a model expects of a chunk of sequences."""

    pairs: npt.NDArray[np.float32]  # shape: (n_rows, n_contexts, n_labels)
    edges: npt.NDArray[np.float64]  # shape: (n_labels + 1, n_labels), weighted sums
    log_z: npt.NDArray[np.float64]  # shape: (n_sequences,)
    gamma: npt.NDArray[np.float32]  # shape: (n_rows,)
    edge_gamma: float  # mean over the rows


@dataclass(frozen=True)
class _Part:
    """One chunk of an annotated training set; rows and sequences are numbered from 0."""

    annotated: Annotated
    rows: slice  # of the training set
    sequences: ScoredChunk  # scores: (n_rows, 1 or n_contexts, n_labels)
    allowed: npt.NDArray[np.uint8]  # shape: (n_rows, n_labels), or empty if nothing is clamped
    weights: npt.NDArray[np.float64]  # shape: (n_sequences,)

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        return self.sequences.offsets

    @property
    def nodes(self) -> ScoredChunk:
        """Scores without contexts, labels that are not allowed ruled out. (n_rows, n_labels)"""
        scores = self.sequences.scores[:, 0]
        if len(self.allowed):
            scores = np.where(self.allowed > 0, scores, np.float32(-np.inf))
        return self.sequences._replace(scores=scores)


@dataclass(frozen=True)
class _Found:
    """What inference writes for one chunk."""

    pairs: npt.NDArray[np.float32]  # shape: (n_rows, n_contexts, n_labels)
    edges: npt.NDArray[np.float64]  # shape: (n_labels + 1, n_labels), weighted sums
    log_z: npt.NDArray[np.float64]  # shape: (n_sequences,)
    messages: npt.NDArray[np.float32]  # shape: (n_rows, 2), left and right, if mixing is wanted


def expect(
    annotated: Annotated,
    scores: npt.NDArray[np.float32],
    chain: Chain,
    chunk: tuple[int, int],
    mixing: bool,
    clamp: bool = False,
    edges: bool = True,
) -> Expectation:
    """Marginals of one chunk; `clamp` restricts every position to its annotated label.

    edges: Whether edges of a joint model are summed up as well; else they are 0.
    """
    part = _part_of(annotated, scores, chunk, clamp)
    n_rows, n_labels = part.rows.stop - part.rows.start, annotated.n_labels
    found = _Found(
        np.empty((n_rows, annotated.n_contexts, n_labels), np.float32),
        np.zeros((n_labels + 1, n_labels)),
        np.empty(len(part.weights)),
        np.zeros((n_rows, 2), np.float32),
    )
    if annotated.order == 0:
        independent(part.nodes.scores, part.offsets, found.pairs[:, 0], found.log_z)
    elif annotated.joint:
        _expect_contexts(part, chain, mixing, edges, found)
    else:
        _expect_transitions(part, chain, mixing, found)
        _redo_underflowed(part, chain, found)
    first_labels = found.pairs[part.offsets[:-1]].sum(axis=1, dtype=float)
    found.edges[n_labels] = (part.weights[:, None] * first_labels).sum(axis=0)
    return _bounded(part, mixing, found)


def _part_of(
    annotated: Annotated, scores: npt.NDArray[np.float32], chunk: tuple[int, int], clamp: bool
) -> _Part:
    """One chunk of the training set under these scores."""
    data = annotated.data
    rows = data.rows_of(chunk)
    offsets = data.offsets[chunk[0] : chunk[1] + 1] - rows.start
    return _Part(
        annotated,
        rows,
        ScoredChunk(scores[rows], offsets, 0, len(offsets) - 1),
        annotated.allowed[rows] if clamp else EVERYTHING_ALLOWED,
        annotated.sequence_weights[chunk[0] : chunk[1]],
    )


def _expect_transitions(part: _Part, chain: Chain, mixing: bool, found: _Found) -> None:
    """Inference with node scores and one transition matrix; log Z is NaN where it underflows."""
    factors, of_sequence, of_transition = transition_factors(chain)
    if factors is None:
        found.log_z[:] = np.nan
        return
    n_labels = part.annotated.n_labels
    out = TransitionMarginals(
        found.pairs[:, 0], found.edges[:n_labels], found.log_z, found.messages
    )
    if chain.pruned:
        kept_labels = part.annotated.data.labels[part.rows]
        beam_forward_backward(part.nodes, factors, chain.pruned, kept_labels, part.weights, out)
    else:
        forward_backward(part.nodes, factors, part.weights, mixing, out)
    found.log_z[:] += of_sequence + of_transition * (np.diff(part.offsets) - 1)


def _redo_underflowed(part: _Part, chain: Chain, found: _Found) -> None:
    """Redo the sequences whose log Z is NaN by the general kernels, which can use log space."""
    n_labels = part.annotated.n_labels
    for s in np.flatnonzero(np.isnan(found.log_z)):
        some = slice(part.offsets[s], part.offsets[s + 1])
        exact, found.log_z[s : s + 1] = chains.pair_marginals(
            part.sequences.scores[some],
            np.array([0, some.stop - some.start]),
            chain,
            part.allowed[some] if len(part.allowed) else None,
        )
        found.pairs[some, 0] = exact.sum(axis=1)
        found.edges[:n_labels] += part.weights[s] * exact[1:].sum(axis=0, dtype=float)
        found.messages[some] = some.stop - some.start


def _expect_contexts(part: _Part, chain: Chain, mixing: bool, edges: bool, found: _Found) -> None:
    """Inference with scores of every context."""
    n_labels, pairs = part.annotated.n_labels, found.pairs
    chains.pair_marginals_kernel(part.sequences, chain, part.allowed, pairs, found.log_z)
    lengths = np.diff(part.offsets)
    if edges:
        row_weights = np.repeat(part.weights, lengths).astype(np.float32)
        inner = part.annotated.lags[part.rows] > 0
        weighted = row_weights[inner, None, None] * pairs[inner]
        by_label = weighted.reshape(len(weighted), pairs.shape[1] // n_labels, n_labels, n_labels)
        found.edges[:n_labels] = by_label.sum(axis=(0, 1), dtype=float)
    if mixing and chain.order == 1:
        joint_messages(pairs, part.offsets, found.messages)
    elif mixing:
        found.messages[:] = np.repeat(lengths, lengths)[:, None]


def _bounded(part: _Part, mixing: bool, found: _Found) -> Expectation:
    """The expectation with the gamma of each row, from its messages or the local constants."""
    pairs, edges, log_z = found.pairs, found.edges, found.log_z
    if not mixing:
        gamma = np.full(len(pairs), LOCAL_NODE_GAMMA, np.float32)
        return Expectation(pairs, edges, log_z, gamma, LOCAL_EDGE_GAMMA)
    of_edges = edge_gamma(found.messages, part.offsets[:-1])
    gamma = of_edges if part.annotated.joint else node_gamma(found.messages)
    return Expectation(pairs, edges, log_z, gamma, float(of_edges.mean()))


@kernel
def _put_by_label(
    pairs: npt.NDArray[np.float32], first_row: int, by_label: npt.NDArray[np.float32]
) -> None:
    """Put pairs (n_rows, n_contexts, n_labels) into by_label (n_labels, all rows, n_contexts)."""
    n_rows, n_contexts, n_labels = pairs.shape
    for k in range(n_labels):
        for i in range(n_rows):
            for c in range(n_contexts):
                by_label[k, first_row + i, c] = pairs[i, c, k]


class _Expected(NamedTuple):
    """What a model expects of a training set, kept label by label."""

    pairs: npt.NDArray[np.float32]  # shape: (n_labels, n_rows, n_contexts)
    gamma: npt.NDArray[np.float32]  # shape: (n_rows,)
    max_step: float  # 0: no bound, the hessian of a pair is its weight


@kernel
def _subtract(
    expected: _Expected,
    label: int,
    first_row: int,
    observed: Observed,
    weights: npt.NDArray[np.float32],
    g: npt.NDArray[np.float32],
    h: npt.NDArray[np.float32],
) -> None:
    """g = annotated - expected of a label and its hessian, for the rows from first_row on."""
    labels, context, n_valid, clamped_row, clamped = observed
    pairs, gamma, max_step = expected
    want_h = h.shape[0] > 0
    newton = max_step > 0.0
    inverse_step = 1.0 / max_step if newton else 0.0
    for i in range(g.shape[0]):
        row = first_row + i
        weight = weights[row]
        q_row = clamped_row[row] if len(clamped_row) else -1
        for c in range(g.shape[1]):
            p = np.float64(pairs[label, row, c])
            if q_row >= 0:
                residual = clamped[q_row, c, label] - p
            else:
                residual = (label == labels[row] and c == context[row]) - p
            g[i, c] = weight * residual
            if want_h:
                bound = 1.0
                if newton:
                    bound = max(gamma[row] * p * (1.0 - p), abs(residual) * inverse_step)
                h[i, c] = weight * bound if c < n_valid[row] else 0.0


@dataclass(frozen=True)
class _Clamped:
    """What the model clamped to the known labels expects of partly annotated sequences."""

    pairs: npt.NDArray[np.float32]  # shape: (n_clamped_rows, n_contexts, n_labels)
    edges: npt.NDArray[np.float64]  # shape: (n_chunks, n_labels + 1, n_labels), weighted sums
    log_z: npt.NDArray[np.float64]  # shape: (n_sequences,), 0 for the others


def _expect_clamped(
    annotated: Annotated, scores: npt.NDArray[np.float32], chain: Chain, workers: Workers
) -> _Clamped:
    """Inference clamped to the annotation, for the sequences that are partly annotated."""
    log_z = np.zeros(annotated.data.n_sequences)
    if not annotated.partial.any():
        return _Clamped(_NO_PAIRS, np.zeros((0, *annotated.edge_counts.shape)), log_z)
    rest = annotated.clamped
    rest_scores = scores[annotated.clamped_row >= 0]
    parts = workers.map(
        lambda chunk: expect(rest, rest_scores, chain, chunk, False, clamp=True),
        annotated.clamped_chunks,
    )
    log_z[annotated.partial] = np.concatenate([part.log_z for part in parts])
    pairs = np.concatenate([part.pairs for part in parts])
    return _Clamped(pairs, np.stack([part.edges for part in parts]), log_z)


def compute_residuals(
    annotated: Annotated,
    scores: npt.NDArray[np.float32],
    chain: Chain,
    bound: Bound | None,
    workers: Workers,
    learn_edges: bool = True,
) -> Residuals:
    """Residuals of all rows under scores (n_rows, n_contexts, n_labels).

    learn_edges: Whether edges are learned; a joint model learns them in its linear rounds alone.
    """
    rows = residuals_of_rows(annotated, scores, chain, bound, workers, learn_edges)
    return joined_residuals(rows, annotated.totals, bound)


def residuals_of_rows(
    annotated: Annotated,
    scores: npt.NDArray[np.float32],
    chain: Chain,
    bound: Bound | None,
    workers: Workers,
    learn_edges: bool = True,
) -> RowResiduals:
    """Gradients of rows under scores (n_rows, n_contexts, n_labels), and their part of all sums."""
    data = annotated.data
    n_labels, n_contexts = annotated.n_labels, annotated.n_contexts
    mixing = bool(bound and bound.mixing)
    expected = _Expected(
        np.empty((n_labels, data.n_rows, n_contexts), np.float32),
        np.empty(data.n_rows, np.float32),
        bound.max_step if bound else 0.0,
    )
    clamped = _expect_clamped(annotated, scores, chain, workers)
    observed = annotated.observed(clamped.pairs)

    def infer(chunk: tuple[int, int]) -> tuple[npt.NDArray[np.float64], float, float]:
        """Fill what belongs to a chunk; returns its expected edges, their gamma, and log P."""
        found = expect(annotated, scores, chain, chunk, mixing, edges=learn_edges)
        rows, here = data.rows_of(chunk), slice(*chunk)
        _put_by_label(found.pairs, rows.start, expected.pairs)
        expected.gamma[rows] = found.gamma
        offsets = data.offsets[chunk[0] : chunk[1] + 1] - rows.start
        paths = chains.path_scores(scores[rows], offsets, annotated.labels[rows], chain)
        known = np.where(annotated.partial[here], clamped.log_z[here], paths)
        with np.errstate(invalid="ignore"):  # both are -inf where constraints forbid everything
            log_p = float(np.sum(annotated.sequence_weights[here] * (known - found.log_z)))
        return found.edges, found.edge_gamma * (rows.stop - rows.start), log_p

    parts = workers.map(infer, data.chunks)

    def of_label(label: int, some: slice) -> Gradient:
        first, last, _ = some.indices(data.n_rows)
        g = np.empty((last - first, n_contexts), np.float32)
        h = np.empty(g.shape if bound or annotated.weighted else (0, 0), np.float32)
        _subtract(expected, label, first, observed, data.weights, g, h)
        return g, h

    edges, gammas, log_ps = zip(*parts, strict=True)
    sums = ResidualSums(np.stack(edges), clamped.edges, np.array(gammas), np.array(log_ps))
    return RowResiduals(of_label, clamped.pairs, sums)


def joined_residuals(
    rows: RowResiduals, totals: AnnotationTotals, bound: Bound | None
) -> Residuals:
    """Residuals of all rows, whose sums and totals are known."""
    expected, clamped, gamma, log_p = (exact_total(terms) for terms in rows.sums)
    edge_g = totals.edge_counts + clamped - expected
    return Residuals(
        rows.of_label,
        edge_g,
        edge_hessian(totals, expected, edge_g, float(gamma) / totals.n_rows, bound),
        float(log_p),
        rows.clamped,
    )


def edge_hessian(
    totals: AnnotationTotals,
    expected: npt.NDArray[np.float64],
    edge_g: npt.NDArray[np.float64],
    gamma: float,
    bound: Bound | None,
) -> npt.NDArray[np.float64]:
    """The hessian's bound summed over positions: sum_t p_t (1 - p_t) <= P (1 - P / n).

    P = sum_t p_t over n positions. expected, edge_g: (n_labels + 1, n_labels)
    """
    n = np.full((len(expected), 1), max(totals.n_inner, 1.0))
    n[-1] = totals.n_starts
    if bound is None:
        return np.broadcast_to(n, expected.shape).copy()
    bounded: npt.NDArray[np.float64] = gamma * expected * (1.0 - expected / n)
    return np.maximum(bounded, np.abs(edge_g) / bound.max_step)
