"""Words that a document uses more than once: how they are cased elsewhere, and what is around."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

# Case of a word. NO_CASE: no letters that have a case.
NO_CASE, LOWER_CASE, TITLE_CASE, UPPER_CASE, MIXED_CASE = range(5)
N_CASES = 5
NOWHERE = -1
# Rows of what `document_keys` writes.
CASE, REPEATED, BEFORE, AFTER, HEADING = range(5)
N_KEYS = 5


@njit(nogil=True, cache=True, inline="always")
def _tells(case: int, t: int, sequence_start: int) -> bool:
    """Not so a word in title case that starts a sequence: any word would be in title case."""
    return case != NO_CASE and not (case == TITLE_CASE and t == sequence_start)


@njit(nogil=True, cache=True)
def document_keys(
    orth: npt.NDArray[np.uint64],
    words: npt.NDArray[np.int32],
    table: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    doc_offsets: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int32],
    first: npt.NDArray[np.int64],
    most_repeats: int,
    out: npt.NDArray[np.uint64],
) -> None:
    """What the document says elsewhere about the word of each token, upper and lower case alike.

    words: row of each token in `table`, which has (id of the lower-case form, case).
    counts, first: scratch, (n lower-case forms, N_CASES) of 0 and (same, 2) of NOWHERE; left so.
    out: (N_KEYS, n_tokens). CASE: a bit for each case it has elsewhere. REPEATED: how often it is
        there, not in lower case. BEFORE, AFTER: orth of the neighbours it has there for the first
        time, or 0. HEADING: case of the whole sequence.
    """
    sequence_start = np.empty(len(orth), np.int64)
    sequence_end = np.empty(len(orth), np.int64)
    for s in range(len(offsets) - 1):
        sequence_start[offsets[s] : offsets[s + 1]] = offsets[s]
        sequence_end[offsets[s] : offsets[s + 1]] = offsets[s + 1]
        out[HEADING, offsets[s] : offsets[s + 1]] = _heading(
            words, table, offsets[s], offsets[s + 1]
        )
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
            bits = np.uint64(0)
            repeats = 0
            for c in range(N_CASES):
                elsewhere = counts[word, c] - (1 if itself and c == case else 0)
                if elsewhere > 0:
                    bits |= np.uint64(1) << np.uint64(c)
                    if c != LOWER_CASE:
                        repeats += elsewhere
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


@njit(nogil=True, cache=True)
def _heading(
    words: npt.NDArray[np.int32], table: npt.NDArray[np.int32], start: int, end: int
) -> int:
    """Lower if any word is lower or mixed, else the more frequent of upper and title."""
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
