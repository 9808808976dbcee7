"""Calling the command line, in this process and in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from typer.testing import CliRunner, Result

from spacy_treecrf.cli.app import app

QUICK = ["--rounds", "4", "--linear-rounds", "2", "--leaves", "8", "--min-rows", "1"]
QUICK += ["--min-count", "1", "--threads", "1"]


def call(*arguments: str | Path, input: str | None = None) -> Result:
    """Call a command in this process; a bug shows as an exception."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def good(*arguments: str | Path, input: str | None = None) -> str:
    """Standard output of a call that must work."""
    result = call(*arguments, input=input)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: str | Path, code: int = 1) -> str:
    """Call a command that must fail; returns what it says."""
    result = call(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    if code == 1:
        assert result.stderr.startswith("treecrf: ")
    return result.stderr


def process(
    arguments: Sequence[str | Path], cwd: Path, input: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, as users do."""
    return subprocess.run(
        [sys.executable, "-m", "spacy_treecrf", *map(str, arguments)],
        cwd=cwd,
        input=input,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
