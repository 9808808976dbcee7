"""`warmup`: compile the kernels before they are needed, e.g. where an image is built."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from spacy_treecrf.cli.shared.common import reports_errors, say

EXAMPLES = """\b
Examples:
  spacy-treecrf warmup
  spacy-treecrf warmup --for prediction --cache /var/cache/treecrf

Kernels in DIR are found by processes whose environment has NUMBA_CACHE_DIR=DIR.
"""


class Use(str, Enum):
    """What kernels are compiled for."""

    training = "training"
    prediction = "prediction"
    all = "all"


# The steps of warming.py, in their order. A prediction needs a model, so that both are trained
# in any case: if it is not for training, with what that compiles kept elsewhere.
TRAINING = ("train-estimator", "train-pipe")
PREDICTION = ("predict-estimator", "predict-pipe")


@reports_errors
def warmup(
    use: Annotated[
        Use, typer.Option("--for", help="Compile for training, prediction or all.")
    ] = Use.all,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Compile everything into this folder, to be named by NUMBA_CACHE_DIR. Without "
            "it, kernels go where they are looked for in any case.",
        ),
    ] = None,
) -> None:
    """Compile the kernels of estimators and pipe with default settings, so that nobody waits.

    It trains and applies small models in processes of their own.
    """
    from tqdm import tqdm

    folders: set[str] = set()
    with tempfile.TemporaryDirectory() as models:
        bar = tqdm((*TRAINING, *PREDICTION), unit="step", desc="treecrf: compiling", leave=False)
        for step in bar:
            wanted = use is Use.all or (step in TRAINING) == (use is Use.training)
            if not wanted and use is Use.training:
                continue
            used = _run(step, models, cache if wanted else None)
            folders |= used if wanted else set()
    typer.echo(_summary(folders, cache))


def _run(step: str, models: str, cache: Path | None) -> set[str]:
    """The folders where a step, run by a new process, has read or written kernels."""
    command = [sys.executable, "-m", "spacy_treecrf.cli.shared.warming", step, models]
    environment = os.environ | {"TREECRF_QUIET": "1"}
    if cache is not None:
        cache.mkdir(parents=True, exist_ok=True)
        environment["NUMBA_CACHE_DIR"] = str(cache.resolve())
        command.append("--nowhere-else")
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        say(done.stderr.rstrip())
        raise ValueError(f"treecrf: warmup failed in the step {step}; its error is above")
    return set(json.loads(done.stdout.splitlines()[-1]))


def _summary(folders: set[str], cache: Path | None) -> str:
    """Where the kernels are, and how many and how large they are."""
    files = [file for folder in sorted(folders) for file in Path(folder).glob("*.nbc")]
    size = sum(file.stat().st_size for file in files) / 1e6
    if cache is not None:
        where, use = cache, f"; use it with NUMBA_CACHE_DIR={cache.resolve()}"
    else:
        where, use = Path(os.path.commonpath(folders)) if folders else Path("nowhere"), ""
    return f"treecrf: {len(files)} compiled kernels, {size:.1f} MB, in {where}{use}"
