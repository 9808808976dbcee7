"""docs/future_features.md: its example prints what it says, and its names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from spacy.util import registry

import spacy_treecrf

DOCS = Path(__file__).resolve().parents[1] / "docs" / "future_features.md"
TEXT = DOCS.read_text(encoding="utf8")


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)
    return str(found)


def test_the_example_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block("python"), str(DOCS), "exec"), {})
    assert capsys.readouterr().out == block("text")


def test_estimators_and_architectures_exist() -> None:
    for name in set(re.findall(r"`((?:Boosted|Future)\w+)\(", TEXT)):
        assert hasattr(spacy_treecrf, name)
    for name in set(re.findall(r"spacy_treecrf\.\w+MEMM\.v1", TEXT)):
        assert registry.architectures.get(name)


def test_nothing_is_left_to_fill_in() -> None:
    assert not re.search(r"^[A-Z_]{6,}$", TEXT, flags=re.MULTILINE)
