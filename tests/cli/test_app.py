"""The command line as a whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import spacy_treecrf
from tests.cli.calls import good, process, refused
from tests.test_package import loaded_after

COMMANDS = [
    "train",
    "tag",
    "evaluate",
    "compare",
    "inspect",
    "explain",
    "report",
    "plot",
    "average",
    "calibrate",
    "cross-calibrate",
    "distill",
    "prune",
    "serve",
    "settings",
]
COMMANDS += ["tune"]


def test_help_shows_all_commands_and_how_to_start() -> None:
    shown = good("--help")
    for command in [*COMMANDS, "corpus"]:
        assert f"\n  {command} " in shown
    assert "spacy-treecrf train train.conll --dev dev.conll -o model.treecrf\n" in shown
    assert "Exit codes:" in shown


@pytest.mark.parametrize(
    "command", [*([name] for name in COMMANDS), ["corpus", "list"], ["corpus", "prepare"]]
)
def test_every_command_has_help_with_examples(command: list[str]) -> None:
    shown = good(*command, "--help")
    assert "Examples:\n" in shown
    assert f"\n    spacy-treecrf {' '.join(command)} " in shown


def test_help_loads_nothing_heavy() -> None:
    loaded = loaded_after("import spacy_treecrf.cli.app")
    assert not loaded & {"spacy", "numba", "numpy", "matplotlib", "tqdm", "starlette", "uvicorn"}


def test_version_is_that_of_the_package(tmp_path: Path) -> None:
    assert good("--version").strip() == spacy_treecrf.__version__
    run = process(["--version"], tmp_path)
    assert run.stdout.strip() == spacy_treecrf.__version__


def test_unknown_commands_are_wrong_usage() -> None:
    refused("trane", code=2)


def test_a_reader_that_stops_early_is_no_error(shared: Path) -> None:
    """The reader of a pipe goes away, as in `spacy-treecrf tag ... | head -1`."""
    with subprocess.Popen(
        [sys.executable, "-m", "spacy_treecrf", "tag", "good.treecrf", "train.conll"],
        cwd=shared,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert b"Traceback" not in run.stderr.read()
