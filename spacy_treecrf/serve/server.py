"""The server's process: its socket, signals, and the end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.server import HANDLED_SIGNALS

from spacy_treecrf.serve.limits import Limits
from spacy_treecrf.serve.refusals import CLOSE, Refusal

LOOPBACK = ("localhost", "127.0.0.1", "::1")
KEEP_ALIVE = 30  # seconds for which a connection without requests stays


def bind(host: str, port: int) -> socket.socket:
    """A socket at this address, which does not listen yet; port 0 takes any that is free."""
    if not host:  # to the system, an empty one is every address
        raise ValueError("treecrf: --host is empty; name an address, 0.0.0.0 for every one")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise ValueError(
            f"treecrf: cannot listen on {host} port {port}: {error.strerror or error}; choose "
            "another --host or --port"
        ) from error
    return bound


def address_of(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def hosts_for(host: str, bound: socket.socket, allowed: Sequence[str]) -> set[str] | None:
    """Names that the Host header may have; None: any. host: What the socket was bound to.

    A server on a loopback address is asked for by its names there. Of another address the names
    are not known, unless they are given.
    """
    address = ipaddress.ip_address(bound.getsockname()[0])
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_loopback or allowed:
        return {host, str(address), *LOOPBACK, *allowed}
    return None


def run(
    app: ASGIApp,
    bound: socket.socket,
    limits: Limits,
    started: Callable[[], None],
    check: Callable[[], None],
) -> None:
    """Serve until SIGTERM or SIGINT, then answer what is in flight.

    started: Called when requests are answered. check: Called once signals are heeded here; raises
    what a signal before that should have raised.
    """
    config = uvicorn.Config(
        app,
        http=_protocol(limits),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(limits.timeout)),
    )
    # What is loaded by now stays: Python need not look through it for garbage again and again.
    gc.collect()
    gc.freeze()
    _Server(config, started, check).run(sockets=[bound])


class _Server(uvicorn.Server):
    """A server that ends by itself after a signal; uvicorn's would let the signal end it."""

    def __init__(
        self, config: uvicorn.Config, started: Callable[[], None], check: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._when_started = started
        self._check = check

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._when_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Handlers that only set a flag: nothing is raised into whatever runs.
        before = {number: signal.signal(number, self.handle_exit) for number in HANDLED_SIGNALS}
        try:
            self._check()
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _protocol(limits: Limits) -> type[asyncio.Protocol]:
    """uvicorn's protocol, with a limit to how long the head of a request may take to come."""
    base: Any = AutoHTTPProtocol

    class Protocol(base):  # type: ignore[misc]
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._timer = self.loop.call_later(limits.timeout, self._give_up)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self._waits_for_head():
                self._forget_timer()
            elif self._timer is None:
                self._timer = self.loop.call_later(limits.timeout, self._give_up)

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget_timer()
            super().connection_lost(exc)

        def _waits_for_head(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _forget_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _give_up(self) -> None:
            self._timer = None
            if self._waits_for_head() and not self.transport.is_closing():
                self.transport.write(_raw(Refusal(408, "the request did not come in time")))
                self.transport.close()

    return Protocol


def _raw(refusal: Refusal) -> bytes:
    """The refusal as a whole answer of HTTP/1.1."""
    response = refusal.response()
    headers = [*response.raw_headers, *((k.encode(), v.encode()) for k, v in CLOSE.items())]
    head = b"".join(b"%s: %s\r\n" % header for header in headers)
    return b"HTTP/1.1 %d Request Timeout\r\n%s\r\n%s" % (refusal.status, head, response.body)
