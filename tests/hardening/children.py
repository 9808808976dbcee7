"""Processes under attack: scripts that run apart, in a group of their own, and never for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Timer

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 600.0  # seconds: for a machine that compiles kernels and does other things beside
LOST = 120.0  # seconds without an answer to a signal


class Child:
    """A process that says "ready" when it may be attacked; what hangs is killed after LONGEST."""

    def __init__(
        self,
        command: Sequence[str | Path],
        environment: dict[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._errors = tempfile.TemporaryFile("w+", encoding="utf8")  # noqa: SIM115 (see __exit__)
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        )
        self._watch = Timer(LONGEST, self._kill)
        self._watch.start()

    @classmethod
    def script(cls, code: str, *args: str | Path) -> Child:
        return cls([sys.executable, "-c", code, *args])

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
        self._watch.cancel()
        self.process.communicate()
        self._errors.close()

    def _kill(self) -> None:
        """Kill it and its own children, a process group; not once it was waited for."""
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    @property
    def code(self) -> int:
        return self.process.returncode

    def line(self) -> str:
        """The next line; the process is killed where none comes, as if a signal was lost.

        Python drops what a handler raises in a finalizer: none of ours may be written in Python.
        """
        assert self.process.stdout is not None
        lost = Timer(LOST, self._kill)
        lost.start()
        try:
            line = self.process.stdout.readline()
        finally:
            lost.cancel()
        if not line:
            raise self._ended()
        return line.rstrip("\n")

    def wait_until_ready(self) -> None:
        """Read lines up to "ready"."""
        assert self.process.stdout is not None
        seen = ""
        for line in self.process.stdout:
            if line == "ready\n":
                return
            seen += line
        raise self._ended(seen)

    def _ended(self, seen: str = "") -> AssertionError:
        """What to raise where it ended before its time: all that it said."""
        return AssertionError(f"{seen}{''.join(self.end())} (ended with {self.code})")

    def send(self, sent: signal.Signals, after: float) -> None:
        time.sleep(after)
        self.process.send_signal(sent)

    def end(self, within: float = LONGEST) -> tuple[str, str]:
        """Wait for the end: the rest of the standard output, and the standard error.

        within: Seconds after which it is killed.
        """
        assert self.process.stdout is not None
        late = Timer(within, self._kill)
        late.start()
        try:
            out = self.process.stdout.read()
        finally:
            late.cancel()
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        self._kill()  # what it left behind
        self.process.wait()
        self._errors.seek(0)
        return out, self._errors.read()
