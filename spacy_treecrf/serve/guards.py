"""Around all routes: which hosts may be asked for, headers of safety, and counting."""

from __future__ import annotations

import time
from collections.abc import Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spacy_treecrf.serve.metrics import Metrics
from spacy_treecrf.serve.refusals import Refusal

OTHER = "other"  # stands for paths that do not exist, of which there are too many to count
SAFETY = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Guards:
    """An ASGI application around another.

    hosts: Names that the Host header may have; None: any. A page of somebody else whose name was
    made to point to this machine is refused by them. paths: Those that are counted by name.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, hosts: Collection[str] | None, paths: Collection[str]
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._hosts = None if hosts is None else {host.lower() for host in hosts}
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500

        async def counting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *SAFETY]
            await send(message)

        try:
            host = _host_of(scope)
            if self._hosts is not None and host not in self._hosts:
                reason = f"this server is not {host or 'a nameless host'}; see --allow-host"
                await Refusal(421, reason).response()(scope, receive, counting)
            else:
                await self._app(scope, receive, counting)
        finally:
            path = scope["path"] if scope["path"] in self._paths else OTHER
            seconds = time.perf_counter() - began
            self._metrics.add_request(path, _known_method(scope["method"]), status, seconds)


def _host_of(scope: Scope) -> str:
    """The name in the Host header, without its port and the brackets of IPv6."""
    found = [value for name, value in scope["headers"] if name == b"host"]
    header = found[0].decode("latin-1") if len(found) == 1 else ""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def _known_method(method: str) -> str:
    known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    return method if method in known else OTHER
