"""Work in a forked process that may crash, hang or take all memory, and what came of it."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 30.0  # then it hangs
MEGABYTES = 4000  # beyond what the process has already


@dataclass(frozen=True)
class Outcome:
    """How a trial ended: "done", "error", "crash" or "hang"."""

    end: str
    value: Any = None  # what the work returned
    error: str = ""  # the exception's class
    message: str = ""


def in_fork(work: Callable[[], Any], seconds: float = SECONDS) -> Outcome:
    """Do the work in a child of this process; it returns what JSON can hold."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _work_and_exit(work, writing)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as file:
        got = _read_until(file.fileno(), time.monotonic() + seconds)
    if got is None:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if got is None:
        return Outcome("hang")
    if os.WIFSIGNALED(status) or not got:
        how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit"
        return Outcome("crash", message=how)
    return Outcome(**json.loads(got))


def _read_until(number: int, deadline: float) -> bytes | None:
    """All that comes before the other end closes; None if that is not in time."""
    got = b""
    while select.select([number], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(number, 2**16)
        if not part:
            return got
        got += part
    return None


def _work_and_exit(work: Callable[[], Any], writing: int) -> None:
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        limit_memory(MEGABYTES)
        result = {"end": "done", "value": work()}
    except BaseException as error:
        name, message = type(error).__name__, str(error)[:1000]
        result = {"end": "error", "error": name, "message": message}
    with os.fdopen(writing, "wb") as file:
        file.write(json.dumps(result).encode())
    os._exit(0)


def limit_memory(megabytes: int) -> None:
    """Let this process take so much more, where the system tells what it has."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        most = int(statm.read_text().split()[0]) * resource.getpagesize() + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
