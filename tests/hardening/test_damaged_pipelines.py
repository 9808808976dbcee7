"""Damaged pipes and pipelines on disk: a ValueError that names the file, or a pipe that works.

Mutants are loaded in a process of their own, so that a crash of the interpreter is a failure of
the test and not of pytest:
`python -m tests.hardening.test_damaged_pipelines DAMAGE SEED COUNT LOG`.
"""

from __future__ import annotations

import faulthandler
import json
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import srsly
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from spacy.language import Language

from spacy_treecrf.pipeline.pipe import TreeCRF
from spacy_treecrf.storage import container
from spacy_treecrf.taggers.loading import load_pipe
from tests.hardening.damage import STRANGE, damaged_bytes, damaged_value
from tests.hardening.memory_limit import most_memory
from tests.models.state_edits import edit
from tests.pipeline.tiny_pipes import CORPUS, corpus, new_doc, new_nlp, pipe_of, train
from tests.refusals import assert_refused

ROOT = Path(__file__).resolve().parents[2]
# A mutant that needs more has announced a size that nothing in the file backs up.
MEMORY = 6 * 2**30
SECONDS = 120  # against hangs; a busy machine may have to compile kernels meanwhile
ALL_SECONDS = 1800  # for all of them, also on a machine that does other things beside
FEATURES: dict[str, Any] = {
    "patterns": {"capital": "^[A-Z]"},
    "gazetteers": {"city": ["New York", "Rome"]},
    "gazetteer_from_entities": True,
    "document": ["case"],
}
JSON_STRANGE = [value for value in STRANGE if not isinstance(value, bytes)]


def learned_nlp() -> Language:
    nlp = new_nlp(features=FEATURES)
    examples = corpus(nlp)
    nlp.initialize(lambda: examples)
    train(nlp, examples, 2)
    return nlp


