"""Interrupts of training and of prediction, at random moments."""

from __future__ import annotations

import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from tests.hardening import children

from attacks import ROOT
from attacks.sides import SIDES

MOMENTS = 20
SENTENCES = 1500  # of the training that is interrupted
LATEST = 0.5  # seconds after its begin
SIGNALS = {"SIGINT": signal.SIGINT, "raising handler": signal.SIGUSR1}
SCRIPT = ROOT / "benchmarks" / "bench_attacks.py"


class Stop(Exception):
    """What the handler of a user raises."""


def interrupted_training(side: str, folder: Path) -> dict[str, Any]:
    return {name: _interrupted("training", side, sent) for name, sent in SIGNALS.items()}


def interrupted_prediction(side: str, folder: Path) -> dict[str, Any]:
    return {name: _interrupted("prediction", side, sent) for name, sent in SIGNALS.items()}


def _interrupted(work: str, side: str, sent: signal.Signals) -> dict[str, Any]:
    """What a process under attack answered, and how long after the signal."""
    children.LOST, children.LONGEST = 20.0, 200.0
    draw, found, seconds = random.Random(0), Counter[str](), []
    with children.Child([sys.executable, SCRIPT, "--victim", work, "--side", side]) as child:
        for _ in range(MOMENTS):
            try:
                child.wait_until_ready()
            except AssertionError:
                break  # it has ended, which is counted below
            child.send(sent, after=draw.uniform(0.0, LATEST))
            sent_at = time.monotonic()
            answer = child.line()
            waited = time.monotonic() - sent_at
            if not answer:
                break
            if waited >= children.LOST:
                found["signal lost"] += 1
            else:
                found[answer] += 1
                seconds.append(waited)
        _, errors = child.end()
        if child.code:
            name = signal.Signals(-child.code).name if child.code < 0 else f"exit {child.code}"
            found[f"process ended by {name}"] += 1
    answers: dict[str, Any] = dict(found)
    if seconds:
        answers |= {"median_seconds": median(seconds), "worst_seconds": max(seconds)}
    if child.code:
        answers["errors"] = errors[-500:]
    return answers


def be_interrupted(work: str, name: str) -> None:
    """The process under attack: it says "ready", works, and says what interrupted it."""
    side = SIDES[name]()
    model = side.train(side.small)
    expected = side.predict(model)
    if work == "training":
        long = SIDES[name](SENTENCES)
        _answer(long.training(long.large), lambda: side.predict(model) == expected)
    else:
        _answer(lambda: side.predict(model), lambda: side.predict(model) == expected)
    assert side.predict(side.train(side.small)) == expected, "a later training differs"


def _answer(work: Callable[[], Any], works: Callable[[], bool]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGUSR1, _stop)
    for _ in range(MOMENTS):
        answer = "interrupted"
        try:
            print("ready", flush=True)
            while True:
                work()
        except (KeyboardInterrupt, Stop):
            pass
        except BaseException as error:
            answer = f"other exception: {type(error).__name__}"
        print(answer if works() else "interrupted, wrong afterwards", flush=True)


def _stop(*_: object) -> None:
    raise Stop


def words(found: dict[str, Any]) -> str:
    """The findings as a cell of a table."""
    cells = []
    for name, answers in found.items():
        counts = [f"{n} {answer}" for answer, n in answers.items() if isinstance(n, int)]
        if "worst_seconds" in answers:
            counts.append(
                f"after {answers['median_seconds']:.2f} s, at most {answers['worst_seconds']:.2f} s"
            )
        cells.append(f"{name}: {', '.join(counts)}")
    return "; ".join(cells)
