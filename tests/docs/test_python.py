"""The Python of the documentation runs, and prints what the pages say."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import alike, blocks, pages_with_python, run
from tests.fresh_environment import ROOT


def name_of(page: Path) -> str:
    return page.relative_to(ROOT / "docs").as_posix()


@pytest.mark.parametrize("page", pages_with_python(), ids=name_of)
def test_a_page_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block, shown in blocks(page):
        printed = run(block, page, names)
        assert all(alike(p, s) for p, s in zip_longest(printed, shown, fillvalue="")), (
            f"printed {printed}, shown {shown}"
        )


def test_the_tutorials_are_among_them() -> None:
    tutorials = {name_of(page) for page in pages_with_python() if page.parent.name == "tutorials"}
    assert tutorials == {f"tutorials/{n}.md" for n in ("entities", "addresses", "letters")}
