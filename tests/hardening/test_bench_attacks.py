"""benchmarks/bench_attacks.py tells ends apart, and an attack gives a line and a table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs forks")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ENDS = """
import os
import signal
import time
from attacks.trials import in_fork

def fail():
    raise KeyError("label")

def take_all():
    return len(bytearray(2**40))

print(in_fork(lambda: [1, "a"]))
print(in_fork(fail))
print(in_fork(take_all).error)
print(in_fork(lambda: os.kill(os.getpid(), signal.SIGSEGV)))
print(in_fork(lambda: os._exit(3)))
print(in_fork(lambda: time.sleep(600), seconds=0.5))
"""


def python(*arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS)}
    command = [sys.executable, *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_ends_of_trials_are_told_apart() -> None:
    assert python("-c", ENDS).splitlines() == [
        "Outcome(end='done', value=[1, 'a'], error='', message='')",
        "Outcome(end='error', value=None, error='KeyError', message=\"'label'\")",
        "MemoryError",
        "Outcome(end='crash', value=None, error='', message='SIGSEGV')",
        "Outcome(end='crash', value=None, error='', message='exit')",
        "Outcome(end='hang', value=None, error='', message='')",
    ]


def test_an_attack_gives_a_line_and_a_table() -> None:
    script = str(BENCHMARKS / "bench_attacks.py")
    line, *table = python(script, "--only", "disk", "--side", "BoostedCRF").splitlines()
    found = json.loads(line)
    assert (found["attack"], found["side"]) == ("disk", "BoostedCRF")
    assert sum(found["found"].values()) == 7
    assert all(end.endswith("old or new model there") for end in found["found"])
    assert table[0] == "| attack | BoostedCRF |"
    assert len(table) == 3
