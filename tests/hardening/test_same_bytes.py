"""Equal models have equal files, however and wherever they were trained."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import (
    SECOCCRF,
    BoostedCRF,
    BoostedMEMM,
    FutureFeatureMEMM,
    PerceptronTagger,
)
from spacy_treecrf.columnar.model import ColumnModel
from spacy_treecrf.estimators import SequenceEstimator
from spacy_treecrf.storage import container
from tests.cli.calls import QUICK, good
from tests.columnar.tiny_columns import tiny_file
from tests.pipeline.tiny_pipes import pipe_of, trained_nlp
from tests.tiny import tiny_data

TREES: dict[str, Any] = {"rounds": 4, "min_rows": 1, "min_count": 1}
X, Y = tiny_data(20)


def with_threads(name: str, threads: int) -> SequenceEstimator:
    return {
        "crf": lambda: BoostedCRF(**TREES, threads=threads),
        "memm": lambda: BoostedMEMM(**TREES, threads=threads),
        "future": lambda: FutureFeatureMEMM(**TREES, threads=threads),
        "perceptron": lambda: PerceptronTagger(rounds=3, threads=threads),
        "secoc": lambda: SECOCCRF(base=BoostedCRF(**TREES, threads=threads), threads=threads),
        "secoc of perceptrons": lambda: SECOCCRF(
            base=PerceptronTagger(threads=threads), bits=3, threads=threads
        ),
    }[name]()


NAMES = ["crf", "memm", "future", "perceptron", "secoc", "secoc of perceptrons"]


@pytest.mark.parametrize("name", NAMES)
def test_threads_and_verbosity_are_not_in_the_file(name: str, tmp_path: Path) -> None:
    files = []
    for threads, verbose in ((0, False), (1, True), (2, False), (2, False)):
        estimator = with_threads(name, threads).set_params(verbose=verbose)
        path = tmp_path / f"{len(files)}"
        estimator.fit(X, Y).save(path)
        assert estimator.get_params()["threads"] == threads
        files.append(path.read_bytes())
        loaded = type(estimator).load(path)
        assert loaded.get_params()["threads"] == 0
        assert getattr(loaded.get_params().get("base"), "threads", 0) == 0
        loaded.save(path)
        assert path.read_bytes() == files[0]
    assert len(set(files)) == 1


def test_a_file_that_holds_threads_loads_with_the_default(tmp_path: Path) -> None:
    """Files of 0.1.0 hold what they were trained with."""
    path = tmp_path / "model"
    model = BoostedCRF(**TREES, threads=1).fit(X, Y)
    model.save(path)
    state = container.read(path)
    assert state["settings"]["threads"] == 0
    state["settings"]["threads"] = 2
    container.save(path, state)
    loaded = BoostedCRF.load(path)
    assert loaded.threads == 0
    assert loaded.predict(X) == model.predict(X)
    state["settings"]["threads"] = -1
    container.save(path, state)
    with pytest.raises(ValueError, match=r"^treecrf: model field 'settings.threads': expected"):
        BoostedCRF.load(path)


def test_models_for_column_files_hold_no_times(tmp_path: Path) -> None:
    data, dev = tiny_file(tmp_path), tiny_file(tmp_path, "dev.conll", n=10, seed=5)
    paths = [tmp_path / f"{i}.treecrf" for i in range(3)]
    for path, threads in zip(paths, ("1", "2", "0"), strict=True):
        good("train", data, "--dev", dev, "-o", path, *QUICK[:-1], threads)
    assert len({path.read_bytes() for path in paths}) == 1
    state = container.read(paths[0])
    assert state["history"]["seconds"].tolist() == []
    assert len(state["history"]["held_out_accuracy"]) == 4
    state["history"]["seconds"] = np.array([0.1, 0.2, 0.3, 0.4])  # as 0.1.0 writes it
    ColumnModel.from_state(state).save(paths[1])
    assert paths[1].read_bytes() == paths[0].read_bytes()


def test_resumed_training_gives_the_bytes_of_training_in_one_go(tmp_path: Path) -> None:
    data, whole, parts = tiny_file(tmp_path), tmp_path / "whole", tmp_path / "parts"
    good("train", data, "-o", whole, *QUICK)
    good("train", data, "-o", parts, *QUICK, "--rounds", "2")
    good("train", data, "-o", parts, *QUICK, "--resume")
    assert parts.read_bytes() == whole.read_bytes()


def test_pipes_hold_no_threads() -> None:
    stored = set()
    for threads in (1, 2):
        model = {"@architectures": "spacy_treecrf.BoostedCRF.v1", "threads": threads}
        stored.add(pipe_of(trained_nlp("ents", model=model)).model.to_bytes())
    assert len(stored) == 1


TRAIN = """
import sys
from spacy_treecrf import BoostedCRF
from tests.tiny import tiny_data
BoostedCRF(rounds=4, min_rows=1, min_count=1, threads=int(sys.argv[2])).fit(*tiny_data(20)).save(
    sys.argv[1]
)
"""


def test_processes_with_other_hashes_write_the_same_bytes(tmp_path: Path) -> None:
    digests = set()
    for seed in ("1", "2"):
        path = tmp_path / seed
        subprocess.run(
            [sys.executable, "-c", TRAIN, str(path), seed],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            timeout=600,
        )
        digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(digests) == 1
