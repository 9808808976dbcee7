"""Shares of right labels and confusion, on examples counted by hand."""

from __future__ import annotations

import pytest

from spacy_treecrf.evaluation.labels import confusion, token_share

GOLD = [["A", "B", "A"], ["B"], ["A", None]]
PREDICTED = [["A", "A", "A"], ["B"], ["A", "B"]]


def test_shares_count_annotated_positions_only() -> None:
    shares = [token_share(a, b) for a, b in zip(GOLD, PREDICTED, strict=True)]
    assert [(share.right, share.total) for share in shares] == [(2, 3), (1, 1), (1, 1)]
    assert [share.value for share in shares] == [2 / 3, 1.0, 1.0]


def test_without_annotation_there_is_no_share() -> None:
    assert token_share([None, None], ["A", "B"]).value is None


def test_confusion_counts_pairs_and_orders_labels_by_gold_frequency() -> None:
    found = confusion(GOLD, [["A", "A", "C"], ["B"], ["A", "B"]])
    assert found.labels == ["A", "B", "C"]
    assert found.table(found.labels) == [[2, 0, 1], [1, 1, 0], [0, 0, 0]]
    assert found.mistakes() == [("A", "C", 1), ("B", "A", 1)]
    assert found.mistakes(1) == [("A", "C", 1)]


def test_sequences_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match="treecrf: 2 gold sequences and 1 predicted"):
        confusion([["A"], ["A"]], [["A"]])
    with pytest.raises(ValueError, match="treecrf: sequence 1 has 2 gold labels and 1"):
        confusion([["A"], ["A", "B"]], [["A"], ["A"]])
