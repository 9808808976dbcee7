"""The built site in a browser: every page, link, anchor and picture, on a narrow screen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from tests.docs.browser import browser, lacking, served
from tests.fresh_environment import ROOT

pytestmark = pytest.mark.slow

WIDTH = 400  # pixels, of a telephone
LOOK = """() => ({
    links: [...document.querySelectorAll("a[href]")].map(a => a.href),
    ids: [...document.querySelectorAll("[id], a[name]")].map(e => e.id || e.name),
    broken: [...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src),
    width: document.documentElement.scrollWidth,
    headings: document.querySelectorAll("h1").length,
})"""
LOAD_IMAGES = """() => Promise.all([...document.images].map(image => {
    image.loading = "eager";
    return image.decode().catch(() => null);
}))"""


@dataclass
class Visited:
    """What the browser found on all pages, by address."""

    pages: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        import mkdocs  # noqa: F401
    except ImportError:
        lacking('mkdocs is not installed; pip install ".[docs]"')
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(site) as where:
        yield where


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def visited(site: Path, address: str, chromium: Any) -> Visited:
    found = Visited()
    page = chromium.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme="light")
    page.on("console", lambda m: found.errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: found.errors.append(str(error)))
    page.on("request", lambda request: found.requests.append(request.url))
    page.on("requestfailed", lambda request: _note_failure(request, found.failed))
    page.on("response", lambda r: found.failed.append(r.url) if r.status >= 400 else None)
    for path in sorted(site.rglob("index.html")):
        place = path.parent.relative_to(site).as_posix()
        url = f"{address}/" if place == "." else f"{address}/{place}/"
        page.goto(url, wait_until="networkidle")
        page.evaluate(LOAD_IMAGES)
        found.pages[url] = page.evaluate(LOOK)
    page.close()
    return found


def _note_failure(request: Any, failed: list[str]) -> None:
    """Keep the address of a failed request, unless the visit of the next page cut it off."""
    if request.failure != "net::ERR_ABORTED":
        failed.append(request.url)


def test_all_pages_are_there(site: Path, visited: Visited) -> None:
    sources = [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    assert len(visited.pages) == len(sources)
    assert all(page["headings"] == 1 for page in visited.pages.values())


def test_nothing_is_asked_of_another_host(visited: Visited, address: str) -> None:
    asked = [url for url in visited.requests if not url.startswith((address, "data:", "blob:"))]
    assert not asked


def test_no_page_reports_an_error(visited: Visited) -> None:
    assert not visited.errors
    assert not visited.failed


def test_links_lead_somewhere(visited: Visited, site: Path, address: str) -> None:
    for url, page in visited.pages.items():
        for link in page["links"]:
            target, anchor = urldefrag(link)
            if not target.startswith(address):
                assert urlsplit(target).scheme == "https", f"{url} has {link}"
            elif target in visited.pages:
                ids = visited.pages[target]["ids"]
                assert not anchor or unquote(anchor) in ids, f"{url} has {link}"
            else:
                file = site / unquote(urlsplit(target).path).lstrip("/")
                assert file.is_file(), f"{url} has {link}"


def test_pictures_are_shown(visited: Visited) -> None:
    assert not [(url, page["broken"]) for url, page in visited.pages.items() if page["broken"]]


def test_no_page_is_wider_than_a_telephone(visited: Visited) -> None:
    assert not {url: p["width"] for url, p in visited.pages.items() if p["width"] > WIDTH}


def test_search_finds_a_page(chromium: Any, address: str) -> None:
    page = chromium.new_page(viewport={"width": 1200, "height": 800})
    page.goto(address, wait_until="networkidle")
    page.click("input.md-search__input")
    page.keyboard.type("posting list")
    page.wait_for_selector(".md-search-result__item a[href*='glossary']", timeout=20_000)
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_is_readable_in_either_theme(chromium: Any, address: str, scheme: str) -> None:
    page = chromium.new_page(viewport={"width": 1200, "height": 800}, color_scheme=scheme)
    page.goto(f"{address}/architecture/", wait_until="networkidle")
    brightness = """selector => {
        const style = getComputedStyle(document.querySelector(selector));
        const context = document.createElement("canvas").getContext("2d");
        context.fillStyle = style.fill;
        context.fillRect(0, 0, 1, 1);
        const [r, g, b] = context.getImageData(0, 0, 1, 1).data;
        return (r + g + b) / 3;
    }"""
    paper = page.evaluate(brightness, ".tc-paper")
    ink = page.evaluate(brightness, ".tc text")
    page.close()
    assert (paper > ink + 100) if scheme == "light" else (ink > paper + 100)
