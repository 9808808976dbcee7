"""What a newcomer has: a shell without environment, our wheel, a new virtual environment."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(command: list[str | Path], cwd: Path) -> str:
    """Standard output of a command, run as in a shell that has no environment activated."""
    inherited = {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"}
    environment = {name: value for name, value in os.environ.items() if name not in inherited}
    environment["PYTHONUNBUFFERED"] = "1"  # what it and its own commands print stays in order
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def build_wheel(source: Path, folder: Path) -> Path:
    """The wheel of the project in `source`, put into `folder`."""
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, "."], source)
    (wheel,) = folder.glob("spacy_treecrf-*.whl")
    return wheel


def new_environment(folder: Path, *packages: str | Path) -> Path:
    """The Python of a new environment with these packages and what they require."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run([python, "-m", "pip", "install", "--quiet", *packages], folder)
    return python
