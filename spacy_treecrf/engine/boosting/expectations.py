"""What a model expects of sequences: marginals of labels and edges, free or under an annotation.

Under an annotation, the log weights that it gives to labels (and to edges) are added to the
scores: 0 and -inf where labels are known or not, anything where they are soft. Inference is the
same for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.annotation import NO_EDGES, Annotated
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

# Bounds without regard to neighbours: sum_j |H_ij| = 2 p (1 - p) among the labels of one
# position; an edge also meets the two edges beside it (theorem 4.2 without its messages).
LOCAL_NODE_GAMMA = 2.0
LOCAL_EDGE_GAMMA = 6.0


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
    # scores: (n_rows, 1 or n_contexts, n_labels), with the log weights of labels if it is clamped
    sequences: ScoredChunk
    edge_log_weights: npt.NDArray[np.float32]  # (n_rows, n_labels, n_labels), or empty
    weights: npt.NDArray[np.float64]  # shape: (n_sequences,)

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        return self.sequences.offsets

    @property
    def nodes(self) -> ScoredChunk:
        """Scores without contexts. shape: (n_rows, n_labels)"""
        return self.sequences._replace(scores=self.sequences.scores[:, 0])


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
    """Marginals of one chunk; `clamp` adds the log weights that the annotation gives to labels.

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
    if len(part.edge_log_weights) and not annotated.joint:
        _expect_weighted_edges(part, chain, found)
    elif annotated.order == 0:
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
    own, edges = scores[rows], NO_EDGES
    if clamp:
        own = own + annotated.log_weights(rows)[:, None, :]
        edges = annotated.edge_log_weights(rows)
    if len(edges) and annotated.joint:  # the label before is the context modulo n_labels
        own += np.tile(edges, (1, annotated.n_contexts // annotated.n_labels, 1))
    return _Part(
        annotated,
        rows,
        ScoredChunk(own, offsets, 0, len(offsets) - 1),
        edges,
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
        )
        found.pairs[some, 0] = exact.sum(axis=1)
        found.edges[:n_labels] += part.weights[s] * exact[1:].sum(axis=0, dtype=float)
        found.messages[some] = some.stop - some.start


def _expect_weighted_edges(part: _Part, chain: Chain, found: _Found) -> None:
    """Inference with node scores and edges that each position weighs by itself."""
    if chain.order == 0:
        chain = Chain.free(chain.n_labels, 1)
    in_pairs = part.sequences._replace(scores=part.sequences.scores + part.edge_log_weights)
    pairs = np.empty(part.edge_log_weights.shape, np.float32)
    chains.pair_marginals_kernel(in_pairs, chain, EVERYTHING_ALLOWED, pairs, found.log_z)
    found.pairs[:, 0] = pairs.sum(axis=1)
    inner = np.ones(len(pairs), bool)
    inner[part.offsets[:-1]] = False
    row_weights = np.repeat(part.weights, np.diff(part.offsets))
    found.edges[:-1] = np.einsum("t,tuv->uv", row_weights[inner], pairs[inner])


def _expect_contexts(part: _Part, chain: Chain, mixing: bool, edges: bool, found: _Found) -> None:
    """Inference with scores of every context."""
    n_labels, pairs = part.annotated.n_labels, found.pairs
    chains.pair_marginals_kernel(part.sequences, chain, EVERYTHING_ALLOWED, pairs, found.log_z)
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
