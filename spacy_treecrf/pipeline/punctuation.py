"""Sentences by punctuation alone, as spaCy's sentencizer finds them: of docs without boundaries."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from spacy.attrs import IS_PUNCT, IS_SPACE, ORTH  # type: ignore[import-not-found]
from spacy.pipeline import Sentencizer
from spacy.strings import StringStore
from spacy.tokens import Doc

_ATTRS = [ORTH, IS_PUNCT, IS_SPACE]
BLANK_LINE = 2  # line breaks in a token of white space that end a sentence, whatever is before


def punctuation_starts(doc: Doc) -> npt.NDArray[np.int64]:
    """The first token of each sentence of a doc, which has one token or more.

    A sentence starts at a word behind `.`, `?`, `!` or what other scripts have for them, and behind
    a blank line; quotes and brackets between belong to the sentence before.
    """
    values: npt.NDArray[np.uint64] = doc.to_array(_ATTRS)  # type: ignore[assignment]
    marks = _end_marks()
    words, signs, spaces = values.T.tolist()
    if marks.isdisjoint(words[:-1]) and not any(spaces):
        return np.zeros(1, np.int64)  # one sentence, as most docs that come one by one
    starts = [0]
    ended = False
    for i, (orth, is_punct, is_space) in enumerate(zip(words, signs, spaces, strict=True)):
        if is_space:
            ended = ended or doc[i].text.count("\n") >= BLANK_LINE
        elif orth in marks:
            ended = True
        elif ended and not is_punct:
            starts.append(i)
            ended = False
    return np.array(starts, np.int64)


@cache
def _end_marks() -> frozenset[int]:
    """Their numbers as words, which are the same in every vocabulary."""
    strings = StringStore()
    return frozenset(strings[mark] for mark in Sentencizer.default_punct_chars)
