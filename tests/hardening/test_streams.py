"""Closed and strange standard streams, and encodings that are none: a line, and no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.columnar.tiny_columns import tiny_file, trained

SECONDS = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    trained(tiny_file(folder, "train.conll")).save(folder / "model.treecrf")
    return folder


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of ours as a shell does."""
    return subprocess.run(
        ["sh", "-c", f"{sys.executable} -m spacy_treecrf {command}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("tag model.treecrf - <&-", "cannot read standard input: it is closed"),
        ("evaluate model.treecrf - <&-", "cannot read standard input: it is closed"),
        ("compare model.treecrf model.treecrf - <&-", "cannot read standard input"),
        ("train - -o new.treecrf <&-", "cannot read standard input: it is closed"),
        ("tag model.treecrf train.conll >&-", "the standard output is closed"),
        *(
            (f"{command} train.conll --encoding {name}", f"{name!r}")
            for command in ("tag model.treecrf", "evaluate model.treecrf", "train -o new.treecrf")
            for name in ("undefined", "rot13")
        ),
    ],
)
def test_streams_and_encodings_are_told_in_a_line(command: str, message: str, folder: Path) -> None:
    run = shell(command, folder)
    assert run.returncode == 1, run.stderr
    assert run.stderr.startswith("treecrf: ")
    assert message in run.stderr
    assert run.stderr.count("\n") == 1
    assert not (folder / "new.treecrf").exists()
