"""Residuals: what is annotated minus what the model expects, for every row, context and label.

This is the functional gradient of the log-likelihood (Hao 2009, proposition 3.1). Where labels
are not annotated, the annotated side is its expectation under the model clamped to the labels
that are known, so nothing else changes for partial labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine import chain as chains
from spacy_treecrf.engine.beam import beam_forward_backward
from spacy_treecrf.engine.chain import EVERYTHING_ALLOWED, Chain
from spacy_treecrf.engine.contexts import count_lags
from spacy_treecrf.engine.mixing import edge_gamma, joint_messages, node_gamma
from spacy_treecrf.engine.separate import factors_of, forward_backward, independent
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers

# Bounds without regard to neighbours: sum_j |H_ij| = 2 p (1 - p) among the labels of one
# position; an edge also meets the two edges beside it (theorem 4.2 without its messages).
LOCAL_NODE_GAMMA = 2.0
LOCAL_EDGE_GAMMA = 6.0


@dataclass(frozen=True)
class Bound:
    """How the hessian of a row is bounded. Without it (None) each pair's hessian is its weight."""

    mixing: bool  # gamma from the mixing rate, else the local constants
    max_step: float  # h >= |g| / max_step: no leaf can exceed max_step ("robust Newton")


@dataclass(frozen=True)
class Residuals:
    g: npt.NDArray[np.float32]  # shape: (n_labels, n_rows, n_contexts)
    h: npt.NDArray[np.float32]  # the same, or (n_labels, 0, 0) where every hessian is 1
    edge_g: npt.NDArray[np.float64]  # shape: (n_labels + 1, n_labels); last: the first label
    edge_h: npt.NDArray[np.float64]
    log_likelihood: float
    # shape: (n_clamped_rows, n_contexts, n_labels), see Annotated.clamped_row; may be empty
    clamped: npt.NDArray[np.float32]


def allowed_labels(labels: npt.NDArray[np.int32], n_labels: int) -> npt.NDArray[np.uint8]:
    """1 for the annotated label, and for every label where there is none. (n_rows, n_labels)"""
    allowed: npt.NDArray[np.bool_] = labels[:, None] == np.arange(n_labels)[None, :]
    allowed[labels == UNKNOWN_LABEL] = True
    return allowed.astype(np.uint8)


class Annotated:
    """A training set's annotation in the forms that residuals need; computed once."""

    def __init__(self, data: Sequences, n_labels: int, order: int, joint: bool) -> None:
        self.data = data
        self.n_labels = n_labels
        self.order = order
        self.joint = joint and order > 0
        self.n_contexts = n_labels**order if self.joint else 1
        self.lags = count_lags(data.offsets, order if self.joint else 0)
        self.weighted = bool(np.any(data.weights != 1.0))
        lengths = np.diff(data.offsets)
        starts = data.offsets[:-1]
        unknown = data.labels == UNKNOWN_LABEL
        self.partial = np.add.reduceat(unknown, starts).astype(bool)
        self.sequence_weights = np.add.reduceat(data.weights.astype(float), starts) / lengths
        # Of each row, the context that its annotated previous labels make.
        labels = np.maximum(data.labels, 0)
        self.labels = labels
        self.context = np.zeros(data.n_rows, np.int64)
        if self.joint:
            for lag in range(1, order + 1):
                before = np.zeros(data.n_rows, np.int64)
                before[lag:] = labels[:-lag]
                self.context += np.where(self.lags >= lag, before * n_labels ** (lag - 1), 0)
        # Counts of the annotated edges; partial sequences add their expectation every round.
        weights = np.where(self.partial, 0.0, self.sequence_weights)
        self.edge_counts = np.zeros((n_labels + 1, n_labels))
        np.add.at(self.edge_counts[n_labels], labels[starts], weights)
        inner = np.ones(data.n_rows, bool)
        inner[starts] = False
        inner = np.flatnonzero(inner)
        row_weights = np.repeat(weights, lengths)
        np.add.at(self.edge_counts, (labels[inner - 1], labels[inner]), row_weights[inner])

    @cached_property
    def clamped(self) -> Annotated:
        """The sequences that are not fully annotated, on their own."""
        rest = self.data.subset(np.flatnonzero(self.partial))
        return Annotated(rest, self.n_labels, self.order, self.joint)

    @cached_property
    def clamped_row(self) -> npt.NDArray[np.int64]:
        """Of each row, its row in `clamped`, or -1. shape: (n_rows,)"""
        rows = np.full(self.data.n_rows, -1, np.int64)
        inside = np.repeat(self.partial, np.diff(self.data.offsets))
        rows[inside] = np.arange(int(inside.sum()))
        return rows

    @cached_property
    def allowed(self) -> npt.NDArray[np.uint8]:
        """Which labels the annotation allows. shape: (n_rows, n_labels)"""
        return allowed_labels(self.data.labels, self.n_labels)


