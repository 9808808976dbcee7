"""What pipes keep of their training."""

from __future__ import annotations

from pathlib import Path

import pytest
import spacy

from spacy_treecrf.pipeline.history import History, history_of
from tests.pipeline.tiny_pipes import corpus, new_nlp, pipe_of, train


def test_losses_before_each_step_are_kept_with_the_pipe(tmp_path: Path) -> None:
    nlp = new_nlp()
    examples = corpus(nlp)
    nlp.initialize(lambda: examples)
    losses = train(nlp, examples, 3)
    kept = history_of(pipe_of(nlp).cfg)
    assert [rounds for rounds, _ in kept] == [0, 5, 10]
    assert [loss for _, loss in kept] == pytest.approx(losses, abs=1e-6)
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    assert history_of(pipe_of(again).cfg) == kept
    train(again, examples, 1)
    assert [rounds for rounds, _ in history_of(pipe_of(again).cfg)] == [0, 5, 10, 15]
    nlp.initialize(lambda: examples)
    assert history_of(pipe_of(nlp).cfg) == []


def test_batches_between_two_steps_are_averaged() -> None:
    cfg: dict[str, object] = {}
    history = History(cfg)
    for loss in (1.0, 2.0, 6.0):
        history.add(5, loss)
    history.add(10, 0.5)
    assert history_of(cfg) == [(5, pytest.approx(3.0)), (10, 0.5)]


@pytest.mark.parametrize("stored", [None, "x", [1], [[1, "x"]], [[1, 2, 3]], {"a": 1}])
def test_what_is_no_history_counts_as_none(stored: object) -> None:
    assert history_of({"history": stored}) == []


@pytest.mark.parametrize("stored", ["x", [1], {"a": 1}])
def test_history_begins_anew_where_something_else_was_stored(stored: object) -> None:
    cfg: dict[str, object] = {"history": stored}
    History(cfg).add(5, 1.0)
    assert history_of(cfg) == [(5, 1.0)]


def test_losses_that_json_cannot_hold_are_not_kept() -> None:
    cfg: dict[str, object] = {}
    for loss in (float("inf"), float("nan")):
        History(cfg).add(5, loss)
    assert history_of(cfg) == []
