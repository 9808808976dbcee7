"""The Python that pages show, run as a reader would run it.

Blocks marked `python` are run, one after the other in one namespace for a page; those marked `py`
are only shown. What a block prints stands in the comment lines right behind its calls of print, or
in a block of text behind it.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from tests.fresh_environment import ROOT

# A block of Python, and the block of text right behind it, if there is one.
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"\d+\.\d+")
TOLERANCE = 0.05


def blocks(page: Path) -> list[tuple[str, list[str]]]:
    """The blocks of Python, and the lines that each of them says it prints."""
    text = page.read_text(encoding="utf8")
    found = BLOCK.findall(text)
    return [(code, output.splitlines() if output else promised(code)) for code, output in found]


def pages_with_python() -> list[Path]:
    return [page for page in sorted((ROOT / "docs").rglob("*.md")) if blocks(page)]


def promised(block: str) -> list[str]:
    """The comment lines behind code that prints."""
    lines: list[str] = []
    prints = False
    for line in block.splitlines():
        if line.startswith("# ") and prints:
            lines.append(line[2:])
        else:
            prints = "print(" in line or (prints and line.startswith((" ", ")")))
    return lines


def run(block: str, page: Path, names: dict[str, Any]) -> list[str]:
    """The lines that a block prints; names: of the page, and what the block adds to them."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, str(page), "exec"), names)
    return printed.getvalue().splitlines()


def alike(one: str, other: str) -> bool:
    """The same but for decimals, which may differ a little from machine to machine."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(abs(float(a) - float(b)) <= TOLERANCE for a, b in pairs)
