"""A server in a process of its own, on a free port of the loopback address, and ways to ask it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

TIMEOUT = 120.0  # seconds, on a busy machine
JSON_LINES = {"Content-Type": "application/x-ndjson"}


class Server:
    """`spacy-treecrf serve` with these options; ends with the block."""

    def __init__(self, model: Path, *options: str) -> None:
        command = [sys.executable, "-m", "spacy_treecrf", "serve", str(model), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TREECRF_QUIET": "1"},
        )
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline()
        assert " at http://127.0.0.1:" in self.first_line, self.process.communicate()
        self.address = self.first_line.split()[-1]
        self.port = int(self.address.rpartition(":")[2])
        self.client = httpx.Client(base_url=self.address, timeout=TIMEOUT)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.end(signal.SIGTERM)

    def annotate(self, **body: Any) -> list[dict[str, Any]]:
        answer = self.client.post("/annotate", json=body)
        assert answer.status_code == 200, answer.text
        docs: list[dict[str, Any]] = answer.json()["docs"]
        return docs

    def metric(self, name: str) -> float:
        """The value of a metric without labels."""
        lines = self.client.get("/metrics").text.splitlines()
        (value,) = (line.split()[1] for line in lines if line.startswith(f"treecrf_{name} "))
        return float(value)

    def raw(self, sent: bytes, shut: bool = False) -> bytes:
        """What comes back for bytes as they are, until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT) as connection:
            connection.sendall(sent)
            if shut:
                connection.shutdown(socket.SHUT_WR)
            parts = []
            while part := connection.recv(2**16):
                parts.append(part)
        return b"".join(parts)

    def end(self, number: int) -> tuple[int, str, str]:
        """Send a signal; returns the exit code and what was printed."""
        self.process.send_signal(number)
        try:
            out, err = self.process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return self.process.returncode, out, err


def wait_until(holds: Callable[[], object]) -> None:
    """Ask again and again; an error if it does not hold in time."""
    deadline = time.monotonic() + TIMEOUT
    while not holds():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.005)


def refused(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The error of an answer, which must have this status and the one form of errors."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    error: dict[str, Any] = answer.json()["error"]
    assert set(answer.json()) == {"error"}
    assert set(error) == {"status", "reason", "field"}
    assert error["status"] == status
    assert error["reason"]
    return error
