"""Scores of spans are those that conlleval counts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.evaluation.spans import (
    SpanScore,
    scores_of_pairs,
    sequence_spans,
    span_scores,
    total_score,
)
from spacy_treecrf.labels.biluo import TokenSpan, labels_of_spans


def test_scores_by_type_counted_by_hand() -> None:
    gold = [["B-X", "I-X", "O", "B-Y"], ["B-Y", "O", "B-X"]]
    found = [["B-X", "I-X", "O", "B-X"], ["B-Y", "I-Y", "B-X"]]
    scores = span_scores(gold, found)
    assert scores == {"X": SpanScore(2, 3, 2), "Y": SpanScore(0, 1, 2)}
    assert scores["X"].precision == 2 / 3
    assert scores["X"].recall == 1.0
    assert scores["X"].f1 == pytest.approx(0.8)
    assert scores["Y"].f1 == 0.0
    total = total_score(scores)
    assert (total.right, total.predicted, total.gold) == (2, 4, 4)
    assert total.f1 == 0.5


def test_nothing_found_and_nothing_to_find_is_zero_not_an_error() -> None:
    assert span_scores([["O"]], [["O"]]) == {}
    assert total_score({}).f1 == 0.0
    assert SpanScore(0, 0, 3).precision == 0.0


def test_predictions_on_unannotated_parts_do_not_count() -> None:
    scores = span_scores([["B-X", None, "O"]], [["B-X", "B-X", "B-X"]])
    assert scores["X"] == SpanScore(1, 2, 1)


def test_spans_that_tokens_cannot_spell_are_missed_and_their_tokens_annotated() -> None:
    gold, predicted = ["U-X", None, None], ["U-X", "U-X", "U-X"]
    wanted, found = sequence_spans(gold, predicted, unaligned=[(1, 2, "X")])
    assert scores_of_pairs([(wanted, found)]) == {"X": SpanScore(1, 2, 2)}


def spans_from(bounds: list[int]) -> list[TokenSpan]:
    """Every second part between the bounds, as a span."""
    return [(a, b, "XY"[a % 2]) for a, b in list(pairwise(sorted(set(bounds))))[::2]]


@given(
    gold=st.lists(st.integers(0, 20), max_size=8),
    predicted=st.lists(st.integers(0, 20), max_size=8),
    ends=st.sets(st.integers(1, 19), max_size=5),
)
def test_docs_score_the_same_when_they_are_cut(
    gold: list[int], predicted: list[int], ends: set[int]
) -> None:
    """Predicted spans end where a sequence does; gold spans may be longer."""
    cuts = [0, *sorted(ends), 20]
    whole = labels_of_spans(spans_from(gold), 20)
    found = labels_of_spans(spans_from([*predicted, *ends]), 20)
    in_parts = [[labels[a:b] for a, b in pairwise(cuts)] for labels in (whole, found)]
    assert span_scores(*in_parts, cut=True) == span_scores([whole], [found])