class Trial:
    """Loads mutants and uses those that load; what it does is written down before it is done."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.outcomes: Counter[str] = Counter()
        self.n_failures = 0

    def __call__(
        self, description: str, load: Callable[[], Language], names: tuple[str, ...]
    ) -> None:
        """names: what an error has to name, one of them at least."""
        self.log.write_text(description)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            self.outcomes[self.load(load, names)] += 1
        except Exception as error:
            self.outcomes[type(error).__name__] += 1
            self.n_failures += 1
            if self.n_failures <= 20:
                print(f"{description}\n{traceback.format_exc(limit=-4)}", flush=True)
        faulthandler.cancel_dump_traceback_later()

    def load(self, load: Callable[[], Language], names: tuple[str, ...]) -> str:
        try:
            nlp = load()
        except ValueError as error:
            message = str(error)
            if not message.startswith("treecrf: "):
                raise
            assert any(name in message for name in names), f"names no file: {message}"
            return "refused"
        use(nlp)
        return "loaded"


def use(nlp: Language) -> None:
    pipe = pipe_of(nlp)
    docs = [new_doc(nlp, CORPUS[0]), new_doc(nlp, CORPUS[1], CORPUS[2])]
    if pipe.shim.learned is None:  # a pipe that has learned nothing is stored as well
        assert_refused(lambda: pipe.marginals(docs[0]), "has learned nothing")
        return
    for doc in docs:
        try:
            rows = pipe.marginals(doc)
            best = pipe.nbest(doc, 1)
            pipe(doc)
        except ValueError as error:  # columns that are not those of the config's features
            if not str(error).startswith("treecrf: "):
                raise
            return
        # Edited masks may allow no label sequence of this length, and only of this one.
        np.testing.assert_allclose(rows.sum(axis=1), float(bool(best)), atol=1e-5)


def try_pipes(trial: Trial, seed: int, count: int) -> None:
    with pipe_mutants(trial) as try_mutant:
        for i in range(count):
            try_mutant(i, random.Random(f"{seed} {i}"))


def try_hypothesis(trial: Trial, seed_: int, count: int) -> None:
    """The same damage, chosen and shrunk by hypothesis."""
    with pipe_mutants(trial) as try_mutant:

        @seed(seed_)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(st.integers(0, 6), st.randoms(use_true_random=False))
        def check(kind: int, rng: random.Random) -> None:
            before = trial.n_failures
            try_mutant(kind, rng)
            assert trial.n_failures == before

        check()


@contextmanager
def pipe_mutants(trial: Trial) -> Iterator[Callable[[int, random.Random], None]]:
    """Mutants of the folder of a pipe in a pipeline, and of the bytes of a pipe."""
    nlp = learned_nlp()
    pipe = pipe_of(nlp)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "treecrf"
        pipe.to_disk(here, exclude=["vocab"])
        model, cfg = (here / "model").read_bytes(), (here / "cfg").read_bytes()
        wrapped = srsly.msgpack_loads(model)
        state = container.parse(wrapped["shims"][0][0])
        whole = pipe.to_bytes(exclude=["vocab"])

        def edited_state(rng: random.Random) -> tuple[bytes, str]:
            if rng.random() < 0.3:
                changed, done = damaged_value({**state, "model": {}}, rng, JSON_STRANGE)
                changed = changed if isinstance(changed, dict) else {"state": changed}
            else:
                learned, done = edit(state["model"], rng)
                changed = {**state, "model": learned}
            shims = [[container.dump(changed)]]
            return srsly.msgpack_dumps({**wrapped, "shims": shims}), done

        def edited_wrapping(rng: random.Random) -> tuple[bytes, str]:
            changed, done = damaged_value(wrapped, rng)
            return srsly.msgpack_dumps(changed), done

        def edited_cfg(rng: random.Random) -> tuple[bytes, str]:
            changed, done = damaged_value({"a": [1, {}]}, rng, JSON_STRANGE)
            return json.dumps(changed).encode(), done

        def edited_whole(rng: random.Random) -> tuple[bytes, str]:
            changed, done = damaged_value(srsly.msgpack_loads(whole), rng)
            return srsly.msgpack_dumps(changed), done

        damages: list[tuple[str, Callable[[random.Random], tuple[bytes, str]]]] = [
            ("model", lambda rng: damaged_bytes(model, rng)),
            ("model", edited_wrapping),
            ("model", edited_state),
            ("cfg", lambda rng: damaged_bytes(cfg, rng)),
            ("cfg", edited_cfg),
            ("bytes", lambda rng: damaged_bytes(whole, rng)),
            ("bytes", edited_whole),
        ]

        def try_mutant(i: int, rng: random.Random) -> None:
            part, damage = damages[i % len(damages)]
            data, done = damage(rng)
            twin = TreeCRF(nlp.vocab, pipe.model.copy(), task=pipe.task, features=pipe.features)
            (here / "model").write_bytes(data if part == "model" else model)
            (here / "cfg").write_bytes(data if part == "cfg" else cfg)

            def load() -> Language:
                if part == "bytes":
                    twin.from_bytes(data, exclude=["vocab"])
                else:
                    twin.from_disk(here, exclude=["vocab"])
                return _with(nlp, twin)

            names = ("bytes of the pipe",) if part == "bytes" else (str(here / part),)
            trial(f"{i}: {part}, {done}", load, names)

        yield try_mutant


def _with(nlp: Language, pipe: TreeCRF) -> Language:
    nlp._components = [("treecrf", pipe)]
    return nlp


def try_folders(trial: Trial, seed: int, count: int) -> None:
    """Any file of a pipeline: those of spaCy as well, read as the commands read them."""
    with tempfile.TemporaryDirectory() as folder:
        good, here = Path(folder) / "good", Path(folder) / "pipeline"
        learned_nlp().to_disk(good)
        files = sorted(path.relative_to(good) for path in good.rglob("*") if path.is_file())
        for i in range(count):
            rng = random.Random(f"{seed} {i}")
            shutil.rmtree(here, ignore_errors=True)
            shutil.copytree(good, here)
            file = files[i % len(files)]
            if rng.random() < 0.1:
                (here / file).unlink()
                done = "removed"
            else:
                data, done = damaged_bytes((good / file).read_bytes(), rng)
                (here / file).write_bytes(data)

            def load() -> Language:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # spaCy's, of versions in meta
                    return load_pipe(str(here), None)[0]

            trial(f"{i}: {file} {done}", load, (str(here), "field"))


DAMAGES = {"pipes": try_pipes, "hypothesis": try_hypothesis, "folders": try_folders}


@pytest.mark.parametrize(
    ("damage", "count"),
    [
        ("pipes", 2000),
        ("hypothesis", 100),
        ("folders", 30),
        pytest.param("pipes", 6000, marks=pytest.mark.slow),
        pytest.param("hypothesis", 2000, marks=pytest.mark.slow),
        pytest.param("folders", 400, marks=pytest.mark.slow),
    ],
)
def test_damaged_pipelines_are_refused_by_name_or_work(
    damage: str, count: int, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    module = "tests.hardening.test_damaged_pipelines"
    command = [sys.executable, "-m", module, damage, "0", str(count), str(log)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=ALL_SECONDS)
    last = log.read_text() if log.exists() else "nothing"
    assert run.returncode == 0, f"last mutant: {last}\n{run.stdout[-5000:]}\n{run.stderr[-3000:]}"


def main(damage: str, seed: str, count: str, log: str) -> None:
    faulthandler.enable()
    most_memory(MEMORY)
    use(learned_nlp())  # compiles, which may take longer than a mutant may
    trial = Trial(Path(log))
    DAMAGES[damage](trial, int(seed), int(count))
    print(dict(trial.outcomes))
    sys.exit(bool(trial.n_failures))


if __name__ == "__main__":
    main(*sys.argv[1:])
