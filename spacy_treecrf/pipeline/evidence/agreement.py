"""Words that a document repeats: what is said of them elsewhere in it, as evidence.

A name that one sentence leaves open is often clear from another one (Krishnan and Manning, 2006,
"An effective two-stage model for exploiting non-local dependencies in named entity recognition").
The second stage here is not learned: a capitalised word moves towards what the model says, on
average, where the document has the word; see `opinion_pool`.
"""

from __future__ import annotations

import numpy as np

from spacy_treecrf.pipeline.evidence.opinion_pool import (
    Rows,
    Together,
    Words,
    joined_keys,
    numbered,
)

# A place counts for so much more where also the word before is the same, and the word behind.
SAME_NEIGHBOUR = 2.0


def repeated_words(words: Words, offsets: Rows) -> Together | None:
    """The capitalised words that any of the docs has twice or more; None if there are none.

    offsets: of the sequences of the docs, laid end to end; neighbours are in the same sequence.
    """
    orth, lower, in_doc = words.orth, words.lower, words.in_doc
    if in_doc[0] == in_doc[-1] and _are_different(lower[orth != lower].tolist()):
        return None
    keys = joined_keys(lower, in_doc)
    rows = np.flatnonzero(orth != lower)
    _, group, counts = np.unique(keys[rows], return_inverse=True, return_counts=True)
    rows = rows[counts[group] > 1]
    if not len(rows):
        return None
    # Beyond the ends of sequences there are words that nothing else has.
    padded = np.arange(1, len(keys) + 1, dtype=np.uint64)
    before, after = padded.copy(), padded.copy()
    before[1:], after[:-1] = lower[:-1], lower[1:]
    first = offsets[:-1][np.diff(offsets) > 0]
    before[first] = padded[first]
    last = offsets[1:][np.diff(offsets) > 0] - 1
    after[last] = padded[last]
    groups = [
        (1.0, numbered(keys[rows])),
        (SAME_NEIGHBOUR, numbered(joined_keys(keys, before)[rows])),
        (SAME_NEIGHBOUR, numbered(joined_keys(keys, after)[rows])),
    ]
    return Together(rows, groups)


def _are_different(words: list[int]) -> bool:
    return len(set(words)) == len(words)
