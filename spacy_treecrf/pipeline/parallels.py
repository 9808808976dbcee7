"""Places of a document that look alike, as those of lists and tables: what is said of the others.

In "1. Croatia 7.75 2. Malta 7.40" both names are of one type, whoever knows only one of them. Runs
of capitalised words go together where the two words before them and the two behind look alike:
names stand for any name, numbers for any number, other words and signs for themselves.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from spacy.strings import StringStore

from spacy_treecrf.pipeline.opinion_pool import Keys, Rows, Together, Words, joined_keys

FEWEST = 3  # places that make a list
DIGIT = "d"  # what shapes of words have for digits, and for nothing else
# What words are told apart by, beside the numbers of words.
CAPITALISED, NUMBER, EDGE = np.arange(1, 4, dtype=np.uint64)


def like_places(words: Words, offsets: Rows, strings: StringStore) -> Together | None:
    """The capitalised words whose place three or more of a doc look like; None if there are none.

    offsets: of the sequences of the docs, laid end to end, whose edges are a sign of their own.
    strings: that have the words' shapes.
    """
    is_name = words.orth != words.lower
    rows = np.flatnonzero(is_name)
    if len(rows) < FEWEST:
        return None
    looks = _looks(words, is_name, strings)
    lengths = np.diff(offsets)
    start, end = np.repeat(offsets[:-1], lengths), np.repeat(offsets[1:], lengths)
    here = np.arange(len(looks))
    # Where the run of names begins that holds a name, and where it has ended.
    first = np.maximum.accumulate(np.where(is_name, start, here + 1))[rows]
    past = np.minimum.accumulate(np.where(is_name, end, here)[::-1])[::-1][rows]
    start, end = start[rows], end[rows]
    keys = joined_keys(words.in_doc[rows], (rows - first).astype(np.uint64))
    keys = joined_keys(keys, (past - rows).astype(np.uint64))
    for place in (first - 1, first - 2, past, past + 1):
        inside = (place >= start) & (place < end)
        keys = joined_keys(keys, np.where(inside, looks[np.where(inside, place, 0)], EDGE))
    _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
    are_many = counts[group] >= FEWEST
    return Together(rows[are_many], [(1.0, group[are_many])]) if are_many.any() else None


def _looks(words: Words, is_name: npt.NDArray[np.bool_], strings: StringStore) -> Keys:
    """What each word looks like to those that stand beside it."""
    looks = words.orth.copy()
    shapes = set(words.shape.tolist())
    of_numbers = [shape for shape in shapes if DIGIT in strings[shape]]
    looks[np.isin(words.shape, np.array(of_numbers, np.uint64))] = NUMBER
    looks[is_name] = CAPITALISED
    return looks
