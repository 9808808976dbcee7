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
from spacy_treecrf.engine.boosting.expectations import expect
from spacy_treecrf.engine.boosting.teaching import (
    expected_edge_score,
    expected_scores,
    taught_expectation,
)
from spacy_treecrf.engine.chain import chain as chains
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.exact_sums import exact_total
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.row_storage import RowStorage
from spacy_treecrf.engine.threads import Workers

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
    """What the model clamped to the known labels, or a teacher, expects of partial sequences."""

    pairs: npt.NDArray[np.float32]  # shape: (n_clamped_rows, n_contexts, n_labels)
    edges: npt.NDArray[np.float64]  # shape: (n_chunks, n_labels + 1, n_labels), weighted sums
    # shape: (n_sequences,): the log of what the annotation weighs, not yet divided by Z; for a
    # teacher's sequence its expectation; 0 for the others
    log_weight: npt.NDArray[np.float64]
    edge_score: float = 0.0  # what edges add to the expectations of teachers, in all


def _expect_clamped(
    annotated: Annotated, scores: npt.NDArray[np.float32], chain: Chain, workers: Workers
) -> _Clamped:
    """Inference clamped to the annotation, for the sequences that are partly annotated."""
    log_weight = np.zeros(annotated.data.n_sequences)
    if not annotated.partial.any():
        return _Clamped(_NO_PAIRS, np.zeros((0, *annotated.edge_counts.shape)), log_weight)
    rest = annotated.clamped
    in_clamped = np.repeat(annotated.is_clamped, np.diff(annotated.data.offsets))
    rest_scores = workers.storage.select(scores, in_clamped)
    shape = (rest.data.n_rows, annotated.n_contexts, annotated.n_labels)
    pairs = workers.storage.empty(shape, np.float32)

    def infer(chunk: tuple[int, int]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Fill the pairs of a chunk; returns its expected edges, and log Z of its sequences."""
        found = expect(rest, rest_scores, chain, chunk, False, clamp=True)
        pairs[rest.data.rows_of(chunk)] = found.pairs
        return found.edges, found.log_z

    parts = workers.map(infer, annotated.clamped_chunks)
    if parts:
        log_weight[annotated.is_clamped] = np.concatenate([log_z for _, log_z in parts])
    edges = [of_chunk for of_chunk, _ in parts]
    if not annotated.taught.any():
        return _Clamped(pairs, np.stack(edges), log_weight)
    taught = annotated.expected_by_teacher
    if taught is None:  # no round changes it
        taught = taught_expectation(annotated.lessons, chain, workers)
        annotated.expected_by_teacher = taught
    in_lessons = np.repeat(annotated.taught, np.diff(annotated.data.offsets))
    log_weight[annotated.taught] = expected_scores(
        annotated.lessons, taught, workers.storage.select(scores, in_lessons), chain
    )
    return _Clamped(
        _merged(pairs, in_clamped, taught.pairs, in_lessons, workers.storage),
        np.concatenate([*(part[None] for part in edges), taught.edges]),
        log_weight,
        expected_edge_score(taught, chain),
    )


def _merged(
    clamped: npt.NDArray[np.float32],
    in_clamped: npt.NDArray[np.bool_],
    taught: npt.NDArray[np.float32],
    in_lessons: npt.NDArray[np.bool_],
    storage: RowStorage,
) -> npt.NDArray[np.float32]:
    """Pairs of partial sequences in the order of rows; masks tell which rows are whose."""
    if not len(clamped):
        return taught
    partial = in_clamped | in_lessons
    pairs = storage.empty((int(partial.sum()), *taught.shape[1:]), np.float32)
    pairs[in_clamped[partial]] = clamped
    pairs[in_lessons[partial]] = taught
    return pairs


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
    data, storage = annotated.data, workers.storage
    n_labels, n_contexts = annotated.n_labels, annotated.n_contexts
    mixing = bool(bound and bound.mixing)
    expected = _Expected(
        storage.empty((n_labels, data.n_rows, n_contexts), np.float32),
        storage.empty(data.n_rows, np.float32),
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
        known = np.where(annotated.partial[here], clamped.log_weight[here], paths)
        with np.errstate(invalid="ignore"):  # both are -inf where constraints forbid everything
            log_p = float(np.sum(annotated.sequence_weights[here] * (known - found.log_z)))
        return found.edges, found.edge_gamma * (rows.stop - rows.start), log_p

    parts = workers.map(infer, data.chunks)

    def of_label(label: int, some: slice) -> Gradient:
        first, last, _ = some.indices(data.n_rows)
        g = storage.empty((last - first, n_contexts), np.float32)
        h = storage.empty(g.shape if bound or annotated.weighted else (0, 0), np.float32)
        _subtract(expected, label, first, observed, data.weights, g, h)
        return g, h

    edges, gammas, log_ps = zip(*parts, strict=True)
    if annotated.taught.any():
        log_ps = (*log_ps, clamped.edge_score)
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
