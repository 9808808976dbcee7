"""`lists`: a folder of word lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from spacy_treecrf.lists import sources, writing
from tests.cli.calls import call, good, refused


def test_lists_that_no_package_has_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "SOURCES", {"wordfreq": sources.frequencies})
    assert "'rm' enough for frequency6, frequency5" in call("lists", "rm", "-o", tmp_path).stderr
    assert "enough" not in call("lists", "nb", "-o", tmp_path).stderr


def test_lists_are_written_and_not_replaced_by_accident(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "SOURCES", {"Babel": sources.countries})
    output = tmp_path / "lists"
    good("lists", "nl", "-o", output)
    assert "Nederland" in (output / "country.txt").read_text(encoding="utf8").splitlines()
    assert "use --force" in refused("lists", "es", "-o", output)
    good("lists", "es", "-o", output, "--force")
    assert "Alemania" in (output / "country.txt").read_text(encoding="utf8").splitlines()
    assert "is a file" in refused("lists", "es", "-o", output / "country.txt")
    good("lists", "ES", "-o", output, "--force")
    assert "Alemania" in (output / "country.txt").read_text(encoding="utf8").splitlines()
    assert "no language 'qq'" in refused("lists", "qq", "-o", tmp_path / "other")
