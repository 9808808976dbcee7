"""Reports: what is stored comes back, and the page says what is below the published figures."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

import spacy_treecrf
from scripts.reproduce import __main__ as runner
from scripts.reproduce.report import (
    SAME_MODELS,
    Comparison,
    Picture,
    Report,
    Table,
    document,
    load,
    store,
)
from tests.fresh_environment import ROOT

REPORT = Report(
    "Somebody (2009), table 1",
    [Table("Accuracy", ["", "ours"], [["a", "90.1**"]])],
    [
        Comparison("accuracy", 90.1, 89.0, "not said"),
        Comparison("error", 5.0, 4.0, "the open question", lower_is_better=True),
    ],
    [Picture("one.png", "a caption")],
    ["A remark."],
    seconds=200.0,
    version="1.2.3",
)


def test_what_is_stored_comes_back(tmp_path: Path) -> None:
    store(REPORT, tmp_path / "new" / "one.json")
    assert load(tmp_path / "new" / "one.json") == REPORT


def test_the_page_holds_everything_and_lists_what_is_below() -> None:
    page = document({"one": REPORT}, "results")
    assert "spacy-treecrf 1.2.3" in page
    assert "- **The open question**\n    - error: 5, published 4\n" in page
    assert "not said" not in page  # better than published
    assert "| a | 90.1\\*\\* |" in page
    assert "](results/one.png)" in page
    assert "`python -m scripts.reproduce one`: 3 min" in page


def test_what_is_below_is_grouped_by_cause() -> None:
    other = Report(
        "Other (2010), table 2",
        comparisons=[
            Comparison("recall", 1.0, 2.0, "few data"),
            Comparison("loss", 3.0, 2.0, "the open question", lower_is_better=True),
        ],
    )
    page = document({"one": REPORT, "two": other}, "results")
    assert page.count("he open question") == 1
    below = page.partition("## Where ours is below\n\n")[2].partition("\n\n")[0]
    assert below.splitlines() == [
        "- **The open question**",
        "    - error: 5, published 4",
        "    - loss: 3, published 2",
        "- **Few data**",
        "    - recall: 1, published 2",
    ]


def test_a_figure_is_judged_in_its_direction() -> None:
    assert Comparison("", 1.0, 1.0).reached
    assert not Comparison("", 0.9, 1.0).reached
    assert Comparison("", 0.9, 1.0, lower_is_better=True).reached


def test_the_runner_fills_in_what_only_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(runner.EXPERIMENTS, "hao-5.4", ("future", "run_bits"))
    monkeypatch.setattr("scripts.reproduce.future.run_bits", lambda quick, folder: REPORT)
    found = runner.run("hao-5.4", True, tmp_path / "results")
    assert found.version == spacy_treecrf.__version__
    assert found.quick
    assert runner.stored(tmp_path / "results") == {"hao-5.4": found}
    runner.write_page(tmp_path / "results.md")
    assert "A remark." in (tmp_path / "results.md").read_text(encoding="utf-8")


def test_an_unknown_experiment_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        runner.main(["hao-9.9"])
    assert "no experiment hao-9.9; there are hao-3.4" in capsys.readouterr().err


def test_the_page_is_what_the_stored_reports_say() -> None:
    """docs/results.md is generated, by versions that learn the models of this one."""
    reports = runner.stored(ROOT / "docs" / "results")
    assert list(reports) == list(runner.EXPERIMENTS)
    for report in reports.values():
        assert SAME_MODELS[0] <= report.version <= spacy_treecrf.__version__ == SAME_MODELS[-1]
    assert not any(report.quick for report in reports.values())
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page == document(reports, "results")
    for report in reports.values():
        for picture in report.pictures:
            assert (ROOT / "docs" / "results" / picture.file).exists()
