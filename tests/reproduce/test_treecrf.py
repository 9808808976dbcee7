"""Tables 3.4 to 3.6 and the figures of Kersting and Gutmann: windows, tuning, rivals and times."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from scripts.reproduce import conjugate, times, treecrf
from scripts.reproduce.crfsuite import CRFsuite
from scripts.reproduce.problems import PROBLEMS, window_items
from scripts.reproduce.treecrf import Trained, best_penalty, percent_right, rivals_table, starred
from tests.corpora.places import folder_with
from tests.fresh_environment import ROOT
from tests.tiny import tiny_data


def test_a_window_shows_neighbours_and_their_conjunctions() -> None:
    items = window_items("abc", range(-1, 3), (2,))
    assert items[0] == {
        "1[-1]": "_", "1[0]": "a", "1[1]": "b", "1[2]": "c",
        "2[-1]": "_ a", "2[0]": "a b", "2[1]": "b c",
    }  # fmt: skip
    assert items[2]["1[1]"] == items[2]["1[2]"] == "_"
    assert len(PROBLEMS["Hyphen"].window) == 6


def test_stars_and_accuracies() -> None:
    assert [starred(p, (0.025, 0.005)) for p in (0.03, 0.01, 0.001)] == ["", "*", "**"]
    assert percent_right([["a", "b"], ["c"]], [["a", "c"], ["c"]]) == pytest.approx(200 / 3)


def test_rivals_are_judged_against_crfsuite_alone() -> None:
    gold = [["a"] * 30]
    right, wrong = Trained(gold, 1.0, 5), Trained([["b"] * 30], 2.0, 7)
    table = rivals_table("NETtalk", gold, {"ours": right, "CRFsuite": wrong})
    assert table.rows[0][:4] == ["ours", "100.00**", "-", "0.0000"]
    assert table.rows[1] == ["CRFsuite", "0.00", "82.81", "-", "2.0", "13.7", "7", "34"]


def test_crfsuite_learns_and_its_penalty_is_chosen() -> None:
    pytest.importorskip("pycrfsuite")
    X, y = times.hmm(10, 3)
    rival = CRFsuite(0.1).fit(X, y)
    assert percent_right(y, rival.predict(X)) > 60
    assert rival.iterations > 1
    assert best_penalty((X, y), quick=False) < 100.0  # which hardly learns at all


@pytest.mark.slow
def test_tuning_takes_the_published_grid_through_the_search_of_tune(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREECRF_CORPORA", str(folder_with("nettalk")))
    for name in ("configs", "project.yml"):
        os.symlink(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    found = treecrf.tuned("NETtalk", "shrinkage", quick=True)
    assert found.settings["leaves"] == 100
    assert found.settings["penalty"] in (0, 20)
    assert found.rounds in (10, 20, 30)
    assert 60 < found.held_out < 90
    (journal,) = tmp_path.rglob("shrinkage-*.jsonl")
    assert len(journal.read_text(encoding="utf-8").splitlines()) == 1 + 2 * 2
    model = found.estimator()
    assert (model.step, model.family, model.rounds) == ("gradient", "joint", found.rounds)


def test_the_model_of_figure_3_3_is_the_published_one() -> None:
    X, y = times.hmm(200, 3)
    assert (len(X), len(X[0]), len(X[0][0])) == (100, 200, 3)
    labels = [label for own in y for label in own]
    stays = sum(a == b for own in y for a, b in pairwise(own))
    assert stays / (len(labels) - len(y)) == pytest.approx(0.6, abs=0.02)
    words = [int(item["1[0]"]) for own in X for item in own]
    own = sum(word // 8 == int(label) for word, label in zip(words, labels, strict=True))
    assert own / len(labels) == pytest.approx(0.6, abs=0.02)
    assert set(words) == set(range(24))


def test_a_round_has_two_times() -> None:
    found = times.time_of_round(tiny_data(20), rounds=3)
    assert found.forward_backward > 0
    assert found.features > 0


def test_all_eight_ways_to_boost_are_compared(tmp_path: Path) -> None:
    train, test = conjugate.salesman()
    assert (len(train[0]), len(test[0])) == (92, 8)
    curves = conjugate.learned(train, test, rounds=3, leaves=8)
    assert len(curves) == 8
    report = conjugate.reported("title", "some", "Salesman", curves | _longer(curves), tmp_path, [])
    assert (tmp_path / "some.png").exists()
    assert all(len(table.rows) == 8 for table in report.tables)
    assert all(comparison.reached for comparison in report.comparisons)


def _longer(curves: conjugate.Curves) -> conjugate.Curves:
    """The figures that more rounds would have, all like the last."""
    return {name: infos + infos[-1:] * conjugate.FIRST for name, infos in curves.items()}