@dataclass(frozen=True)
class Expectation:
    """What a model expects of a chunk of sequences."""

    pairs: npt.NDArray[np.float32]  # shape: (n_rows, n_contexts, n_labels)
    edges: npt.NDArray[np.float64]  # shape: (n_labels + 1, n_labels), weighted sums
    log_z: npt.NDArray[np.float64]  # shape: (n_sequences,)
    gamma: npt.NDArray[np.float32]  # shape: (n_rows,)
    edge_gamma: float  # mean over the rows


def expect(
    annotated: Annotated,
    scores: npt.NDArray[np.float32],
    chain: Chain,
    chunk: tuple[int, int],
    mixing: bool,
    clamp: bool = False,
) -> Expectation:
    """Marginals of one chunk; `clamp` restricts every position to its annotated label."""
    data = annotated.data
    rows = data.rows_of(chunk)
    n_rows = rows.stop - rows.start
    n_labels, order = annotated.n_labels, annotated.order
    offsets = data.offsets[chunk[0] : chunk[1] + 1] - rows.start
    starts = offsets[:-1]
    n_sequences = len(starts)
    here = scores[rows]
    allowed = annotated.allowed[rows] if clamp else EVERYTHING_ALLOWED
    pairs = np.empty((n_rows, annotated.n_contexts, n_labels), np.float32)
    log_z = np.empty(n_sequences)
    weights = annotated.sequence_weights[chunk[0] : chunk[1]]
    edges = np.zeros((n_labels + 1, n_labels))
    messages = np.zeros((n_rows, 2), np.float32)
    nodes = here[:, 0]
    if clamp and not annotated.joint:
        nodes = np.where(allowed > 0, nodes, np.float32(-np.inf))
    if order == 0:
        independent(nodes, offsets, pairs[:, 0], log_z)
    elif not annotated.joint:
        start, start_top = factors_of(chain.start)
        trans, trans_top = factors_of(chain.trans)
        end, end_top = factors_of(chain.end)
        if start is None or trans is None or end is None:
            log_z[:] = np.nan
        elif chain.pruned:
            beam_forward_backward(
                nodes,
                offsets,
                0,
                n_sequences,
                start,
                trans,
                end,
                chain.pruned,
                data.labels[rows],
                weights,
                pairs[:, 0],
                edges[:n_labels],
                log_z,
            )
        else:
            forward_backward(
                nodes,
                offsets,
                0,
                n_sequences,
                start,
                trans,
                end,
                weights,
                mixing,
                pairs[:, 0],
                edges[:n_labels],
                log_z,
                messages,
            )
        log_z += start_top + end_top + trans_top * (np.diff(offsets) - 1)
        for s in np.flatnonzero(np.isnan(log_z)):
            some = slice(offsets[s], offsets[s + 1])
            exact, log_z[s : s + 1] = chains.pair_marginals(
                here[some],
                np.array([0, some.stop - some.start]),
                chain,
                allowed[some] if clamp else None,
            )
            pairs[some, 0] = exact.sum(axis=1)
            edges[:n_labels] += weights[s] * exact[1:].sum(axis=0, dtype=float)
            messages[some] = some.stop - some.start
    else:
        chains.pair_marginals_kernel(
            here,
            offsets,
            0,
            n_sequences,
            order,
            chain.start,
            chain.trans,
            chain.end,
            allowed,
            pairs,
            log_z,
        )
        row_weights = np.repeat(weights, np.diff(offsets)).astype(np.float32)
        inner = annotated.lags[rows] > 0
        weighted = row_weights[inner, None, None] * pairs[inner]
        by_label = weighted.reshape(len(weighted), pairs.shape[1] // n_labels, n_labels, n_labels)
        edges[:n_labels] = by_label.sum(axis=(0, 1), dtype=float)
        if mixing and order == 1:
            joint_messages(pairs, offsets, messages)
        elif mixing and order > 1:
            messages[:] = np.repeat(np.diff(offsets), np.diff(offsets))[:, None]
    edges[n_labels] = (weights[:, None] * pairs[starts].sum(axis=1, dtype=float)).sum(axis=0)
    if not mixing:
        gamma = np.full(n_rows, LOCAL_NODE_GAMMA, np.float32)
        return Expectation(pairs, edges, log_z, gamma, LOCAL_EDGE_GAMMA)
    of_edges = edge_gamma(messages, starts)
    gamma = of_edges if annotated.joint else node_gamma(messages)
    return Expectation(pairs, edges, log_z, gamma, float(of_edges.mean()))


@njit(nogil=True, cache=True)
def _subtract(
    pairs: npt.NDArray[np.float32],
    gamma: npt.NDArray[np.float32],
    max_step: float,
    first_row: int,
    n_valid: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int32],
    context: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float32],
    clamped_row: npt.NDArray[np.int64],
    clamped: npt.NDArray[np.float32],
    g: npt.NDArray[np.float32],
    h: npt.NDArray[np.float32],
) -> None:
    """g = annotated - expected and its hessian, for the chunk that starts at first_row.

    max_step 0 means no bound: the hessian of a pair is its weight.
    """
    n_rows, n_contexts, n_labels = pairs.shape
    want_h = h.shape[1] > 0
    newton = max_step > 0.0
    inverse_step = 1.0 / max_step if newton else 0.0
    for i in range(n_rows):
        row = first_row + i
        weight = weights[row]
        q_row = clamped_row[row] if len(clamped_row) else -1
        for c in range(n_contexts):
            valid = c < n_valid[row]
            for k in range(n_labels):
                p = np.float64(pairs[i, c, k])
                if q_row >= 0:
                    residual = clamped[q_row, c, k] - p
                else:
                    residual = (k == labels[row] and c == context[row]) - p
                g[k, row, c] = weight * residual
                if want_h:
                    bound = 1.0
                    if newton:
                        bound = max(gamma[i] * p * (1.0 - p), abs(residual) * inverse_step)
                    h[k, row, c] = weight * bound if valid else 0.0


