"""Accuracy and confusion, on examples counted by hand."""

from __future__ import annotations

import pytest

from spacy_treecrf.evaluation.labels import confusion, sequence_accuracy, token_accuracy

GOLD = [["A", "B", "A"], ["B"], ["A", None]]
PREDICTED = [["A", "A", "A"], ["B"], ["A", "B"]]


def test_token_accuracy_counts_annotated_positions_only() -> None:
    assert token_accuracy(GOLD, PREDICTED) == 4 / 5


def test_sequence_accuracy_counts_sequences_without_a_wrong_label() -> None:
    assert sequence_accuracy(GOLD, PREDICTED) == 2 / 3


def test_without_annotation_there_is_no_accuracy() -> None:
    assert token_accuracy([[None, None]], [["A", "B"]]) is None
    assert sequence_accuracy([[None]], [["A"]]) is None
    assert token_accuracy([], []) is None


def test_confusion_counts_pairs_and_orders_labels_by_gold_frequency() -> None:
    found = confusion(GOLD, [["A", "A", "C"], ["B"], ["A", "B"]])
    assert found.labels == ["A", "B", "C"]
    assert found.table(found.labels) == [[2, 0, 1], [1, 1, 0], [0, 0, 0]]
    assert found.mistakes() == [("A", "C", 1), ("B", "A", 1)]
    assert found.mistakes(1) == [("A", "C", 1)]


def test_sequences_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match="treecrf: 2 gold sequences and 1 predicted"):
        token_accuracy([["A"], ["A"]], [["A"]])
    with pytest.raises(ValueError, match="treecrf: sequence 1 has 2 gold labels and 1"):
        confusion([["A"], ["A", "B"]], [["A"], ["A"]])
