"""`vectors`: a folder whose vectors a training takes."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import spacy

from spacy_treecrf.taggers.loading import load_model
from tests.cli.calls import QUICK, good, process, refused
from tests.pipeline.tiny_pipes import corpus, pipe_of, tiny_config, train

TEXT = "Ada met Bob in Rome .\nBob saw Ada in Bonn .\n"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT * 20, encoding="utf-8")
    return path


def test_the_folder_serves_the_pipe_and_column_files(
    text: Path, shared: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    done = process(["vectors", text, "-o", folder, "--dimensions", "8", "--rows", "64"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "vectors of 8 dimensions from 240 words, 8 of them different, 8 learned" in done.stderr
    nlp = spacy.load(folder)
    assert nlp.vocab.vectors.shape == (64, 8)
    nlp.add_pipe("treecrf", config=tiny_config(features={"vectors": 16}))
    pipe_of(nlp).initialize(lambda: corpus(nlp, "ents"), nlp=nlp)
    train(nlp, corpus(nlp, "ents"), 1)
    assert "vector7[0]" in pipe_of(nlp).shim.trained.columns.numeric_names
    model = tmp_path / "m.treecrf"
    good("train", shared / "train.conll", "-o", model, *QUICK, "--features", f"vectors={folder}")
    assert load_model(str(model))[1] is not None


def test_what_is_there_is_replaced_only_by_force(text: Path, tmp_path: Path) -> None:
    call = ["vectors", text, "-o", tmp_path / "own", "--dimensions", "4", "--rows", "16"]
    good(*call)
    assert "exists; name another folder" in refused(*call)
    good(*call, "--force")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own", "text.txt"]


def test_the_line_of_a_byte_without_meaning_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    for before in (2, 200_000):
        path.write_bytes(b"Ada met Bob\n" * before + "Köln\n".encode("latin-1") + b"Bob\n" * 9)
        said = refused("vectors", path, "-o", tmp_path / "own")
        assert f"text.txt:{before + 1}: this is no text in utf-8" in said
    path.write_bytes(b"Ada\nBob " + "ö".encode()[:1])
    assert "text.txt:2: " in refused("vectors", path, "-o", tmp_path / "own")


@pytest.mark.skipif(importlib.util.find_spec("sudachipy") is not None, reason="SudachiPy is there")
def test_a_language_whose_tokenizer_lacks_a_package_is_told_from_unknown_ones(
    text: Path, tmp_path: Path
) -> None:
    said = refused("vectors", text, "-o", tmp_path / "own", "--lang", "ja")
    assert "pip install" in said
    assert "no language" not in said


def test_wrong_calls_leave_nothing(text: Path, tmp_path: Path) -> None:
    out = ["-o", tmp_path / "own"]
    assert "no language 'qq'" in refused("vectors", text, *out, "--lang", "qq")
    assert "cannot read" in refused("vectors", tmp_path / "absent", *out)
    assert "--dimensions" in refused("vectors", text, *out, "--dimensions", "0", code=2)
    assert not (tmp_path / "own").exists()


def test_without_floret_it_says_what_to_install(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "floret", None)
    assert 'pip install "spacy-treecrf[vectors]"' in refused("vectors", text, "-o", tmp_path / "v")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of a group of processes")
def test_ctrl_c_ends_the_learning_at_once(text: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spacy_treecrf", "vectors", text, "-o", tmp_path / "own"]
    running = subprocess.Popen(
        [*command, "--epochs", "1000000"], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while b"floret_process" not in children(running.pid):
        assert running.poll() is None
        time.sleep(0.05)
    time.sleep(1.0)  # until floret is learning
    os.killpg(running.pid, signal.SIGINT)
    said = running.communicate(timeout=60)[1]
    assert running.returncode == 130
    assert "interrupted" in said
    assert b"floret_process" not in children(running.pid)
    assert not (tmp_path / "own").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_ctrl_c_that_only_floret_hears_is_an_interrupt(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = subprocess.CompletedProcess([], -signal.SIGINT)
    monkeypatch.setattr(subprocess, "run", lambda command: interrupted)
    refused("vectors", text, "-o", tmp_path / "own", code=130)
    assert not (tmp_path / "own").exists()


def children(group: int) -> bytes:
    """The commands of the processes of a group."""
    done = subprocess.run(["ps", "-o", "args=", "-g", str(group)], capture_output=True)
    return done.stdout
