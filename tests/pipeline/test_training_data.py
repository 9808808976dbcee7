"""What pipes tell of their training data."""

from __future__ import annotations

import logging
import sys

import pytest

from spacy_treecrf.pipeline.gold.training_data import describe_training_data
from spacy_treecrf.pipeline.tasks import make_task

ENTITIES = [
    ["U-PER", "O", "B-ORG", "L-ORG"],
    ["U-PER", None, "O"],
    [None, None],
]
LEARNED = [["U-PER", "O", None, None], *ENTITIES[1:]]
FOUND = "3 docs, 9 tokens"
COUNTS = "3 spans of 2 labels: PER 2, ORG 1"
DOUBTS = [
    "1 docs have no annotation that this task reads",
    "1 tokens of annotated docs are not annotated",
    "1 spans reach over the end of a sentence",
    "fewer than 10 examples: ORG 1, PER 2",
]


def test_the_log_has_counts_and_doubts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="spacy"):
        describe_training_data("treecrf", make_task("ents"), ENTITIES, LEARNED)
    for line in (FOUND, COUNTS, *DOUBTS):
        assert line in caplog.text


def test_debug_data_shows_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["spacy", "debug", "data", "my.cfg"])
    describe_training_data("treecrf", make_task("ents"), ENTITIES, LEARNED)
    shown = capsys.readouterr().out
    for line in (FOUND, COUNTS, *DOUBTS):
        assert line in shown


def test_tokens_are_counted_where_labels_are_no_spans(caplog: pytest.LogCaptureFixture) -> None:
    many = [[f"L{i}" for i in range(30)] * 10]
    with caplog.at_level(logging.INFO, logger="spacy"):
        describe_training_data("treecrf", make_task("tag"), many, many)
    assert "300 tokens of 30 labels: L0 10," in caplog.text
    assert "and 10 more" in caplog.text
    assert "fewer than" not in caplog.text
    assert "cannot be learned" not in caplog.text
