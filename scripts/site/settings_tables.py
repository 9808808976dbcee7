"""A hook of MkDocs: the tables of all settings, made from the settings themselves.

The page that wants them has a line with `MARKER`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MARKER = "<!-- settings tables -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    return markdown.replace(MARKER, settings_tables()) if MARKER in markdown else markdown


def settings_tables() -> str:
    """What the command line says of the settings, of the package in this folder."""
    command = [sys.executable, "-m", "spacy_treecrf", "settings", "--markdown"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
