"""Places of a document that look alike, as those of lists and tables: what is said of the others.

In "1. Croatia 7.75 2. Malta 7.40" both names are of one type, whoever knows only one of them. Runs
of capitalised words go together where the two words before them and the two behind look alike:
names stand for any name, numbers for any number, other words and signs for themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from spacy.attrs import SHAPE  # type: ignore[import-not-found]
from spacy.tokens import Doc

from spacy_treecrf.pipeline.evidence.opinion_pool import Keys, Rows, Together, Words, joined_keys

FEWEST = 3  # places that make a list
DIGIT = "d"  # what shapes of words have for digits, and for nothing else
# What words are told apart by, beside the numbers of words.
CAPITALISED, NUMBER, EDGE = np.arange(1, 4, dtype=np.uint64)
_NAME, _SIGN, _NO_WORD = range(1, 4)  # the same in `may_look_alike`


def like_places(docs: Sequence[Doc], words: Words, offsets: Rows) -> Together | None:
    """The capitalised words whose place three or more of a doc look like; None if there are none.

    words: of the docs. offsets: of their sequences, laid end to end, whose edges are a sign of
    their own.
    """
    is_name = words.orth != words.lower
    if np.count_nonzero(is_name) < FEWEST:
        return None
    is_edge = np.zeros(len(is_name) + 2, np.bool_)
    is_edge[offsets] = True
    first, past = _runs(is_name, is_edge[: len(is_name) + 1])
    lengths = past - first
    if len(first) < FEWEST or np.bincount(lengths).max() < FEWEST:
        return None
    looks = _looks(docs, words, is_name)
    keys = joined_keys(words.in_doc[first], lengths.astype(np.uint64))
    before, behind = is_edge[first], is_edge[past]
    keys = joined_keys(keys, np.where(before, EDGE, looks[first - 1]))
    keys = joined_keys(keys, np.where(before | is_edge[first - 1], EDGE, looks[first - 2]))
    keys = joined_keys(keys, np.where(behind, EDGE, looks[past]))
    keys = joined_keys(keys, np.where(behind | is_edge[past + 1], EDGE, looks[past + 1]))
    _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
    are_many = counts[group] >= FEWEST
    if not are_many.any():
        return None
    return _words_in(first[are_many], lengths[are_many], group[are_many])


def may_look_alike(words: list[list[int]]) -> bool:
    """Whether `like_places` may find something in one sequence; quickly, as most have nothing.

    words: ORTH, LOWER and IS_ALPHA of each. Numbers and signs count as alike here.
    """
    looks = [_NAME if orth != lower else orth if alpha else _SIGN for orth, lower, alpha in words]
    looks += [_NO_WORD, _NO_WORD]  # behind the last, which is also before the first
    places: dict[tuple[int, ...], int] = {}
    past = 0
    for first, look in enumerate(looks):
        if look != _NAME or first < past:
            continue
        past = first + 1
        while looks[past] == _NAME:
            past += 1
        place = past - first, looks[first - 1], looks[first - 2], looks[past], looks[past + 1]
        places[place] = count = places.get(place, 0) + 1
        if count == FEWEST:
            return True
    return False


def _runs(is_name: npt.NDArray[np.bool_], is_edge: npt.NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """The first row of each run of names, and the one past its last.

    is_edge: whether a sequence starts or ends before a row. shape: (n_rows + 1,)
    """
    begins, ends = is_name.copy(), is_name.copy()
    begins[1:] &= is_edge[1:-1] | ~is_name[:-1]
    ends[:-1] &= is_edge[1:-1] | ~is_name[1:]
    return np.flatnonzero(begins), np.flatnonzero(ends) + 1


def _words_in(first: Rows, lengths: Rows, group: Rows) -> Together:
    """The words of runs; those at the same position of runs of one group go together.

    Runs of one group are equally long.
    """
    total = np.cumsum(lengths)
    position = np.arange(total[-1]) - np.repeat(total - lengths, lengths)
    most = int(lengths.max())
    together = np.repeat(group, lengths) * most + position
    return Together(np.repeat(first, lengths) + position, [(1.0, together)])


def _looks(docs: Sequence[Doc], words: Words, is_name: npt.NDArray[np.bool_]) -> Keys:
    """What each word looks like to those that stand beside it; edges are behind the last one."""
    looks = np.append(words.orth, (EDGE, EDGE))
    shapes: Keys = np.concatenate([doc.to_array(SHAPE) for doc in docs])
    strings = docs[0].vocab.strings
    of_numbers = [shape for shape in set(shapes[~is_name].tolist()) if DIGIT in strings[shape]]
    looks[:-2][np.isin(shapes, np.array(of_numbers, np.uint64))] = NUMBER
    looks[:-2][is_name] = CAPITALISED
    return looks
