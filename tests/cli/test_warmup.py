"""`spacy-treecrf warmup`: whoever starts afterwards compiles nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_treecrf.cli.shared import warming
from spacy_treecrf.cli.warmup import PREDICTION, TRAINING
from tests.hardening.children import ROOT

# Trains, saves, loads and predicts with default settings, and prints what was compiled.
USE = """
import json, sys, tempfile
from pathlib import Path
from numba.core import event
from spacy_treecrf.cli.shared import warming
from spacy_treecrf.engine.kernel_cache import KernelCache

class Listener(event.Listener):
    def on_start(self, happened):
        compiled.append(happened.data["dispatcher"].py_func.__qualname__)
    def on_end(self, happened):
        pass

compiled = []
event.register("numba:compile", Listener())
KernelCache.reads_everywhere = False
with tempfile.TemporaryDirectory() as folder:
    for step in sys.argv[1:]:
        warming.STEPS[step](Path(folder))
print(json.dumps(compiled))
"""


def run(*command: str, cache: Path) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def warm(folder: Path, *options: str) -> str:
    return run("-m", "spacy_treecrf", "warmup", "--cache", str(folder), *options, cache=Path(""))


def compiled_by(cache: Path, *steps: str) -> list[str]:
    names: list[str] = json.loads(run("-c", USE, *steps, cache=cache).splitlines()[-1])
    return names


@pytest.mark.slow  # compiles everything
def test_after_a_warmup_training_and_prediction_compile_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    out = warm(folder)
    kernels = list(folder.rglob("*.nbc"))
    assert f"{len(kernels)} compiled kernels" in out
    for reads_dicts in ("read_dicts", "resolve"):  # of few kinds of keys, and of many
        assert any(reads_dicts in kernel.name for kernel in kernels)
    assert out.rstrip().endswith(f"NUMBA_CACHE_DIR={folder}")
    steps = ("train-estimator", "predict-estimator", "train-pipe", "predict-pipe")
    assert compiled_by(folder, *steps) == []
    assert list(folder.rglob("*.nbc")) == kernels


def test_the_steps_of_the_command_are_those_of_its_processes() -> None:
    assert [*TRAINING, *PREDICTION] == list(warming.STEPS)
