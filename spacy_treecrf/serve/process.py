"""The process that annotates, as the server sees it."""

from __future__ import annotations

import contextlib
import logging
import subprocess
from collections.abc import Sequence

from pydantic_core import from_json

from spacy_treecrf.serve.asking import Asked, Reply, Served
from spacy_treecrf.serve.frames import decode_replies, encode_asked, read_frame, write_frame
from spacy_treecrf.serve.metrics import resident_bytes
from spacy_treecrf.serve.refusals import Refusal

logger = logging.getLogger("uvicorn.error")


class NotReady(Exception):
    """The process ended before it could answer. code: Its exit code; below 0, a signal's number.

    Unless a signal ended it, it has said why.
    """

    def __init__(self, code: int) -> None:
        how = f"signal {-code} ended it; is there enough memory?" if code < 0 else f"code {code}"
        super().__init__(f"the process that annotates could not load the pipeline: {how}")
        self.code = code


class ProcessAnnotator:
    """An annotator in a process of its own.

    If that process dies, the texts that it had are refused, and another takes its place; if that
    cannot be started, the next texts try it again.

    command: What to run; serve.child.run must be what it does. timeout: Seconds for which `close`
    waits before the process is killed.
    """

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        self._command = list(command)
        self._timeout = timeout
        self._abandoned = False
        self._process, self._served = self._start()

    @property
    def served(self) -> Served:
        return self._served

    def answers(self, asked: Sequence[Asked]) -> list[Reply]:
        if self._process.poll() is not None:
            if not self._process.stdin.closed:  # type: ignore[union-attr]
                self._tell_end()  # it died while nobody asked
            if not self._restarts():
                refusal = Refusal(503, "nothing annotates now; try again")
                return [Reply.of_refusal(refusal)] * len(asked)
        try:
            write_frame(self._process.stdin, encode_asked(asked))  # type: ignore[arg-type]
            return decode_replies(read_frame(self._process.stdout))  # type: ignore[arg-type]
        except (EOFError, OSError):
            reason = self._tell_end()
        if self._abandoned:
            raise EOFError
        self._restarts()
        return [Reply.of_refusal(Refusal(500, reason))] * len(asked)

    def _tell_end(self) -> str:
        """Let go of a process that has died, or let it end; returns what was logged about it."""
        reason = f"the process that annotates has ended with {self._end()}"
        if not self._abandoned:
            logger.error("treecrf: %s", reason)
        return reason

    def _restarts(self) -> bool:
        """Start another process; False if it does not come up, which the next batch tries again."""
        try:
            self._process, self._served = self._start()
        except NotReady as failure:
            logger.error("treecrf: %s", failure)
            return False
        return True

    def resident_bytes(self) -> int | None:
        return resident_bytes(self._process.pid)

    def close(self) -> None:
        self._end()

    def abandon(self) -> None:
        self._abandoned = True
        self._process.kill()

    def _start(self) -> tuple[subprocess.Popen[bytes], Served]:
        # A session of its own: Ctrl-C is for the server, which then lets this process finish.
        process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        try:
            return process, Served(**from_json(read_frame(process.stdout)))  # type: ignore[arg-type]
        except EOFError:
            raise NotReady(process.wait()) from None
        except BaseException:  # an interrupt while it loads
            process.kill()
            process.wait()
            raise

    def _end(self) -> int:
        """Let the process end; returns its exit code."""
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        try:
            return self._process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
