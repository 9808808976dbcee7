"""Wall time, peak memory and JSON lines."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """The result of `work`, and the seconds it took."""
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


def cpu_timed(work: Callable[[], Result]) -> tuple[Result, dict[str, float]]:
    """The result of `work`, and the wall and processor seconds it took, with those of children."""
    began = _cpu_seconds()
    result, seconds = timed(work)
    return result, {"seconds": seconds, "cpu_seconds": _cpu_seconds() - began}


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def best_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The fewest seconds of several calls; the first, which warms up, does not count."""
    work()
    return min(timed(work)[1] for _ in range(repeats))


def peak_megabytes() -> float:
    """The most memory that this process has held so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def run_python(*arguments: str, **environment: str) -> Any:
    """Run a new interpreter; returns the JSON that it prints last."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def report(benchmark: str, **values: Any) -> None:
    """Print one JSON line."""
    print(
        json.dumps(_rounded({"benchmark": benchmark, "cores": os.cpu_count(), **values})),
        flush=True,
    )


def _rounded(value: Any) -> Any:
    """The value with its floats cut to 4 significant digits, also inside lists and dicts."""
    if isinstance(value, dict):
        return {name: _rounded(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(v) for v in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
