"""SIGTERM while something trains: the process ends by it, at once, and leaves no half a file."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest
from spacy.tokens import DocBin

from tests.hardening.children import Child
from tests.hardening.test_signals import (
    COMMAND_LINE,
    ESTIMATORS,
    MOMENTS,
    SPACY,
    TRAINING,
    column_file,
)
from tests.pipeline.test_commands import CONFIGS, options, word_docs

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="needs signals"), pytest.mark.slow]
PER_ESTIMATOR = 2  # with each number of threads: 60 moments in all


@pytest.mark.parametrize("threads", [1, 2, 0])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_training_of_every_estimator_ends_by_sigterm(name: str, threads: int) -> None:
    kind, parameters = ESTIMATORS[name]
    settings, draw = json.dumps({**parameters, "threads": threads}), random.Random(name)
    for _ in range(PER_ESTIMATOR):
        with Child.script(TRAINING, kind, settings, "1") as child:
            child.wait_until_ready()
            child.send(signal.SIGTERM, after=draw.uniform(0, 0.3))
            _, err = child.end()
            assert child.code == -signal.SIGTERM, err


@pytest.mark.parametrize("threads", ["1", "2", "0"])
def test_the_command_line_ends_by_sigterm_and_keeps_the_older_model(
    tmp_path: Path, threads: str
) -> None:
    data, model, draw = column_file(tmp_path), tmp_path / "old.treecrf", random.Random(threads)
    model.write_bytes(b"an older model")
    before = sorted(os.listdir(tmp_path))
    command = [sys.executable, "-c", COMMAND_LINE, "train", data, "-o", model, "--force"]
    for _ in range(MOMENTS // 3):
        with Child([*command, "--rounds", "1000000", "--threads", threads]) as child:
            child.wait_until_ready()
            child.send(signal.SIGTERM, after=draw.uniform(0, 1.0))
            _, err = child.end()
            assert child.code == -signal.SIGTERM, err
        assert model.read_bytes() == b"an older model"
        assert sorted(os.listdir(tmp_path)) == before


def test_spacy_train_ends_by_sigterm(tmp_path: Path) -> None:
    for part, size, seed in [("train", 60, 0), ("dev", 10, 1)]:
        DocBin(docs=word_docs(size, seed)).to_disk(tmp_path / f"words.{part}.spacy")
    endless = {"training.max_steps": "100000", "training.patience": "0"}
    draw = random.Random(6)
    for _ in range(MOMENTS // 4):
        command = [sys.executable, "-c", SPACY, "train", CONFIGS / "ner.cfg", "--output", "model"]
        with Child([*command, *options("ner", **endless)], folder=tmp_path) as child:
            child.wait_until_ready()
            child.send(signal.SIGTERM, after=draw.uniform(0, 1.0))
            out, err = child.end()
            assert child.code == -signal.SIGTERM, out + err
