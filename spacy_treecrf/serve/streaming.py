"""Streams of JSON lines: texts in, annotations out, line by line, in constant memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from pydantic import ValidationError
from pydantic_core import to_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from spacy_treecrf.serve.asking import Asked
from spacy_treecrf.serve.bodies import JSON_LINES, read_lines
from spacy_treecrf.serve.refusals import Refusal, refusal_of_json
from spacy_treecrf.serve.schemas import StreamedText
from spacy_treecrf.serve.state import Service

MOST_BYTES = 2**16  # of lines that are ready and sent together

# The number of a line, and its answer: one that is awaited, or an error. None: the end.
Line = tuple[int, "asyncio.Future[bytes] | Refusal"]


class StreamedAnswer(Response):
    """An answer that is sent while the request is still being read.

    Starlette's own streams would read the request's body to find out whether the client is there.
    """

    def __init__(self, request: Request, service: Service) -> None:
        super().__init__(media_type=JSON_LINES[0])
        del self.headers["content-length"]
        self._request = request
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        async with contextlib.aclosing(self._answers()) as answers:
            async for part in answers:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _answers(self) -> AsyncGenerator[bytes, None]:
        """Lines of the answer; those that are ready at the same time come together."""
        # As many lines as one batch are on their way; then the client has to wait.
        lines: asyncio.Queue[Line | None] = asyncio.Queue(self._service.limits.batch)
        reading = asyncio.create_task(self._read(lines))
        ready = bytearray()
        try:
            while (line := await lines.get()) is not None:
                ready += await _encoded(line)
                if lines.empty() or len(ready) > MOST_BYTES:
                    yield bytes(ready)
                    ready.clear()
            if ready:
                yield bytes(ready)
        finally:
            reading.cancel()
            while not lines.empty():  # which also makes room for the end
                _forget(lines.get_nowait())
            with contextlib.suppress(asyncio.CancelledError, ClientDisconnect):
                await reading

    async def _read(self, lines: asyncio.Queue[Line | None]) -> None:
        """Put the lines of the request into the queue, and their texts into that of the service."""
        number = 0
        try:
            async for line in read_lines(self._request, self._service.limits):
                number += 1
                if isinstance(line, Refusal):
                    await lines.put((number, line))
                elif line.strip():
                    await lines.put((number, await self._submit(line)))
        except ClientDisconnect:
            pass
        finally:
            await lines.put(None)

    async def _submit(self, line: bytes) -> asyncio.Future[bytes] | Refusal:
        try:
            wanted = StreamedText.model_validate_json(line)
            self._service.served.check([wanted.input], "text")
            asked = Asked("annotate", wanted.input, wanted.options)
            return await self._service.batcher.submit_with_patience(asked)
        except ValidationError as error:
            return refusal_of_json(error)
        except Refusal as refusal:
            return refusal


def _forget(line: Line | None) -> None:
    """Let a text go whose answer nobody reads any more."""
    if line is not None and not isinstance(line[1], Refusal):
        line[1].cancel()


async def _encoded(line: Line) -> bytes:
    """The answer with the number of its line as its first field."""
    number, found = line
    try:
        if isinstance(found, Refusal):
            raise found
        answer = await found
    except Refusal as refusal:
        answer = to_json(refusal.to_dict())
    return b'{"line":%d,' % number + answer[1:] + b"\n"
