"""The transitions that soft labels leave possible, for the constraint "observed"."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.chain.constraints import Bools
from spacy_treecrf.engine.soft_labels import NO_TABLE, SoftLabels

ROWS_AT_A_TIME = 1024


def possible_transitions(
    soft: SoftLabels, labels: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]
) -> tuple[Bools, Bools, Bools]:
    """The transitions of training data (start[K], trans[K, K], end[K]) that have any weight.

    Labels that are neither known nor soft count as in `observed_transitions`.
    """
    n_labels = soft.nodes.shape[1]
    start, end = np.zeros(n_labels, dtype=bool), np.zeros(n_labels, dtype=bool)
    trans = np.zeros((n_labels, n_labels), dtype=bool)
    lengths = np.diff(offsets)
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    is_known = (labels >= 0) | soft.is_soft
    for begin in range(0, len(labels), ROWS_AT_A_TIME):
        rows = np.arange(begin, min(begin + ROWS_AT_A_TIME, len(labels)))
        here = _possible(soft, labels, rows)
        is_first = rows == offsets[sequence[rows]]
        start |= here[is_first].any(axis=0)
        end |= here[rows + 1 == offsets[sequence[rows] + 1]].any(axis=0)
        later = rows[~is_first]
        trans |= _pairs(soft, labels, later[is_known[later] | is_known[later - 1]])
    n_known = np.bincount(sequence, weights=is_known, minlength=len(lengths))
    if np.any((n_known == 0) & (lengths > 1)):
        np.fill_diagonal(trans, True)
    return start, trans, end


def _possible(
    soft: SoftLabels, labels: npt.NDArray[np.int32], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Which labels rows may have. shape: (len(rows), n_labels)"""
    possible = np.ones((len(rows), soft.nodes.shape[1]), dtype=bool)
    known = labels[rows] >= 0
    possible[known] = labels[rows][known, None] == np.arange(possible.shape[1])
    nodes, edges = soft.node_table[rows], soft.edge_table[rows]
    has_nodes, has_edges = nodes != NO_TABLE, edges != NO_TABLE
    possible[has_nodes] &= soft.nodes[nodes[has_nodes]] > -np.inf
    possible[has_edges] &= (soft.edges[edges[has_edges]] > -np.inf).any(axis=1)
    return possible


def _pairs(
    soft: SoftLabels, labels: npt.NDArray[np.int32], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Which labels may follow which where rows follow those before them."""
    before, here = _possible(soft, labels, rows - 1), _possible(soft, labels, rows)
    edges = soft.edge_table[rows]
    free = edges == NO_TABLE
    # Sums of ones are exact in float32 and quick.
    free_pairs = before[free].T.astype(np.float32) @ here[free] > 0.0
    weighed = soft.edges[edges[~free]] > -np.inf
    weighed &= before[~free][:, :, None] & here[~free][:, None, :]
    found: npt.NDArray[np.bool_] = free_pairs | weighed.any(axis=0)
    return found
