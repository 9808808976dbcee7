"""The Python shown in the README runs and gives what its comments say."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"


def python_blocks() -> list[str]:
    text = README.read_text(encoding="utf8")
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def run(block: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(block, str(README), "exec"), names)
    return names


def test_there_are_two_examples() -> None:
    assert len(python_blocks()) == 2


def test_the_pipe_prints_what_the_readme_says(capsys: pytest.CaptureFixture[str]) -> None:
    block = python_blocks()[0]
    names = run(block)
    printed = ast.literal_eval(capsys.readouterr().out)
    promised = ast.literal_eval(block.splitlines()[-1].removeprefix("# "))
    assert [entity[:2] for entity in printed] == [entity[:2] for entity in promised]
    assert all(
        p == pytest.approx(q, abs=0.02) for (*_, p), (*_, q) in zip(printed, promised, strict=True)
    )
    assert names["doc"].ents[0]._.treecrf_prob > 0.9


def test_the_estimator_does_what_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run(python_blocks()[1])
    assert names["model"].predict(names["X"][:1]) == [["NAME", "O"]]
    assert (tmp_path / "names.treecrf").exists()


def test_nothing_in_the_readme_is_left_to_fill_in() -> None:
    assert not re.search(r"^[A-Z_]{6,}$", README.read_text(encoding="utf8"), flags=re.MULTILINE)
