"""The pictures of pages on the site: python -m scripts.site.screenshots REPORT EXPLANATION.

REPORT is a page of `spacy-treecrf report`, EXPLANATION one of `spacy-treecrf explain`. Needs
Chromium and playwright (`pip install ".[ci]"`).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from spacy_treecrf.cli.shared.common import reports_errors

ASSETS = Path(__file__).parents[2] / "docs" / "assets"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MOST_BYTES = 200_000


@reports_errors
def screenshots(
    report: Annotated[Path, typer.Argument(help="Page of `spacy-treecrf report`.")],
    explanation: Annotated[Path, typer.Argument(help="Page of `spacy-treecrf explain`.")],
) -> None:
    """Write docs/assets/report.png and docs/assets/explain.png."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = _opened(browser, report)
        tab.locator("#probabilities").scroll_into_view_if_needed()
        _write(tab.locator("#probabilities").screenshot(), "report.png")
        tab = _opened(browser, explanation)
        tab.locator(".type").last.click()
        tab.mouse.move(0, 0)  # no token is under it
        _write(tab.screenshot(), "explain.png")
        browser.close()


def _opened(browser: Any, page: Path) -> Any:
    size = {"width": 1100, "height": 760}
    tab = browser.new_page(viewport=size, color_scheme="light")
    tab.goto(page.resolve().as_uri())
    return tab


def _write(picture: bytes, name: str) -> None:
    if len(picture) > MOST_BYTES:
        raise ValueError(f"treecrf: {name} has {len(picture):,} bytes; make its page smaller")
    (ASSETS / name).write_bytes(picture)
    typer.echo(f"{name}: {len(picture):,} bytes")


if __name__ == "__main__":
    typer.run(screenshots)
