"""`plot`: learning curve and calibration."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.calls import good, process, refused

PNG = b"\x89PNG\r\n\x1a\n"


def test_plot_draws_curve_and_calibration(shared: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    model, png, svg = shared / "good.treecrf", tmp_path / "a.png", tmp_path / "b.svg"
    good("plot", model, "-o", png)
    assert png.read_bytes().startswith(PNG)
    good("plot", model, "-o", svg, "--data", shared / "test.conll")
    assert "<svg" in svg.read_text(encoding="utf-8")
    assert "exists" in refused("plot", model, "-o", png)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.png", "b.svg"]


def test_plot_of_a_pipeline_takes_data_or_the_log_of_spacy(shared: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    output = tmp_path / "a.png"
    assert "pass --log" in refused("plot", shared / "pipeline", "-o", output)
    log = tmp_path / "log.jsonl"
    steps = [
        {"step": i, "losses": {"treecrf": 1 / (i + 1)}, "score": i / 10, "epoch": 0}
        for i in range(4)
    ]
    log.write_text("".join(json.dumps(step) + "\n" for step in steps))
    good("plot", shared / "pipeline", "-o", output, "--log", log)
    assert output.read_bytes().startswith(PNG)
    good("plot", shared / "pipeline", "-o", output, "--data", shared / "test.conll", "--force")
    log.write_text('{"step": 1}\n')
    said = refused("plot", shared / "pipeline", "-o", output, "--log", log, "--force")
    assert "log.jsonl:1: expected a step" in said


def test_plot_refuses_other_kinds_of_files(shared: Path, tmp_path: Path) -> None:
    said = refused("plot", shared / "good.treecrf", "-o", tmp_path / "a.txt")
    assert "must end in one of .png, .svg, .pdf" in said


def test_plot_without_matplotlib_says_how_to_get_it(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    said = refused("plot", shared / "good.treecrf", "-o", tmp_path / "a.png")
    assert 'pip install matplotlib, or pip install "spacy-treecrf[plot]"' in said
    assert not list(tmp_path.iterdir())


def test_plot_as_a_process(shared: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run = process(["plot", "good.treecrf", "-o", tmp_path / "a.png"], shared)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)
