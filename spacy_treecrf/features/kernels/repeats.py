"""Words that a document uses more than once: how they are cased elsewhere, and what is around.

A kernel counts the words of a document, then tells each token what its other places show.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel

# Case of a word. NO_CASE: no letters that have a case.
NO_CASE, LOWER_CASE, TITLE_CASE, UPPER_CASE, MIXED_CASE = range(5)
N_CASES = 5
NOWHERE = -1
# Rows of what `document_keys` writes.
CASE, REPEATED, BEFORE, AFTER, HEADING = range(5)
N_KEYS = 5


class Tokens(NamedTuple):
    """The tokens of some documents, cut into sequences."""

    orth: npt.NDArray[np.uint64]  # shape: (n_tokens,), spaCy's hash of the word
    words: npt.NDArray[np.int32]  # shape: (n_tokens,), row of the word in `table`
    table: npt.NDArray[np.int32]  # shape: (n_words, 2), id of the lower-case form, and case
    offsets: npt.NDArray[np.int64]  # shape: (n_sequences + 1,)
    doc_offsets: npt.NDArray[np.int64]  # shape: (n_docs + 1,)


@kernel(inline="always")
def _tells(case: int, t: int, sequence_start: int) -> bool:
    """Whether the case of a token says something about its word.

    Title case at the start of a sequence does not: any word would be in title case there.
    """
    return case != NO_CASE and not (case == TITLE_CASE and t == sequence_start)


@kernel
def _find_sequences(
    tokens: Tokens, out: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where the sequence of each token starts and ends; HEADING is written."""
    offsets, words, table = tokens.offsets, tokens.words, tokens.table
    sequence_start = np.empty(len(tokens.orth), np.int64)
    sequence_end = np.empty(len(tokens.orth), np.int64)
    for s in range(len(offsets) - 1):
        start, end = offsets[s], offsets[s + 1]
        heading = _heading(words, table, start, end)
        for t in range(start, end):
            sequence_start[t] = start
            sequence_end[t] = end
            out[HEADING, t] = heading
    return sequence_start, sequence_end


@kernel(inline="always")
def _elsewhere(
    counts: npt.NDArray[np.int32], word: int, case: int, itself: bool
) -> tuple[np.uint64, int]:
    """A bit for each case of a word elsewhere, and how often it is there not in lower case.

    counts: by word and case; `itself` says that the token, of this case, is among them.
    """
    bits = np.uint64(0)
    repeats = 0
    for c in range(N_CASES):
        elsewhere = counts[word, c] - (1 if itself and c == case else 0)
        if elsewhere > 0:
            bits |= np.uint64(1) << np.uint64(c)
            if c != LOWER_CASE:
                repeats += elsewhere
    return bits, repeats


@kernel
def document_keys(
    tokens: Tokens,
    counts: npt.NDArray[np.int32],
    first: npt.NDArray[np.int64],
    most_repeats: int,
    out: npt.NDArray[np.uint64],
) -> None:
    """What the document says elsewhere about the word of each token, upper and lower case alike.

    counts, first: scratch, (n lower-case forms, N_CASES) of 0 and (same, 2) of NOWHERE; left so.
    out: (N_KEYS, n_tokens). CASE: a bit for each case it has elsewhere. REPEATED: how often it is
        there, not in lower case. BEFORE, AFTER: orth of the neighbours it has there for the first
        time, or 0. HEADING: case of the whole sequence.
    """
    words, table, orth, doc_offsets = tokens.words, tokens.table, tokens.orth, tokens.doc_offsets
    sequence_start, sequence_end = _find_sequences(tokens, out)
    for d in range(len(doc_offsets) - 1):
        start, end = doc_offsets[d], doc_offsets[d + 1]
        for t in range(start, end):
            word, case = table[words[t], 0], table[words[t], 1]
            if _tells(case, t, sequence_start[t]):
                counts[word, case] += 1
                if case != LOWER_CASE:
                    if first[word, 0] == NOWHERE:
                        first[word, 0] = t
                    elif first[word, 1] == NOWHERE:
                        first[word, 1] = t
        for t in range(start, end):
            word, case = table[words[t], 0], table[words[t], 1]
            itself = _tells(case, t, sequence_start[t])
            bits, repeats = _elsewhere(counts, word, case, itself)
            out[CASE, t] = bits
            out[REPEATED, t] = min(repeats, most_repeats)
            where = first[word, 1] if first[word, 0] == t else first[word, 0]
            out[BEFORE, t] = 0
            out[AFTER, t] = 0
            if where != NOWHERE:
                if where > sequence_start[where]:
                    out[BEFORE, t] = orth[where - 1]
                if where + 1 < sequence_end[where]:
                    out[AFTER, t] = orth[where + 1]
        for t in range(start, end):
            word = table[words[t], 0]
            for c in range(N_CASES):
                counts[word, c] = 0
            first[word, 0] = NOWHERE
            first[word, 1] = NOWHERE


@kernel
def _heading(
    words: npt.NDArray[np.int32], table: npt.NDArray[np.int32], start: int, end: int
) -> int:
    """The case of a sequence: lower if any word is lower or mixed, else the more frequent one."""
    title = upper = 0
    for t in range(start, end):
        case = table[words[t], 1]
        if case in (LOWER_CASE, MIXED_CASE):
            return LOWER_CASE
        title += case == TITLE_CASE
        upper += case == UPPER_CASE
    if upper >= title and upper > 0:
        return UPPER_CASE
    return TITLE_CASE if title else NO_CASE