def compute_residuals(
    annotated: Annotated,
    scores: npt.NDArray[np.float32],
    chain: Chain,
    bound: Bound | None,
    workers: Workers,
) -> Residuals:
    """Residuals of all rows under scores (n_rows, n_contexts, n_labels)."""
    data = annotated.data
    n_labels = annotated.n_labels
    shape = (n_labels, data.n_rows, annotated.n_contexts)
    g = np.empty(shape, np.float32)
    h = np.empty(shape if bound or annotated.weighted else (n_labels, 0, 0), np.float32)
    mixing = bool(bound and bound.mixing)
    edges = annotated.edge_counts.copy()
    log_likelihood = np.zeros(data.n_sequences)
    clamped = np.zeros((0, 0, 0), np.float32)
    clamped_row = np.zeros(0, np.int64)
    if annotated.partial.any():
        rest = annotated.clamped
        clamped_row = annotated.clamped_row
        rest_scores = scores[clamped_row >= 0]
        parts = workers.map(
            lambda chunk: expect(rest, rest_scores, chain, chunk, False, clamp=True),
            rest.data.chunks,
        )
        clamped = np.concatenate([part.pairs for part in parts])
        edges += np.sum([part.edges for part in parts], axis=0)
        log_likelihood[annotated.partial] = np.concatenate([part.log_z for part in parts])
    n_valid = n_labels ** annotated.lags.astype(np.int64)

    def subtract(chunk: tuple[int, int]) -> tuple[npt.NDArray[np.float64], float]:
        expected = expect(annotated, scores, chain, chunk, mixing)
        rows = data.rows_of(chunk)
        _subtract(
            expected.pairs,
            expected.gamma,
            bound.max_step if bound else 0.0,
            rows.start,
            n_valid,
            annotated.labels,
            annotated.context,
            data.weights,
            clamped_row,
            clamped,
            g,
            h,
        )
        here = slice(*chunk)
        offsets = data.offsets[chunk[0] : chunk[1] + 1] - rows.start
        paths = chains.path_scores(scores[rows], offsets, annotated.labels[rows], chain)
        known = np.where(annotated.partial[here], log_likelihood[here], paths)
        with np.errstate(invalid="ignore"):  # both are -inf where constraints forbid everything
            log_likelihood[here] = known - expected.log_z
        return expected.edges, expected.edge_gamma * (rows.stop - rows.start)

    parts_of_edges = workers.map(subtract, data.chunks)
    expected_edges = np.sum([part[0] for part in parts_of_edges], axis=0)
    gamma = sum(part[1] for part in parts_of_edges) / data.n_rows
    edge_g = edges - expected_edges
    return Residuals(
        g,
        h,
        edge_g,
        edge_hessian(annotated, expected_edges, edge_g, gamma, bound),
        float(np.sum(annotated.sequence_weights * log_likelihood)),
        clamped,
    )


def edge_hessian(
    annotated: Annotated,
    expected: npt.NDArray[np.float64],
    edge_g: npt.NDArray[np.float64],
    gamma: float,
    bound: Bound | None,
) -> npt.NDArray[np.float64]:
    """The bound summed over positions: sum_t p_t (1 - p_t) <= P (1 - P / n) for P = sum_t p_t."""
    n_labels = annotated.n_labels
    n_starts = float(annotated.sequence_weights.sum())
    n_inner = float(np.sum(annotated.sequence_weights * (np.diff(annotated.data.offsets) - 1)))
    n = np.full((n_labels + 1, 1), max(n_inner, 1.0))
    n[n_labels] = n_starts
    if bound is None:
        return np.broadcast_to(n, expected.shape).copy()
    bounded: npt.NDArray[np.float64] = gamma * expected * (1.0 - expected / n)
    return np.maximum(bounded, np.abs(edge_g) / bound.max_step)
