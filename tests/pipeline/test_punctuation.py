"""Sentences by punctuation: those of spaCy's sentencizer, and blank lines."""

from __future__ import annotations

import numpy as np
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from spacy_treecrf.pipeline.punctuation import punctuation_starts

NLP = spacy.blank("en")
WORDS = ["a", "B", "1", ".", "?", "...", "。", "؟", '"', ")", "(", ","]


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=20))
def test_sentences_are_those_of_the_sentencizer(words: list[str]) -> None:
    doc = Doc(NLP.vocab, words=words)
    [expected] = Sentencizer().predict([doc])
    assert punctuation_starts(doc).tolist() == np.flatnonzero(expected).tolist()


def test_a_blank_line_ends_a_sentence_and_a_line_break_does_not() -> None:
    doc = NLP("A heading\n\nThe text goes\non here. It ends.")
    starts = [doc[i].text for i in punctuation_starts(doc).tolist()]
    assert starts == ["A", "The", "It"]
