"""`kill -9` while pipelines are written: what is left is read, or another one is named."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import spacy
from spacy.language import Language

from spacy_treecrf.taggers.loading import load_pipe
from tests.cli.calls import call, good, process, refused
from tests.pipeline.tiny_pipes import CORPUS, corpus, new_doc, pipe_of, tiny_config, trained_nlp

ROOT = Path(__file__).resolve().parents[2]
KILLS = 40
RUNS = 9
SECONDS = 120


@pytest.fixture(scope="module")
def nlp() -> Language:
    return trained_nlp(steps=1)


@pytest.fixture
def trained_folder(nlp: Language, tmp_path: Path) -> Path:
    """What `spacy train` leaves: two folders, and a text to tag."""
    for name in ("model-last", "model-best"):
        nlp.to_disk(tmp_path / name)
    (tmp_path / "text.txt").write_text("Ann saw Rome .\n")
    return tmp_path


def test_a_pipe_that_is_killed_while_it_is_written_stays_as_it_was_or_is_new(
    tmp_path: Path,
) -> None:
    """In a process of its own, whose children are killed as they write."""
    command = [sys.executable, "-m", "tests.hardening.test_half_written", str(tmp_path / "pipe")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    assert run.returncode == 0, run.stdout + run.stderr


def write_and_be_killed(folder: Path) -> None:
    pipes = [pipe_of(trained_nlp(steps=steps)) for steps in (1, 3)]
    pipes[0].to_disk(folder, exclude=["vocab"])
    known = [pipe.model.to_bytes() for pipe in pipes]
    moments = random.Random(0)
    for _ in range(KILLS):
        child = os.fork()
        if not child:
            while True:
                for pipe in pipes:
                    pipe.to_disk(folder, exclude=["vocab"])
        time.sleep(moments.uniform(0.002, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        read = pipes[0].from_disk(folder, exclude=["vocab"]).model.to_bytes()
        assert read in known
        pipes[0].model.from_bytes(known[0])


def cut(file: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        data = (folder / file).read_bytes()
        (folder / file).write_bytes(data[: len(data) // 2])

    return damage


def without(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


DAMAGES = {
    "nothing there": shutil.rmtree,
    "no pipe": without("treecrf"),
    "no model": without("treecrf/model"),
    "half a model": cut("treecrf/model"),
    "half a cfg": cut("treecrf/cfg"),
    "no config": without("config.cfg"),
    "half a config": cut("config.cfg"),
    "half a meta": cut("meta.json"),
    "half a tokenizer": cut("tokenizer"),
    "half a vocab": cut("vocab/strings.json"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_commands_use_the_last_model_where_the_best_is_half_written(
    damage: str, trained_folder: Path
) -> None:
    best, text = trained_folder / "model-best", trained_folder / "text.txt"
    expected = good("tag", best, text, "--text")
    DAMAGES[damage](best)
    result = call("tag", best, text, "--text")
    assert result.exit_code == 0, result.output
    assert result.stdout == expected
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("treecrf"))
    assert line.startswith(f"treecrf: used {trained_folder / 'model-last'} instead of {best}")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_pipeline_that_cannot_be_read_is_named_in_a_line(
    damage: str, trained_folder: Path
) -> None:
    """Also where both are damaged: the error is of the one that was asked for."""
    best, last = trained_folder / "model-best", trained_folder / "model-last"
    DAMAGES[damage](best)
    DAMAGES[damage](last)
    other = trained_folder / "other"
    if last.exists():
        shutil.copytree(last, other)
    for folder in (best, last, other):
        for command in (
            ["tag", folder, trained_folder / "text.txt", "--text"],
            ["compare", folder, folder, trained_folder / "text.txt"],
            ["inspect", folder],
        ):
            said = refused(*command)
            assert str(folder) in said
            assert said.count("\n") == 1


def test_a_good_model_is_used_without_a_word(trained_folder: Path) -> None:
    shutil.rmtree(trained_folder / "model-last")
    best, text = trained_folder / "model-best", trained_folder / "text.txt"
    assert call("tag", best, text, "--text").stderr == ""


def test_as_a_process_the_line_is_all_that_is_said(trained_folder: Path) -> None:
    cut("treecrf/model")(trained_folder / "model-best")
    run = process(["tag", "model-best", "text.txt", "--text"], trained_folder)
    assert run.returncode == 0, run.stderr
    assert run.stderr.startswith("treecrf: used model-last instead of model-best")
    assert run.stderr.count("\n") == 1


@pytest.mark.slow
def test_training_that_is_killed_leaves_a_model_that_commands_find(tmp_path: Path) -> None:
    """`spacy train`, killed as soon as `model-best` is written, and while it is."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("treecrf", config=tiny_config())
    docs = [example.reference for example in corpus(nlp)]
    spacy.tokens.DocBin(docs=docs).to_disk(tmp_path / "data.spacy")
    config = nlp.config
    config["paths"].update(dict.fromkeys(("train", "dev"), str(tmp_path / "data.spacy")))
    config["training"].update(eval_frequency=1, max_steps=1000)
    config.to_disk(tmp_path / "config.cfg")
    moments = random.Random(0)
    n_half = 0
    for i in range(RUNS):
        output = tmp_path / f"out{i}"
        command = [sys.executable, "-m", "spacy", "train", str(tmp_path / "config.cfg")]
        training = subprocess.Popen(
            [*command, "-o", str(output)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        best = output / "model-best"
        deadline = time.monotonic() + SECONDS
        while not best.exists() and training.poll() is None and time.monotonic() < deadline:
            time.sleep(0.0)
        assert training.poll() is None, "training ended by itself"
        time.sleep(moments.uniform(0.0, 0.001))
        training.kill()
        training.wait()
        assert best.exists()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found, _ = load_pipe(str(best), None)
        n_half += any(str(one.message).startswith("treecrf: used") for one in caught)
        found(new_doc(found, CORPUS[0]))
    print(f"{n_half} of {RUNS} left half a model-best")


if __name__ == "__main__":
    write_and_be_killed(Path(sys.argv[1]))
