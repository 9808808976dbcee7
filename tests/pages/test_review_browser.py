"""The page of decisions in a browser: by keyboard and mouse, saved as a file, kept on a reload."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spacy_treecrf.audit.entries import Layer, Place, entry, read_decisions
from spacy_treecrf.audit.findings import Finding
from spacy_treecrf.pages.review_page import review_page
from tests.docs.browser import browser
from tests.pages.made_up import MARKUP
from tests.pages.test_browser import CONTRAST, LEGIBLE, WIDTHS, opened, write

pytestmark = pytest.mark.slow

SUGGESTED = ((2, 4, "LOC"),)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as running:
        yield running


def a_page(n: int = 3, *, label: str = "PER", word: str = "word") -> str:
    words = ["we", MARKUP, "New", "York", *[word] * 60]
    findings = [
        Finding(0, 2, 4, "missing", (), SUGGESTED, 0.01, 0.98, 8.5, (("LOC", 12),), True),
        Finding(1, 2, 4, "type", ((2, 4, label),), SUGGESTED, 0.02, 0.9, 6.0),
        Finding(2, 2, 3, "spurious", ((2, 3, MARKUP),), (), 0.02, 0.9, 5.0),
    ]
    entries = [
        entry(i + 1, one, Place(one.sequence, 10_000, f"doc {i} {MARKUP}"), words, Layer("ents"))
        for i, one in enumerate(findings[:n])
    ]
    return review_page(entries, title="Audit of a corpus", about="some findings")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("review")
    write(folder, "review", a_page())
    write(folder, "empty", a_page(0))
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_the_screen_and_is_legible(
    chromium: Any, folder: Path, scheme: str, width: int
) -> None:
    with opened(chromium, folder, "review", scheme=scheme, width=width) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.locator(".finding").count() == 3
        shown = "h1, h2, .lead, .reviewed, .side, .entity, .type, button, #progress"
        assert tab.evaluate(CONTRAST, shown) >= LEGIBLE


def test_decisions_by_keyboard_are_counted_saved_and_can_be_applied(
    chromium: Any, folder: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    tab = chromium.new_page()
    tab.on("console", lambda message: said.append(message.text))
    tab.goto((folder / "review.html").as_uri())
    tab.keyboard.press("a")  # each decision goes on to the next finding
    tab.keyboard.press("r")
    tab.keyboard.press("a")
    assert tab.inner_text("#progress") == "2 accepted, 1 rejected, 0 to decide"
    tab.keyboard.press("k")
    tab.keyboard.press("u")
    assert tab.inner_text("#progress") == "2 accepted, 0 rejected, 1 to decide"
    assert tab.locator(".finding").nth(0).get_attribute("data-decision") == "accept"
    with tab.expect_download() as download:
        tab.keyboard.press("s")
    target = tmp_path / download.value.suggested_filename
    assert target.name == "decisions.jsonl"
    download.value.save_as(target)
    tab.close()
    assert not said
    accepted, others = read_decisions(target)
    assert others == 0
    assert [(one.unit, one.start, one.end) for one in accepted] == [
        (0, 10_002, 10_004),
        (2, 10_002, 10_003),
    ]
    assert accepted[0].suggested == ((10_002, 10_004, "LOC"),)
    assert accepted[1].annotated == ((10_002, 10_003, MARKUP),)
    lines = [json.loads(line) for line in target.read_text(encoding="utf8").splitlines()]
    assert all(line["words"][1] == MARKUP for line in lines)


def test_decisions_by_mouse_outlive_a_reload(chromium: Any, folder: Path) -> None:
    with opened(chromium, folder, "review") as tab:
        tab.locator(".finding").nth(1).get_by_text("Reject").click()
        assert tab.inner_text("#progress") == "0 accepted, 1 rejected, 2 to decide"
        tab.reload()
        assert tab.inner_text("#progress") == "0 accepted, 1 rejected, 2 to decide"
        assert tab.locator(".verdict").nth(1).inner_text() == "rejected"


@pytest.mark.parametrize("change", [{"label": "ORG"}, {"word": "other"}])
def test_decisions_do_not_stick_to_another_page_about_the_same_places(
    chromium: Any, tmp_path: Path, change: dict[str, str]
) -> None:
    write(tmp_path, "changing", a_page())
    with opened(chromium, tmp_path, "changing") as tab:
        tab.keyboard.press("a")
        assert tab.inner_text("#progress") == "1 accepted, 0 rejected, 2 to decide"
        write(tmp_path, "changing", a_page(**change))
        tab.reload()
        assert tab.inner_text("#progress") == "0 accepted, 0 rejected, 3 to decide"
        write(tmp_path, "changing", a_page())
        tab.reload()
        assert tab.inner_text("#progress") == "1 accepted, 0 rejected, 2 to decide"


def test_a_page_without_findings_says_so(chromium: Any, folder: Path) -> None:
    with opened(chromium, folder, "empty") as tab:
        tab.keyboard.press("a")
        assert tab.inner_text("#progress") == "0 accepted, 0 rejected, 0 to decide"
