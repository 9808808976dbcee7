"""The command `serve`: what it refuses before it serves. tests/serve asks running servers."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calls import good, process, refused

WITHOUT = """
import sys
sys.modules[{missing!r}] = None
from spacy_treecrf.cli.app import main
sys.argv = ["spacy-treecrf", "serve", "anything"]
main()
"""


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_it_says_what_to_install(missing: str) -> None:
    code = WITHOUT.format(missing=missing)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.startswith("treecrf: `serve` needs starlette and uvicorn")
    assert 'pip install "spacy-treecrf[serve]"' in run.stderr


def told_by_process(*arguments: str | Path) -> str:
    """What a call says that must fail: the process that annotates says it."""
    run = process(arguments, Path.cwd())
    assert run.returncode == 1
    (line,) = run.stderr.splitlines()
    assert line.startswith("treecrf: ")
    return line


def test_models_for_column_files_are_refused_with_what_serves_them(shared: Path) -> None:
    said = told_by_process("serve", shared / "good.treecrf", "--port", "0")
    assert "no spaCy pipeline" in said
    assert "spacy-treecrf tag" in said


def test_pipelines_that_are_not_there_or_have_no_treecrf_are_refused(tmp_path: Path) -> None:
    import spacy

    assert "there is no model" in told_by_process("serve", tmp_path / "none", "--port", "0")
    spacy.blank("xx").to_disk(tmp_path / "blank")
    assert "treecrf pipes: none" in told_by_process("serve", tmp_path / "blank", "--port", "0")


def test_a_port_that_is_taken_is_told(shared: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refused("serve", shared / "pipeline", "--port", str(port))
    assert f"cannot listen on 127.0.0.1 port {port}" in said


def test_an_empty_host_is_refused(shared: Path) -> None:
    assert "--host is empty" in refused("serve", shared / "pipeline", "--host", "")


@pytest.mark.parametrize("option", [("--port", "70000"), ("--queue", "0"), ("--timeout", "0")])
def test_values_out_of_range_are_wrong_usage(shared: Path, option: tuple[str, str]) -> None:
    refused("serve", shared / "pipeline", *option, code=2)


def test_help_says_what_it_needs() -> None:
    shown = good("serve", "--help")
    assert 'extra "serve"' in shown
    assert "127.0.0.1" in shown
