"""Pages of the documentation: all that is registered is there, and nothing is left to fill in."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.fresh_environment import ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))


def test_all_registered_names_have_a_heading() -> None:
    text = (ROOT / "docs" / "api" / "pipe.md").read_text(encoding="utf8")
    headings = re.findall(r"^### `(.+)`$", text, flags=re.M)
    points = distribution("spacy-treecrf").entry_points
    registered = {point.name for point in points if point.group.startswith("spacy_")}
    assert set(headings) == registered
    assert len(headings) == len(registered)


def test_all_estimators_are_on_their_page() -> None:
    import spacy_treecrf
    from spacy_treecrf import dask

    text = (ROOT / "docs" / "api" / "estimators.md").read_text(encoding="utf8")
    shown = set(re.findall(r"^::: spacy_treecrf\.\S+\.(\w+)$", text, flags=re.M))
    on_clusters = set(dask.__all__) - {"independent_calls"}  # which the command line needs
    estimators = set(spacy_treecrf.__all__) - {"__version__"} | {"SequenceEstimator"}
    assert shown == estimators | on_clusters


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_work_where_the_source_is_read(page: Path) -> None:
    """As on a page that shows the repository: relative, to a file that is there."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not link.startswith(("https://", "#")):
            assert (page.parent / link.partition("#")[0]).exists(), f"{page} has {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_nothing_is_left_to_fill_in(page: Path) -> None:
    assert not re.search(r"^[A-Z_]{6,}$|TODO|FIXME", page.read_text(encoding="utf8"), flags=re.M)
