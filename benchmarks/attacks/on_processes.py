"""Forks under load, threads, equal bytes, and the memory of one wide row."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attacks import ROOT
from attacks.sides import SIDES, DictSide
from attacks.trials import in_fork
from timing import peak_megabytes, run_python

FORKS = 20
LOAD = 4  # threads that predict meanwhile
THREADS = 8
ROUNDS = 10  # of prediction, in each thread
FLAGS, ROWS = 1_000_000, 1_000
SCRIPT = ROOT / "benchmarks" / "bench_attacks.py"


def forks_under_load(name: str, folder: Path) -> dict[str, Any]:
    """Forks while other threads predict with the same model, which they have just loaded."""
    side = SIDES[name]()
    model = side.train(side.small)
    known, found, path = side.predict(model), Counter[str](), folder / "model"
    side.save(model, path)
    for _ in range(FORKS // 4):
        loaded, done = side.load(path), threading.Event()

        def predict(loaded: Any = loaded, done: threading.Event = done) -> None:
            while not done.is_set():
                side.predict(loaded)

        threads = [threading.Thread(target=predict) for _ in range(LOAD)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            outcome = in_fork(lambda loaded=loaded: side.predict(loaded))
            right = "right" if outcome.value == known else "wrong"
            found[right if outcome.end == "done" else outcome.end] += 1
        done.set()
        for thread in threads:
            thread.join()
    return dict(found)


def threads_at_once(name: str, folder: Path) -> dict[str, Any]:
    """Threads that share a model which was just loaded."""
    side = SIDES[name]()
    model = side.train(side.small)
    known, path = side.predict(model), folder / "model"
    side.save(model, path)

    def predictions() -> dict[str, int]:
        loaded, begin = side.load(path), threading.Barrier(THREADS)

        def work(_: int) -> list[bool]:
            begin.wait()
            return [side.predict(loaded) == known for _ in range(ROUNDS)]

        with ThreadPoolExecutor(THREADS) as pool:
            right = [each for part in pool.map(work, range(THREADS)) for each in part]
        return {"right": sum(right), "wrong": len(right) - sum(right)}

    outcome = in_fork(predictions, seconds=60.0)
    if outcome.end != "done":
        return {f"{outcome.end} {outcome.error}{outcome.message}"[:80]: 1}
    return {how: n for how, n in outcome.value.items() if n}


def equal_bytes(name: str, folder: Path) -> dict[str, Any]:
    """Files of trainings in processes of their own, with other hashes of strings and threads."""
    runs = [
        run_python(str(SCRIPT), "--digest", threads, "--side", name, PYTHONHASHSEED=seed)
        for seed, threads in (("1", "1"), ("2", "1"), ("3", "2"))
    ]
    return {"trainings": len(runs), "different files": len(set(runs))}


def digest(name: str, threads: int, folder: Path) -> str:
    side = SIDES[name]()
    side.save(side.train(side.small, threads), folder / "model")
    whole = hashlib.sha256()
    for file in side.files(folder / "model"):
        whole.update(file.read_bytes())
    return whole.hexdigest()


def wide_row(name: str, folder: Path) -> dict[str, Any]:
    """The memory of a training in which one of a thousand rows has a million flags."""
    side = SIDES[name]()
    if not isinstance(side, DictSide):
        return {"does not apply": ""}

    def train() -> dict[str, float]:
        side.train_wide(10, 10)
        before = peak_megabytes()
        side.train_wide(FLAGS, ROWS)
        return {"megabytes": peak_megabytes() - before}

    outcome = in_fork(train, seconds=120.0)
    if outcome.end == "done":
        return {"trained, MB": round(outcome.value["megabytes"])}
    return {f"{outcome.end} {outcome.error}".strip(): outcome.message[:60]}
