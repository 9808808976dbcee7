"""Bodies of requests, read within limits of size and time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence

from starlette.requests import Request

from spacy_treecrf.serve.limits import Limits
from spacy_treecrf.serve.refusals import CLOSE, Refusal

if sys.version_info >= (3, 11):
    from asyncio import timeout as time_limit
else:
    from async_timeout import timeout as time_limit

JSON = ("application/json",)
JSON_LINES = ("application/x-ndjson", "application/jsonl")


def check_headers(request: Request, kinds: Sequence[str]) -> None:
    """Refuse bodies of another media type, another encoding, or compressed ones."""
    kind, *parameters = request.headers.get("content-type", "").lower().split(";")
    if kind.strip() not in kinds:
        wanted = " or ".join(kinds)
        raise Refusal(415, f"the header Content-Type must be {wanted}", headers=CLOSE)
    for parameter in parameters:
        name, _, value = parameter.strip().partition("=")
        if name == "charset" and value.strip('"') not in ("utf-8", "utf8"):
            raise Refusal(415, "the body must be encoded as UTF-8", headers=CLOSE)
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(415, "the body must not be compressed", headers=CLOSE)


async def read_body(request: Request, limits: Limits) -> bytes:
    """The whole body; 413 if it is too long, 408 if it takes too long to come."""
    check_headers(request, JSON)
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limits.max_bytes:
        raise too_long("body", limits)
    parts: list[bytes] = []
    n_bytes = 0
    try:
        async with time_limit(limits.timeout):
            async for part in request.stream():
                n_bytes += len(part)
                if n_bytes > limits.max_bytes:
                    raise too_long("body", limits)
                parts.append(part)
    except asyncio.TimeoutError:
        raise too_slow(limits) from None
    return b"".join(parts)


async def read_lines(request: Request, limits: Limits) -> AsyncIterator[bytes | Refusal]:
    """The lines of a body that may never end; a line that is too long is a refusal.

    A client that sends nothing for longer than the timeout ends the lines by a refusal.
    """
    rest = bytearray()
    skipping = False  # the rest of a line that is too long
    parts = request.stream()
    while True:
        try:
            async with time_limit(limits.timeout):
                part = await anext(parts)
        except asyncio.TimeoutError:
            yield too_slow(limits)
            return
        except StopAsyncIteration:
            if rest and not skipping:
                yield bytes(rest)
            return
        *ended, last = part.split(b"\n")
        for piece in ended:
            if not skipping:
                rest += piece
                yield too_long("line", limits) if len(rest) > limits.max_bytes else bytes(rest)
            rest.clear()
            skipping = False
        if not skipping:
            rest += last
            if len(rest) > limits.max_bytes:
                yield too_long("line", limits)
                rest.clear()
                skipping = True


def too_long(what: str, limits: Limits) -> Refusal:
    reason = f"the {what} has more than {limits.max_bytes} bytes"
    if what == "body":
        reason += "; send many texts line by line to /annotate/stream"
    return Refusal(413, reason, headers=CLOSE)


def too_slow(limits: Limits) -> Refusal:
    return Refusal(408, f"nothing came for {limits.timeout:g} seconds", headers=CLOSE)
