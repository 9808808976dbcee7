"""The Python shown in the README runs and gives what its comments say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"


def test_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```$", README.read_text(encoding="utf8"), flags=re.DOTALL | re.MULTILINE
    )
    assert len(blocks) == 1
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(blocks[0], str(README), "exec"), names)
    model = names["model"]
    assert model.predict(names["X"][:1]) == [["NAME", "O"]]  # type: ignore[attr-defined,index]
    assert (tmp_path / "names.treecrf").exists()


def test_nothing_in_the_readme_is_left_to_fill_in() -> None:
    assert not re.search(r"^[A-Z_]{6,}$", README.read_text(encoding="utf8"), flags=re.MULTILINE)
