"""Renew the terminal output that README.md shows: each block is what the command above it prints.

Run it where `spacy project run all` has run, as the commands read what that made.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

from spacy_treecrf.cli.shared.common import reports_errors, say

# A comment that readers do not see, then the block that they do.
SHOWN = re.compile(r"(?<=^<!-- printed by: )(.+)( -->\n```text\n)(.*?)(?=^```$)", re.M | re.S)


@reports_errors
def readme(
    path: Annotated[Path, typer.Argument(help="Text with such output.")] = Path("README.md"),
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail if all but numbers differs.")
    ] = False,
) -> None:
    """Replace terminal output in README.md by what its commands print now."""
    text = path.read_text(encoding="utf8")
    renewed = SHOWN.sub(lambda shown: f"{shown[1]}{shown[2]}{printed_by(shown[1])}", text)
    if not check:
        path.write_text(renewed, encoding="utf8")
        return
    old, new = without_numbers(text), without_numbers(renewed)
    if old != new:
        say("\n".join(unified_diff(old, new, str(path), "printed now", n=1, lineterm="")))
        raise ValueError(f"treecrf: {path} shows what is not printed; run python -m scripts.readme")


def printed_by(command: str) -> str:
    program, *arguments = shlex.split(command)
    program = sys.executable if program == "python" else program
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise ValueError(f"treecrf: {command} failed; run `spacy project run all` first")
    return done.stdout.strip("\n") + "\n"


def without_numbers(text: str) -> list[str]:
    """The lines without figures, which change with the machine, and widths with them."""
    return re.sub(r"[ \d.]+", " ", text).splitlines()


if __name__ == "__main__":
    typer.run(readme)
