"""scripts.golden: it tells whether predictions have changed."""

from __future__ import annotations

from pathlib import Path

import pytest
import srsly
import typer

from scripts import golden
from spacy_treecrf import BoostedCRF

X = [[{"word": "Ada"}, {"word": "ran"}], [{"word": "Bob"}, {"word": "ran"}]] * 5
Y = [["NAME", "O"]] * 10


def test_the_same_model_has_the_same_digest_and_another_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "before.json"
    monkeypatch.setattr(golden, "cases", lambda: [("crf", BoostedCRF(rounds=3), X, Y)])
    golden.golden("record", path)
    golden.golden("compare", path)
    assert "changed: nothing" in capsys.readouterr().err
    monkeypatch.setattr(golden, "cases", lambda: [("crf", BoostedCRF(rounds=4), X, Y)])
    with pytest.raises(typer.Exit):
        golden.golden("compare", path)
    assert "changed: crf" in capsys.readouterr().err
    assert list(srsly.read_json(path)) == ["crf"]


def test_an_unknown_mode_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        golden.golden("check", Path("before.json"))
    assert "use 'record' or 'compare'" in capsys.readouterr().err
