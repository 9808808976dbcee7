"""scripts/secoc.py: what it measures becomes tables and pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
import srsly
import typer

from scripts import secoc
from scripts.secoc import Point, Task, by_length, draw, main, run_published, tables
from spacy_treecrf.corpora import Synthetic
from spacy_treecrf.corpora.items import labelled_items
from spacy_treecrf.evaluation.plots import require_matplotlib

POINTS = [
    Point("some data", "i-SECOC boosted", 8, 50.0, None, True),
    Point("some data", "i-SECOC boosted", 10, 60.0, 1.5, True),
    Point("some data", "joint training", 10, 70.25, 2.5, False),
    Point("some data", "boosted, exact", None, 71.0, 9.0, True),
    Point("other data", "boosted, exact", None, 41.0, 3.0, True),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "metrics").mkdir()
    return tmp_path


def test_tables_show_the_best_of_each_method_first() -> None:
    first, second = tables(POINTS)
    lines = [line.split() for line in first.splitlines()]
    assert lines[0][:2] == ["some", "data"]
    assert [line[-1] for line in lines[1:]] == ["paper", "ours", "paper"]
    assert lines[1][:3] == ["boosted,", "exact", "71.00"]
    assert "70.25" in lines[2]
    assert lines[3][-4:] == ["10", "60.00", "1.5", "paper"]
    assert "41.00" in second


def test_pictures_are_drawn_for_each_data_set(folder: Path) -> None:
    paths = list(draw(POINTS, require_matplotlib()))
    assert [path.name for path in paths] == ["secoc_some_data.png", "secoc_other_data.png"]
    assert all((folder / path).stat().st_size > 5000 for path in paths)


def test_accuracies_over_the_length_are_of_first_columns() -> None:
    records = Synthetic(n_labels=6, n_observations=6, k_o=2, p_o=0.9).sample(60)
    data = labelled_items(records, "tag", 1)
    task = Task("tiny", data, data, (4, 8), 3)
    points = list(run_published(task))
    assert len(points) == 2 * 5 * 2
    assert {point.bits for point in points} == {4, 8}
    assert all((point.cpu_seconds is None) == (point.bits == 4) for point in points)
    assert all(point.accuracy > 40 for point in points)
    model = secoc.SECOCCRF(bits=8, decoding="l1", base=secoc.BoostedCRF(rounds=3, order=0))
    model.fit(*data)
    lengths = dict(by_length(model, task))
    assert lengths[8] == pytest.approx(100 * model.score(*data))


def test_unknown_data_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        main(data="nothing")
    assert "treecrf: no data set starts with 'nothing'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_quick_run_writes_everything(folder: Path) -> None:
    main(quick=True, data="both")
    points = srsly.read_json(folder / "metrics" / "secoc.json")
    assert {point["published"] for point in points} == {True, False}
    text = (folder / "metrics" / "secoc.md").read_text()
    assert "joint training" in text
    assert (folder / "metrics" / "secoc_both_window_3.png").stat().st_size > 5000
