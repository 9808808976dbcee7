"""Scores of spans are those that conlleval counts."""

from __future__ import annotations

import pytest

from spacy_treecrf.evaluation.spans import SpanScore, span_scores, total_score


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
