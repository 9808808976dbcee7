"""Labels and marginals of all sequences of a data set, chunk by chunk in threads."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.beam import beam_marginals
from spacy_treecrf.engine.chain.chain import (
    EVERYTHING_ALLOWED,
    Chain,
    ScoredChunk,
    node_marginals_kernel,
    pair_marginals_kernel,
)
from spacy_treecrf.engine.chain.decoding import beam_viterbi, marginal_argmax, viterbi_kernel
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers


def predict_labels(
    scores: npt.NDArray[np.float32],
    data: Sequences,
    chain: Chain,
    predictor: str,
    workers: Workers,
) -> npt.NDArray[np.int32]:
    """The best label sequence, or the best label of each position. shape: (n_rows,)"""
    if predictor == "marginal":
        return marginal_argmax(predict_marginals(scores, data, chain, workers))
    labels = np.zeros(data.n_rows, np.int32)
    best = np.empty(data.n_sequences)
    viterbi = beam_viterbi if chain.pruned and scores.shape[1] == 1 else viterbi_kernel
    workers.map(
        lambda chunk: viterbi(ScoredChunk(scores, data.offsets, *chunk), chain, labels, best),
        data.chunks,
    )
    return labels


def predict_marginals(
    scores: npt.NDArray[np.float32], data: Sequences, chain: Chain, workers: Workers
) -> npt.NDArray[np.float64]:
    """P(y_t = k). shape: (n_rows, n_labels)"""
    nodes = workers.storage.empty((data.n_rows, chain.n_labels), np.float64)
    log_z = np.empty(data.n_sequences)
    if chain.pruned and scores.shape[1] == 1:
        workers.map(
            lambda chunk: beam_marginals(ScoredChunk(scores, data.offsets, *chunk), chain, nodes),
            data.chunks,
        )
        return nodes
    workers.map(
        lambda chunk: node_marginals_kernel(
            ScoredChunk(scores, data.offsets, *chunk), chain, EVERYTHING_ALLOWED, nodes, log_z
        ),
        data.chunks,
    )
    return nodes


def edge_marginals(
    scores: npt.NDArray[np.float32], data: Sequences, chain: Chain, workers: Workers
) -> npt.NDArray[np.float32]:
    """P(y_{t-1} = u, y_t = v), by exact inference; 0 at first rows. (n_rows, n_labels, n_labels)"""
    n_labels = chain.n_labels
    edges = np.zeros((data.n_rows, n_labels, n_labels), np.float32)
    if chain.order == 0:
        nodes = predict_marginals(scores, data, chain, workers).astype(np.float32)
        np.multiply(nodes[:-1, :, None], nodes[1:, None, :], out=edges[1:])
    else:
        workers.map(lambda chunk: _edges_of_chunk(scores, data, chain, chunk, edges), data.chunks)
    edges[data.offsets[:-1][np.diff(data.offsets) > 0]] = 0.0
    return edges


def _edges_of_chunk(
    scores: npt.NDArray[np.float32],
    data: Sequences,
    chain: Chain,
    chunk: tuple[int, int],
    edges: npt.NDArray[np.float32],
) -> None:
    rows = data.rows_of(chunk)
    offsets = data.offsets[chunk[0] : chunk[1] + 1] - rows.start
    n_rows, n_sequences = rows.stop - rows.start, len(offsets) - 1
    pairs = np.empty((n_rows, chain.n_contexts, chain.n_labels), np.float32)
    sequences = ScoredChunk(scores[rows], offsets, 0, n_sequences)
    pair_marginals_kernel(sequences, chain, EVERYTHING_ALLOWED, pairs, np.empty(n_sequences))
    # The label before is the context modulo n_labels; those further back are summed out.
    contexts_before = chain.n_contexts // chain.n_labels
    by_label = pairs.reshape(n_rows, contexts_before, chain.n_labels, chain.n_labels)
    edges[rows] = by_label.sum(axis=1)
