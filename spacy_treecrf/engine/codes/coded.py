"""Residuals of bits that together score labels: the gradient of the label chain's likelihood.

The score of label y at a row is sum_j (c[y, j] - 1/2) f_j, for bits of scores f_j and a code matrix
c of 0 and 1. Its derivative by f_j is c[y, j] - 1/2, so the residual of bit j is the sum of the
labels' residuals over the labels whose code word has a 1 there: P(bit | annotation) - P(bit).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.expectations import expect
from spacy_treecrf.engine.boosting.residuals import Bound, edge_hessian
from spacy_treecrf.engine.chain import chain as chains
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.threads import Workers

Floats = npt.NDArray[np.float32]
Bits = npt.NDArray[np.uint8]

# A label less probable than this moves no bit.
LEAST_SHARE = 1e-6


@kernel
def add_code_scores(bit_scores: Floats, signs: Floats, first: int, last: int, out: Floats) -> None:
    """Write the scores of labels in rows first to last - 1, from those of bits.

    signs: (n_bits, n_labels), c - 1/2 transposed.
    """
    n_bits, n_labels = signs.shape
    for row in range(first, last):
        for k in range(n_labels):
            out[row, k] = 0.0
        for j in range(n_bits):
            score = bit_scores[row, j]
            for k in range(n_labels):
                out[row, k] += score * signs[j, k]


@kernel
def _bit_probabilities(marginals: Floats, code: Bits, out: Floats) -> None:
    """Write P(bit j = 1), the sum of P(label) over the labels whose code word has a 1 there.

    marginals: (n_rows, 1, n_labels). out: (n_rows, n_bits)
    """
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


class _KnownBits(NamedTuple):
    """What is annotated of some rows: labels, or else the probabilities of bits given them."""

    labels: npt.NDArray[np.int32]  # shape: (n_rows,)
    weights: Floats  # shape: (n_rows,)
    bits: Floats  # shape: (n_rows, n_bits), P(bit = 1 | annotation); empty if all labels are known


@kernel
def _subtract(
    expected: Floats,
    known: _KnownBits,
    code: Bits,
    max_step: float,
    first: int,
    g: Floats,
    h: Floats,
) -> None:
    """Fill g and h (n_bits, all rows) of the rows from `first` on. expected: (n_rows, n_bits)"""
    n_rows, n_bits = expected.shape
    for i in range(n_rows):
        weight = np.float64(known.weights[i])
        label = known.labels[i]
        for j in range(n_bits):
            p = min(max(np.float64(expected[i, j]), 0.0), 1.0)
            bit = np.float64(known.bits[i, j]) if len(known.bits) else np.float64(code[label, j])
            residual = bit - p
            g[j, first + i] = weight * residual
            h[j, first + i] = weight * max(p * (1.0 - p), abs(residual) / max_step)


@dataclass(frozen=True)
class CodedResiduals:
    """Gradients and hessians of bits and of label transitions, and the log-likelihood."""

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
        """Fill the chunk's part of g, h and log_likelihood; returns annotated and expected edges.

        Annotated edges are 0 where the whole chunk is annotated: they are counted elsewhere.
        """
        rows, here = data.rows_of(chunk), slice(*chunk)
        free = expect(annotated, scores, chain, chunk, False)
        expected = np.empty((rows.stop - rows.start, n_bits), np.float32)
        _bit_probabilities(free.pairs, code, expected)
        bits = np.zeros((0, n_bits), np.float32)
        offsets = data.offsets[chunk[0] : chunk[1] + 1] - rows.start
        edges = np.zeros_like(free.edges)
        if annotated.partial[here].any():
            clamped = expect(annotated, scores, chain, chunk, False, clamp=True)
            bits = np.empty_like(expected)
            _bit_probabilities(clamped.pairs, code, bits)
            top, edges = clamped.log_z, clamped.edges
        else:
            top = chains.path_scores(scores[rows], offsets, annotated.labels[rows], chain)
        known = _KnownBits(annotated.labels[rows], data.weights[rows], bits)
        _subtract(expected, known, code, max_step, rows.start, g, h)
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
        edge_hessian(annotated.totals, expected_edges, edge_g, EDGE_GAMMA, bound),
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
