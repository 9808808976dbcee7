"""The loop of rounds: which round it keeps, when it stops, and what callbacks see."""

from __future__ import annotations

import math

import pytest

from spacy_treecrf.engine.boosting.rounds import (
    HeldOut,
    RoundInfo,
    Stopping,
    kept_line,
    run_rounds,
)

NOTHING = [None] * 100


class Scripted:
    """Learns nothing; held-out accuracies are read from a list, that of the start first."""

    def __init__(self, accuracies: list[float | None], ends_after: int = 10**6, done: int = 0):
        self.accuracies = accuracies
        self.ends_after = ends_after
        self.done = self.rounds = done

    @property
    def n_trees(self) -> int:
        return 2 * self.rounds

    @property
    def learned(self) -> str:
        return f"round {self.rounds}"

    @property
    def finished(self) -> bool:
        return self.rounds >= self.ends_after

    def learn_round(self) -> None:
        self.rounds += 1

    def round_log_likelihood(self) -> float:
        return -1.0 / (self.rounds + 1)

    def held_out_figures(self) -> HeldOut | None:
        value = self.accuracies[self.rounds - self.done]
        return None if value is None else HeldOut(-value, value)


@pytest.mark.parametrize(
    ("accuracies", "stopping", "kept", "last"),
    [
        (NOTHING, Stopping(3, "accuracy"), 9, 9),
        ([0.1, 0.2, 0.3, 0.3, 0.2, 0.2, 0.9], Stopping(3, "accuracy"), 2, 5),
        ([0.1, 0.2, 0.3, 0.3, 0.2, 0.2, 0.9] + [0.0] * 3, Stopping(0, "accuracy"), 6, 9),
        ([0.5] + [0.4] * 9, Stopping(4, "accuracy"), 0, 4),
        ([0.5] + [0.4] * 9, Stopping(4, "accuracy", from_start=False), 1, 5),
        ([0.1, 0.2, 0.3] + [0.1] * 7, Stopping(0, "log_likelihood"), 0, 9),
        # nothing is right for a while: that does not count
        ([0.0] * 7 + [0.1, 0.2, 0.1], Stopping(3, "accuracy"), 8, 9),
        # nor do rounds of the warm-up
        ([0.5] + [0.4] * 9, Stopping(2, "accuracy", warm_up=3), 0, 5),
        ([0.1, 0.3] + [0.2] * 3 + [0.4] * 5, Stopping(2, "accuracy", warm_up=3), 5, 7),
        # only every third round is judged
        ([0.0, None, None, 0.5, None, None, 0.6, None, None, 0.1], Stopping(3, "accuracy"), 6, 9),
    ],
)
def test_the_best_round_is_kept(
    accuracies: list[float | None], stopping: Stopping, kept: int, last: int
) -> None:
    learner = Scripted(accuracies)
    assert run_rounds(learner, 9, stopping) == f"round {kept}"
    assert learner.rounds == last


def test_rounds_before_this_training_count() -> None:
    learner = Scripted([0.3, 0.1, 0.2, 0.2, 0.2], done=5)
    assert run_rounds(learner, 9, Stopping(3, "accuracy")) == "round 5"
    assert learner.rounds == 8
    assert run_rounds(Scripted(NOTHING, done=12), 9, Stopping(3, "accuracy")) == "round 12"


def test_nothing_is_learned_after_the_end() -> None:
    learner = Scripted(NOTHING, ends_after=4)
    assert run_rounds(learner, 9, Stopping(3, "accuracy")) == "round 4"


def test_callbacks_see_every_round() -> None:
    infos: list[RoundInfo] = []
    run_rounds(Scripted([0.0, 0.5, None, 0.25]), 3, Stopping(0, "accuracy"), infos.append)
    assert [info.round for info in infos] == [1, 2, 3]
    assert [info.trees for info in infos] == [2, 4, 6]
    assert [info.log_likelihood for info in infos] == [-1 / 2, -1 / 3, -1 / 4]
    assert [info.held_out_accuracy for info in infos] == [0.5, None, 0.25]
    assert [info.held_out_log_likelihood for info in infos] == [-0.5, None, -0.25]
    assert all(math.isfinite(info.seconds) and info.seconds >= 0.0 for info in infos)


def test_auto_watches_f1_where_there_are_spans() -> None:
    without, with_spans = HeldOut(-1.0, 0.5), HeldOut(-1.0, 0.5, 0.25)
    assert Stopping(1, "auto").figure(with_spans) == "f1"
    assert Stopping(1, "auto").figure(without) == "log_likelihood"
    assert Stopping(1, "auto", otherwise="accuracy").figure(without) == "accuracy"
    assert Stopping(1, "log_likelihood").figure(with_spans) == "log_likelihood"
    with pytest.raises(ValueError, match=r"monitor.*'f1'.*spell no spans.*use 'auto'"):
        Stopping(1, "f1").figure(without)


def test_what_was_kept_is_said() -> None:
    assert kept_line(34, 60, "f1", 0.4121) == "kept round 34 of 60 (dev F1 41.2)"
    assert kept_line(3, 9, "accuracy", 0.9) == "kept round 3 of 9 (dev accuracy 90.00%)"
    line = kept_line(3, 9, "log_likelihood", -0.25)
    assert line == "kept round 3 of 9 (dev log-likelihood -0.2500)"
    assert kept_line(0, 9, "f1", None) == "kept round 0 of 9: none was better"


def test_of_equal_f1_the_likelier_round_is_kept() -> None:
    class SameF1(Scripted):
        def held_out_figures(self) -> HeldOut | None:
            return HeldOut(-abs(self.rounds - 4.0), 0.5, 0.9)

    assert run_rounds(SameF1([]), 9, Stopping(5, "f1")) == "round 4"
    # Patience counts from the last rise of F1: the loop ends before round 4.
    assert run_rounds(SameF1([]), 9, Stopping(3, "f1")) == "round 3"
    assert run_rounds(SameF1([]), 9, Stopping(3, "accuracy")) == "round 0"
