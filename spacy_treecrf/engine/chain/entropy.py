"""Exact entropies of label sequences.

A chain of order k is a product of P(y_t | context), so that its entropy is a sum over positions:
H(y) = - sum_t sum_{c, y} P(c, y) log(P(c, y) / P(c)), where P(c, y) are the pair marginals.
"""

from __future__ import annotations

import numpy as np

from spacy_treecrf.engine.chain.chain import Chain, Doubles, Floats, Ints, pair_marginals
from spacy_treecrf.engine.sequences import cut_sequences

# Pair marginals are made for so many sequences at a time as fit into this.
BLOCK_BYTES = 2**26


def sequence_entropies(scores: Floats, offsets: Ints, chain: Chain) -> Doubles:
    """The entropy, in nats, of the label sequence of each sequence; 0 for an empty one."""
    found = np.zeros(len(offsets) - 1)
    row_bytes = 4 * chain.n_contexts * chain.n_labels
    for first, last in cut_sequences(offsets, max(1, BLOCK_BYTES // row_bytes)):
        begin, past = int(offsets[first]), int(offsets[last])
        own = offsets[first : last + 1] - begin
        pairs, _ = pair_marginals(scores[begin:past], own, chain)
        totals = np.concatenate([[0.0], np.cumsum(position_entropies(pairs))])
        found[first:last] = totals[own[1:]] - totals[own[:-1]]
    return found


def position_entropies(pairs: Floats) -> Doubles:
    """H(y_t | context) at each position. pairs: (n_rows, n_contexts, n_labels), P(context, y)"""
    joint = pairs.astype(np.float64)
    context = joint.sum(axis=2, keepdims=True)
    share = np.divide(joint, context, out=np.ones_like(joint), where=joint > 0.0)
    found: Doubles = np.maximum(0.0, -(joint * np.log(share)).sum(axis=(1, 2)))
    return found
