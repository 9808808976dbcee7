"""Words that a document uses more than once: how they are cased elsewhere, and what is around.

A kernel counts the words of a document, then tells each token what its other places show. Kernels
have plain loops and what they need is made outside, so that they compile in little time.
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
NOTHING = np.uint64(0)
# Rows of what `repeat_keys` writes.
CASE, REPEATED, BEFORE, AFTER = range(4)
N_KEYS = 4


class Tokens(NamedTuple):
    """The tokens of some documents, cut into sequences."""

    orth: npt.NDArray[np.uint64]  # shape: (n_tokens,), spaCy's hash of the word
    words: npt.NDArray[np.int32]  # shape: (n_tokens,), row of the word in `table`
    table: npt.NDArray[np.int32]  # shape: (n_words, 2), id of the lower-case form, and case
    offsets: npt.NDArray[np.int64]  # shape: (n_sequences + 1,)
    doc_offsets: npt.NDArray[np.int64]  # shape: (n_docs + 1,)


@kernel
def find_headings(
    tokens: Tokens, bounds: npt.NDArray[np.int64], heading: npt.NDArray[np.uint64]
) -> None:
    """Write where the sequence of each token starts and ends, and the case of that sequence.

    A sequence is in lower case if any word is in lower or mixed case, else in the more frequent
    one. bounds: (n_tokens, 2); heading: (n_tokens,).
    """
    words, table, offsets = tokens.words, tokens.table, tokens.offsets
    for s in range(len(offsets) - 1):
        start, end = offsets[s], offsets[s + 1]
        title = upper = lower = 0
        for t in range(start, end):
            case = table[words[t], 1]
            if case == TITLE_CASE:
                title += 1
            elif case == UPPER_CASE:
                upper += 1
            elif case != NO_CASE:
                lower += 1
        found = LOWER_CASE
        if lower == 0:
            found = TITLE_CASE if title > upper else UPPER_CASE if upper > 0 else NO_CASE
        for t in range(start, end):
            bounds[t, 0] = start
            bounds[t, 1] = end
            heading[t] = found


@kernel
def repeat_keys(
    tokens: Tokens,
    bounds: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int32],
    first: npt.NDArray[np.int64],
    most_repeats: int,
    out: npt.NDArray[np.uint64],
) -> None:
    """What the document says elsewhere about the word of each token, upper and lower case alike.

    bounds: of the sequence of each token, (n_tokens, 2).
    counts, first: scratch, (n lower-case forms, N_CASES) of 0 and (same, 2) of NOWHERE; left so.
    out: (N_KEYS, n_tokens). CASE: a bit for each case it has elsewhere. REPEATED: how often it is
        there, not in lower case. BEFORE, AFTER: orth of the neighbours it has there for the first
        time, or 0.
    """
    words, table, orth, doc_offsets = tokens.words, tokens.table, tokens.orth, tokens.doc_offsets
    for d in range(len(doc_offsets) - 1):
        start, end = doc_offsets[d], doc_offsets[d + 1]
        for t in range(start, end):
            word, case = table[words[t], 0], table[words[t], 1]
            if case == TITLE_CASE and t == bounds[t, 0]:
                case = NO_CASE  # says nothing: any word would be in title case there
            out[CASE, t] = case  # until the next loop
            if case != NO_CASE:
                counts[word, case] += 1
                if case != LOWER_CASE:
                    if first[word, 0] == NOWHERE:
                        first[word, 0] = t
                    elif first[word, 1] == NOWHERE:
                        first[word, 1] = t
        for t in range(start, end):
            word = table[words[t], 0]
            own = np.int64(out[CASE, t])
            bits = 0
            repeats = 0
            for c in range(1, N_CASES):  # nothing is counted under NO_CASE
                elsewhere = counts[word, c] - (1 if c == own else 0)
                if elsewhere > 0:
                    bits += 1 << c
                    repeats += 0 if c == LOWER_CASE else elsewhere
            where = first[word, 1] if first[word, 0] == t else first[word, 0]
            is_known = where != NOWHERE
            out[CASE, t] = bits
            out[REPEATED, t] = repeats if repeats < most_repeats else most_repeats
            out[BEFORE, t] = orth[where - 1] if is_known and where > bounds[where, 0] else NOTHING
            out[AFTER, t] = (
                orth[where + 1] if is_known and where + 1 < bounds[where, 1] else NOTHING
            )
        for t in range(start, end):
            word = table[words[t], 0]
            for c in range(N_CASES):
                counts[word, c] = 0
            first[word, 0] = NOWHERE
            first[word, 1] = NOWHERE
