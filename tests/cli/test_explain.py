"""`explain`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from spacy.tokens import DocBin

from spacy_treecrf.pages.packing import unpacked
from tests.cli.calls import call, good, refused
from tests.pipeline.tiny_pipes import corpus, new_nlp


def data_of(page: Path) -> dict[str, Any]:
    text = page.read_text(encoding="utf8")
    (block,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text)
    found: dict[str, Any] = unpacked(json.loads(block))
    return found


def test_a_text_as_a_page(shared: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    said = good("explain", shared / "pipeline", "Ann saw New York .", "-o", page)
    assert said == f"saved to {page}\n"
    (sequence,) = data_of(page)["sequences"]
    assert sequence["texts"] == ["Ann", "saw", "New", "York", "."]
    assert [span["label"] for span in sequence["spans"]] == ["PERSON", "PLACE"]
    assert [token["position"] for token in sequence["tokens"]] == [0, 1, 2, 3, 4]
    assert all(token["contributions"] and token["effects"] for token in sequence["tokens"])


def test_a_text_in_the_terminal(shared: Path) -> None:
    shown = good("explain", shared / "pipeline", "Ann saw Rome")
    assert shown.startswith("Ann saw Rome\n")
    assert re.search(r"^PLACE Rome +2:3 +0\.\d+", shown, re.M)
    assert "Position 2 'Rome': why U-PLACE?" in shown
    assert re.search(r"^lower\[0\]=rome +(linear|trees) +\+\d", shown, re.M)


def test_texts_of_a_file_corpora_and_column_files(shared: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("Ann saw Rome\n\nBob left\n")
    docs = DocBin(docs=[example.reference for example in corpus(new_nlp("ents"))])
    docs.to_disk(tmp_path / "docs.spacy")
    for model, source, first, n in (
        ("pipeline", lines, ["Ann", "saw", "Rome"], 2),
        ("pipeline", tmp_path / "docs.spacy", ["Ann", "saw", "New", "York", "."], 6),
        ("good.treecrf", shared / "test.conll", None, 20),
    ):
        page = tmp_path / "page.html"
        good("explain", shared / model, source, "-o", page, "--force")
        found = data_of(page)["sequences"]
        assert len(found) == n
        assert first is None or found[0]["texts"] == first
        assert any(own["tokens"] for own in found)
        good("explain", shared / model, source, "-o", page, "--force", "--every-token")
        found = data_of(page)["sequences"]
        assert all(len(own["tokens"]) == len(own["texts"]) for own in found)


def test_a_limit_is_told(shared: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    arguments = ("explain", shared / "good.treecrf", shared / "test.conll", "-o", page)
    result = call(*arguments, "--limit", "3")
    assert "these are the first 3 sequences; --limit shows more" in result.output
    assert len(data_of(page)["sequences"]) == 3
    assert "first" not in call(*arguments, "--limit", "20", "--force").output


def test_refusals(shared: Path, tmp_path: Path) -> None:
    said = refused("explain", shared / "pipeline", "missing.spacy")
    assert "there is no file missing.spacy" in said
    said = refused("explain", shared / "good.treecrf", "Ann saw Rome")
    assert "cannot cut raw text into tokens" in said
    page = tmp_path / "page.html"
    page.write_text("mine")
    assert "use --force" in refused("explain", shared / "pipeline", "Ann", "-o", page)
    assert page.read_text() == "mine"


@pytest.mark.parametrize("text", ["24/7", "and/or", "/", "http://example.org/a"])
def test_a_slash_alone_makes_no_file_of_a_text(shared: Path, text: str) -> None:
    assert "why" in good("explain", shared / "pipeline", text)


def test_names_of_files_that_are_not_there_are_no_texts(shared: Path) -> None:
    for name in ("no/such.txt", "such.conll", "a/b.conllu", "such.jsonl"):
        assert f"there is no file {name}" in refused("explain", shared / "pipeline", name)


def test_arguments_that_are_no_utf_8_are_refused(shared: Path, tmp_path: Path) -> None:
    text = os.fsdecode(b"caf\xe9")
    page = tmp_path / "page.html"
    assert "the text holds a byte" in refused("explain", shared / "pipeline", text)
    assert "the text holds a byte" in refused("explain", shared / "pipeline", text, "-o", page)
    assert "the output holds" in refused("explain", shared / "pipeline", "Ann", "-o", text)
    assert "the model holds" in refused("explain", text, "Ann")
    assert not page.exists()
