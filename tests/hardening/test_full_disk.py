"""A disk that is full in the middle of a write: the old file stays, and the error names it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spacy_treecrf.cli.shared.common import output_text
from spacy_treecrf.corpora import LabelledSequence, prepare_corpus, write_conll, write_jsonl
from spacy_treecrf.storage import container
from tests.cli.calls import good, refused
from tests.columnar.tiny_columns import tiny_file
from tests.hardening.file_limits import largest_file

SEQUENCES = [LabelledSequence(["a", "b"], {"y": ["L", "M"]})]


def save(path: Path, n: int) -> None:
    container.save(path, {"values": np.arange(n)})


def write_text(path: Path, n: int) -> None:
    with output_text(path) as file:
        file.write("token\tlabel\n" * n)


def write_columns(path: Path, n: int) -> None:
    write_conll(path, SEQUENCES * n, "y")


def write_json(path: Path, n: int) -> None:
    write_jsonl(path, SEQUENCES * n)


Write = Callable[[Path, int], None]


@pytest.mark.parametrize("write", [save, write_text, write_columns, write_json])
@pytest.mark.parametrize("limit", [0, 1, 4096, 100_000])
@pytest.mark.parametrize("old", [False, True])
def test_a_write_that_fails_in_the_middle_changes_nothing(
    write: Write, limit: int, old: bool, tmp_path: Path
) -> None:
    path = tmp_path / "output"
    if old:
        write(path, 3)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    with (
        pytest.raises(ValueError, match=r"^treecrf: cannot .*output': File too large; check free"),
        largest_file(limit),
    ):
        write(path, 50_000)
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before
    write(path, 5)
    assert os.listdir(tmp_path) == ["output"]


def test_a_corpus_of_which_one_part_does_not_fit_is_not_written(tmp_path: Path) -> None:
    small, large = tiny_file(tmp_path, "small", n=3), tiny_file(tmp_path, "large", n=300)
    out = tmp_path / "out"
    prepare_corpus("conll", out, inputs=[small] * 3, format="conll")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert sorted(before) == ["dev.conll", "test.conll", "train.conll"]
    inputs = [tiny_file(tmp_path, "other", n=4, seed=1)] * 2 + [large]
    with (
        pytest.raises(ValueError, match=r"^treecrf: cannot write .*test\.conll': File too large"),
        largest_file(5_000),
    ):
        prepare_corpus("conll", out, inputs=inputs, format="conll", force=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_commands_name_the_file_in_one_line(shared: Path, tmp_path: Path) -> None:
    path = tmp_path / "tagged"
    path.write_text("old")
    call = ["tag", shared / "good.treecrf", shared / "test.conll", "-o", path, "--force"]
    with largest_file(100):
        message = refused(*call)
    assert message.strip().count("\n") == 0
    assert f"cannot write '{path}': File too large" in message
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["tagged"]
    good(*call)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [
        ["tag", "good.treecrf", "test.conll"],
        ["settings"],
        ["evaluate", "good.treecrf", "test.conll"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_standard_output_that_is_full_is_said_in_one_line(
    arguments: list[str], shared: Path
) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "spacy_treecrf", *arguments],
            cwd=shared,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
        )
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("treecrf: cannot write the output: ")
    assert "No space left" in done.stderr
    assert done.stderr.strip().count("\n") == 0
