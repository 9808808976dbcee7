"""Residuals of bits that together score labels: the gradient of the label chain's likelihood.

The score of label y at a row is sum_j (c[y, j] - 1/2) f_j, for bits of scores f_j and a code matrix
c of 0 and 1. Its derivative by f_j is c[y, j] - 1/2, so the residual of bit j is the sum of the
labels' residuals over the labels whose code word has a 1 there: P(bit | annotation) - P(bit).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from spacy_treecrf.engine import chain as chains
from spacy_treecrf.engine.chain import Chain
from spacy_treecrf.engine.residuals import Annotated, Bound, edge_hessian, expect
from spacy_treecrf.engine.threads import Workers

Floats = npt.NDArray[np.float32]
Bits = npt.NDArray[np.uint8]

# A label less probable than this moves no bit.
LEAST_SHARE = 1e-6


@njit(nogil=True, cache=True)
def add_code_scores(bit_scores: Floats, signs: Floats, first: int, last: int, out: Floats) -> None:
    """Scores of labels in rows first to last - 1. signs: (n_bits, n_labels), c - 1/2 transposed."""
    n_bits, n_labels = signs.shape
    for row in range(first, last):
        for k in range(n_labels):
            out[row, k] = 0.0
        for j in range(n_bits):
            score = bit_scores[row, j]
            for k in range(n_labels):
                out[row, k] += score * signs[j, k]


@njit(nogil=True, cache=True)
def _bit_probabilities(marginals: Floats, code: Bits, out: Floats) -> None:
    """P(bit j = 1) = sum of P(label) over the labels with a 1. marginals: (n_rows, 1, n_labels)"""
    n_labels, n_bits = code.shape
    total = np.empty(n_bits)
    for row in range(len(marginals)):
        for j in range(n_bits):
            total[j] = 0.0
        for k in range(n_labels):
            share = np.float64(marginals[row, 0, k])
            if share > LEAST_SHARE:
                for j in range(n_bits):
                    total[j] += share * code[k, j]
        for j in range(n_bits):
            out[row, j] = total[j]


@njit(nogil=True, cache=True)
def _subtract(
    expected: Floats,
    known: Floats,
    labels: npt.NDArray[np.int32],
    code: Bits,
    weights: Floats,
    max_step: float,
    first: int,
    g: Floats,
    h: Floats,
) -> None:
    """g and h (n_bits, n_rows) of the rows from `first` on; known: as expected, or empty."""
    n_rows, n_bits = expected.shape
    for i in range(n_rows):
        row = first + i
        weight = np.float64(weights[row])
        for j in range(n_bits):
            p = min(max(np.float64(expected[i, j]), 0.0), 1.0)
            annotated = np.float64(known[i, j]) if len(known) else np.float64(code[labels[row], j])
            residual = annotated - p
            g[j, row] = weight * residual
            h[j, row] = weight * max(p * (1.0 - p), abs(residual) / max_step)


@dataclass(frozen=True)
class CodedResiduals:
    g: Floats  # shape: (n_bits, n_rows)
    h: Floats
    edge_g: npt.NDArray[np.float64]  # shape: (n_labels + 1, n_labels)
    edge_h: npt.NDArray[np.float64]
    log_likelihood: float


def code_scores(
    bit_scores: Floats, code: Bits, chunks: list[tuple[int, int]], workers: Workers
) -> Floats:
    """Scores of labels (n_rows, 1, n_labels). chunks: ranges of rows."""
    signs = np.ascontiguousarray(code.T.astype(np.float32) - np.float32(0.5))
    scores = np.empty((len(bit_scores), len(code)), np.float32)
    workers.map(lambda rows: add_code_scores(bit_scores, signs, *rows, scores), chunks)
    return scores[:, None, :]


def compute_coded_residuals(
    annotated: Annotated,
    bit_scores: Floats,
    code: Bits,
    chain: Chain,
    max_step: float,
    workers: Workers,
) -> CodedResiduals:
    """Residuals of all rows under scores of bits (n_rows, n_bits)."""
    data = annotated.data
    n_bits = code.shape[1]
    rows_of = [data.rows_of(chunk) for chunk in data.chunks]
    scores = code_scores(bit_scores, code, [(r.start, r.stop) for r in rows_of], workers)
    g = np.empty((n_bits, data.n_rows), np.float32)
    h = np.empty((n_bits, data.n_rows), np.float32)
    log_likelihood = np.zeros(data.n_sequences)

    def subtract(chunk: tuple[int, int]) -> npt.NDArray[np.float64]:
        """The chunk's annotated minus expected edges, and the expected ones."""
        rows, here = data.rows_of(chunk), slice(*chunk)
        free = expect(annotated, scores, chain, chunk, False)
        expected = np.empty((rows.stop - rows.start, n_bits), np.float32)
        _bit_probabilities(free.pairs, code, expected)
        known = np.zeros((0, n_bits), np.float32)
        offsets = data.offsets[chunk[0] : chunk[1] + 1] - rows.start
        edges = np.zeros_like(free.edges)
        if annotated.partial[here].any():
            clamped = expect(annotated, scores, chain, chunk, False, clamp=True)
            known = np.empty_like(expected)
            _bit_probabilities(clamped.pairs, code, known)
            top, edges = clamped.log_z, clamped.edges
        else:
            top = chains.path_scores(scores[rows], offsets, annotated.labels[rows], chain)
        _subtract(expected, known, annotated.labels, code, data.weights, max_step, rows.start, g, h)
        with np.errstate(invalid="ignore"):  # both are -inf where constraints forbid everything
            log_likelihood[here] = top - free.log_z
        return np.stack([edges, free.edges])

    parts = workers.map(subtract, data.chunks)
    known_edges, expected_edges = np.sum(parts, axis=0)
    whole = [not annotated.partial[slice(*chunk)].any() for chunk in data.chunks]
    edge_g = known_edges + _edge_counts(annotated, whole) - expected_edges
    bound = Bound(False, max_step)
    return CodedResiduals(
        g,
        h,
        edge_g,
        edge_hessian(annotated, expected_edges, edge_g, EDGE_GAMMA, bound),
        float(np.sum(annotated.sequence_weights * log_likelihood)),
    )


EDGE_GAMMA = 6.0  # as boosting's local bound


def _edge_counts(annotated: Annotated, whole: list[bool]) -> npt.NDArray[np.float64]:
    """Counts of the annotated edges in the chunks that are annotated as a whole."""
    if all(whole):
        return annotated.edge_counts
    data, n_labels = annotated.data, annotated.n_labels
    counts = np.zeros((n_labels + 1, n_labels))
    for chunk, is_whole in zip(data.chunks, whole, strict=True):
        if is_whole:
            part = Annotated(data.subset(np.arange(*chunk)), n_labels, annotated.order, False)
            counts += part.edge_counts
    return counts
