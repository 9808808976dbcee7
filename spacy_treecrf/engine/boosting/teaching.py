"""Distillation: what a teacher's distribution q over label sequences expects of a training set.

The objective is the cross-entropy sum_y q(y) log p(y | x), and its gradient is what q expects
minus what the model expects. q(y) is proportional to the product of the weights along y, over the
label sequences that hard constraints allow. It does not change from round to round, so that
forward-backward runs once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.annotation import Annotated, Taught
from spacy_treecrf.engine.boosting.expectations import expect
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.threads import Workers


def taught_expectation(lessons: Annotated, chain: Chain, workers: Workers) -> Taught:
    """Forward-backward over the weights alone, under the chain's hard constraints.

    lessons: The annotation of the sequences that the teacher has labelled.
    """
    start, trans, end = (
        np.where(np.isneginf(part), part, np.float32(0.0))
        for part in (chain.start, chain.trans, chain.end)
    )
    masks = Chain(chain.order, start, trans, end)
    data = lessons.data
    shape = (data.n_rows, lessons.n_contexts, lessons.n_labels)
    nothing = np.broadcast_to(np.float32(0.0), shape)
    pairs = workers.storage.empty(shape, np.float32)

    def infer(chunk: tuple[int, int]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Fill the pairs of a chunk; returns its expected edges, and log Z of its sequences."""
        found = expect(lessons, nothing, masks, chunk, False, clamp=True)
        pairs[data.rows_of(chunk)] = found.pairs
        return found.edges, found.log_z

    edges, log_z = zip(*workers.map(infer, data.chunks), strict=True)
    return Taught(pairs, np.stack(edges), np.isfinite(np.concatenate(log_z)))


def expected_scores(
    lessons: Annotated, taught: Taught, scores: npt.NDArray[np.float32], chain: Chain
) -> npt.NDArray[np.float64]:
    """E_q of the scores along a label sequence, but for those of edges. shape: (n_sequences,)

    scores: (n_rows, n_contexts, n_labels), of the lessons. It is -inf where q has no label
    sequence.
    """
    data = lessons.data
    found = np.empty(data.n_sequences)
    end = chain.steps.end
    for first, last in data.chunks:
        rows = data.rows_of((first, last))
        by_row = np.einsum("tcy,tcy->t", taught.pairs[rows], scores[rows], dtype=float)
        last_labels = taught.pairs[data.offsets[first + 1 : last + 1] - 1].sum(axis=1, dtype=float)
        at_end = (last_labels * np.where(last_labels > 0.0, end, 0.0)).sum(axis=1)
        starts = data.offsets[first:last] - rows.start
        found[first:last] = np.add.reduceat(by_row, starts) + at_end
    found[~taught.possible] = -np.inf
    return found


def expected_edge_score(taught: Taught, chain: Chain) -> float:
    """E_q of the scores of edges, of all lessons together, by the weights of sequences."""
    edges = taught.edges.sum(axis=0)
    moves = chain.steps.moves  # shape: (n_labels + 1, n_labels)
    return float(np.sum(edges * np.where(edges > 0.0, moves, 0.0)))
