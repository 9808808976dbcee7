"""Models and pipelines that earlier versions saved load and predict what they did then.

Each version has a folder, which `make.py` has written and which never changes.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.predicting import predictions, save_again

HERE = Path(__file__).parent
TOLERANCE = 1e-5  # processors differ in rounding
VERSIONS = sorted(path.name for path in HERE.iterdir() if re.fullmatch(r"\d+\.\d+\.\d+", path.name))


@cache
def expected_of(version: str) -> dict[str, dict[str, Any]]:
    """Each stored file or folder has a reader, an input, and what it says of that."""
    expected: dict[str, dict[str, Any]] = json.loads(
        (HERE / version / "expected.json").read_text(encoding="utf-8")
    )
    return expected


versions = pytest.mark.parametrize("version", VERSIONS)
stored = pytest.mark.parametrize(
    ("version", "name"), [(version, name) for version in VERSIONS for name in expected_of(version)]
)


def numbers_of(value: Any, place: str = "") -> dict[str, float | None]:
    """Numbers in nested lists and dicts get the names of their places."""
    if not isinstance(value, list | dict):
        return {place: value}
    numbered = value.items() if isinstance(value, dict) else enumerate(value)
    return {
        inner: number
        for key, item in numbered
        for inner, number in numbers_of(item, f"{place}[{key!r}]").items()
    }


def assert_same_predictions(path: Path, expected: dict[str, Any]) -> None:
    found = predictions(path, expected["reader"], expected["input"])
    assert found["labels"] == expected["labels"]
    assert numbers_of(found["probabilities"]) == pytest.approx(
        numbers_of(expected["probabilities"]), abs=TOLERANCE
    )


def test_there_are_versions() -> None:
    assert "0.1.0" in VERSIONS


@versions
def test_every_file_has_expectations(version: str) -> None:
    folder = HERE / version
    files = [*folder.glob("models/*"), *folder.glob("pipelines/*")]
    assert {path.relative_to(folder).as_posix() for path in files} == set(expected_of(version))
    assert {path.name for path in folder.iterdir()} == {"expected.json", "models", "pipelines"}


@stored
def test_it_predicts_what_it_did(version: str, name: str) -> None:
    assert_same_predictions(HERE / version / name, expected_of(version)[name])


@stored
def test_saved_again_it_predicts_the_same(version: str, name: str, tmp_path: Path) -> None:
    expected = expected_of(version)[name]
    copy = tmp_path / "copy.treecrf"
    save_again(HERE / version / name, expected["reader"], expected["input"], copy)
    assert_same_predictions(copy, expected)
