"""Phrases of word lists found in sequences of tokens: longest first, from the left, list by list.

Tokens and phrases are compared by pieces (runs of letters or digits, single other characters): how
a tokenizer cuts "U.S." or "Bank's" does not matter as long as a match ends with a token.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.features.kernels.key_table import EMPTY, find_place

NO_PIECE = -1  # behind the last piece of a word
UNKNOWN_PIECE = -2  # in no phrase
OUTSIDE, FIRST, INSIDE, LAST, SINGLE = range(5)

Places = npt.NDArray[np.uint8]


class Trie(NamedTuple):
    """All phrases by their pieces; the root is node 0."""

    edges: npt.NDArray[np.uint64]  # keys of a hash table, (node << 32) + piece -> node
    edge_node: npt.NDArray[np.int32]  # values of the hash table
    entry_first: npt.NDArray[np.int64]  # shape: (n_nodes + 1,), the entries of each node
    entry_list: npt.NDArray[np.int32]  # of each entry, the list that has the phrase ending there
    # Of each entry, its owner: a sequence of this owner does not see the entry; 0 for none.
    entry_owner: npt.NDArray[np.uint64]


@kernel(inline="always")
def _mark(t: int, best: npt.NDArray[np.int64], free: npt.NDArray[np.int64], out: Places) -> None:
    """Write the phrases that begin at token t and end before best[list], which becomes 0."""
    for which in range(len(best)):
        past = best[which]
        if past:
            best[which] = 0
            free[which] = past
            if past == t + 1:
                out[t, which] = SINGLE
            else:
                out[t, which] = FIRST
                out[t + 1 : past - 1, which] = INSIDE
                out[past - 1, which] = LAST


@kernel
def match_phrases(
    words: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    sequence_owner: npt.NDArray[np.uint64],
    pieces: npt.NDArray[np.int32],
    trie: Trie,
    out: Places,
) -> None:
    """Write FIRST, INSIDE, LAST or SINGLE where a list has a phrase; out is zero before.

    words: row of `pieces` of each token; pieces: (n_words, most pieces of a word).
    out: (n_tokens, n_lists).
    """
    edges, edge_node = trie.edges, trie.edge_node
    entry_first, entry_list, entry_owner = trie.entry_first, trie.entry_list, trie.entry_owner
    n_lists = out.shape[1]
    best = np.zeros(n_lists, np.int64)  # past the longest phrase of each list, 0 for none
    free = np.zeros(n_lists, np.int64)  # the first token that no phrase of a list has taken
    for s in range(len(offsets) - 1):
        end = offsets[s + 1]
        for t in range(offsets[s], end):
            if pieces[words[t], 0] < 0:
                continue
            node = np.int64(0)
            found = False
            for u in range(t, end):
                word = words[u]
                for p in range(pieces.shape[1]):
                    piece = pieces[word, p]
                    if piece == NO_PIECE:
                        break
                    if piece == UNKNOWN_PIECE:
                        node = np.int64(EMPTY)
                        break
                    key = (np.uint64(node) << np.uint64(32)) + np.uint64(piece)
                    node = np.int64(edge_node[find_place(edges, edge_node, key)])
                    if node == EMPTY:
                        break
                if node == EMPTY:
                    break
                if pieces[word, 0] == NO_PIECE:
                    continue  # blank: inside of a phrase at most
                for e in range(entry_first[node], entry_first[node + 1]):
                    owner = entry_owner[e]
                    which = entry_list[e]
                    if (owner == 0 or owner != sequence_owner[s]) and free[which] <= t:
                        best[which] = u + 1
                        found = True
            if found:
                _mark(t, best, free, out)
