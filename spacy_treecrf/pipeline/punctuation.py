"""Sentences by punctuation alone, as spaCy's sentencizer finds them: of docs without boundaries."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from spacy.attrs import IS_PUNCT, IS_SPACE, ORTH  # type: ignore[import-not-found]
from spacy.pipeline import Sentencizer
from spacy.strings import StringStore
from spacy.tokens import Doc

BLANK_LINE = 2  # line breaks in a token of white space that end a sentence, whatever is before


def punctuation_starts(doc: Doc) -> npt.NDArray[np.int64]:
    """The first token of each sentence of a doc, which has one token or more.

    A sentence starts at a word behind `.`, `?`, `!` or what other scripts have for them, and behind
    a blank line; quotes and brackets between belong to the sentence before.
    """
    values: npt.NDArray[np.uint64] = doc.to_array([ORTH, IS_PUNCT, IS_SPACE])  # type: ignore[assignment]
    ends = np.fromiter(map(_end_marks().__contains__, values[:, 0].tolist()), bool, len(doc))
    is_word = (values[:, 1] == 0) & ~ends
    for i in np.flatnonzero(values[:, 2]).tolist():
        ends[i] = doc[i].text.count("\n") >= BLANK_LINE
        is_word[i] = False
    words = np.flatnonzero(is_word)
    ends_before = np.cumsum(ends)[words]
    starts = words[np.diff(ends_before, prepend=0) > 0]
    return np.append(np.zeros(1, np.int64), starts)


@cache
def _end_marks() -> frozenset[int]:
    """Their numbers as words, which are the same in every vocabulary."""
    strings = StringStore()
    return frozenset(strings[mark] for mark in Sentencizer.default_punct_chars)
