"""A real browser for the tests of the site, and a server on this machine."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Set by CI, where a missing browser is an error.
REQUIRED = "TREECRF_REQUIRE_BROWSER"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def lacking(what: str) -> None:
    if os.environ.get(REQUIRED):
        pytest.fail(f"{what}, and {REQUIRED} is set")
    pytest.skip(what)


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium; the test is skipped where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        lacking(f"no browser is installed; looked for {', '.join(PROGRAMS)}")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        lacking('playwright is not installed; pip install ".[ci]"')
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=program, headless=True, args=FLAGS)
        yield running
        running.close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address under which a folder is served on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
