"""The README is short, its Python runs and prints what it shows, and its links lead somewhere."""

from __future__ import annotations

import re
from typing import Any

from tests.docs.blocks import alike, blocks, run
from tests.fresh_environment import ROOT

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf8")


def test_it_is_short_and_says_first_what_it_is() -> None:
    lines = TEXT.splitlines()
    assert len(lines) <= 120
    assert "gradient-tree-boosted" in lines[0]


def test_python_prints_what_the_readme_says() -> None:
    found = blocks(README)
    assert len(found) == 2
    names: dict[str, Any] = {}
    for block, shown in found:
        (printed,) = run(block, README, names)
        assert alike(printed, *shown)
    assert names["doc"].ents[0]._.treecrf_prob > 0.9


def test_its_figures_are_those_of_the_performance_page() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf8")
    (table,) = re.findall(r"^\| measured.*?\n\n", TEXT, flags=re.M | re.S)
    figures = re.findall(r"\d[\d.,]*\d (?:s|%|words/s)|\d\d\.\d\d", table)
    assert len(figures) >= 8
    assert all(figure in page for figure in figures)


def test_commands_are_the_only_blocks_marked_sh() -> None:
    assert len(re.findall(r"^```sh$", TEXT, flags=re.M)) == 2


def test_links_lead_to_files() -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", TEXT):
        assert (ROOT / link).is_file(), link


def test_nothing_in_the_readme_is_left_to_fill_in() -> None:
    assert not re.search(r"^[A-Z_]{6,}$", TEXT, flags=re.MULTILINE)
