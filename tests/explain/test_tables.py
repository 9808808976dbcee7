"""Explanations in a terminal."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from spacy_treecrf.explain.explanation import Interaction
from tests.explain.kinds import ALL, X, fitted
from tests.explain.test_explanation import example

LONG = max(X, key=len)


def shown(thing: object) -> str:
    console = Console(file=StringIO(), width=120)
    console.print(thing)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_table_names_all_parts_of_a_score():
    lines = shown(example()).splitlines()
    assert lines[0] == "Position 1 'Rome': why 10?"
    assert any(line.startswith("word=Rome ") and "+1.500" in line for line in lines)
    assert any("before 2 (forbidden)" in line and "+0.250" in line for line in lines)
    assert any(line.startswith("base") and "+0.500" in line for line in lines)
    assert any("0.7500" in line and "0.5000" in line for line in lines)


def test_texts_of_users_are_no_markup():
    one = replace(example(), text="[red]x[/red]", missing=("[b]sorry[/b]",))
    part = replace(one.contributions[0], feature="word=[bold]")
    pair = Interaction(("word=[bold]", "a"), ("word", "b"), -1.0)
    text = shown(replace(one, contributions=(part,), interactions=(pair,)))
    for expected in ("[red]x[/red]", "[b]sorry[/b]", "word=[bold]"):
        assert expected in text


@pytest.mark.parametrize("kind", ALL)
def test_explanations_of_all_kinds_can_be_shown(kind):
    explained = fitted(kind).explain_sequence(LONG, texts=[item["word"] for item in LONG])
    text = shown(explained)
    assert text.count("why ") == len(LONG)
    assert f"Position 1 {LONG[1]['word']!r}" in text
