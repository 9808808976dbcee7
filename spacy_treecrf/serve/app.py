"""The application: routes, errors and guards put together."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from spacy_treecrf.serve import routes
from spacy_treecrf.serve.asking import Annotator
from spacy_treecrf.serve.guards import Guards
from spacy_treecrf.serve.limits import Limits
from spacy_treecrf.serve.live_page import show_page
from spacy_treecrf.serve.metrics import Metrics
from spacy_treecrf.serve.openapi import show_description
from spacy_treecrf.serve.refusals import Refusal
from spacy_treecrf.serve.state import running

GET, POST = ("GET", "HEAD"), ("POST",)
CLIENT_CLOSED = 499  # for the metrics: nobody is there to read the answer

logger = logging.getLogger("uvicorn.error")


@dataclass(frozen=True)
class Route:
    """A path, the methods it takes, and what answers it."""

    path: str
    methods: tuple[str, ...]
    answer: Callable[[Request], Awaitable[Response]]


ROUTES = [
    Route("/", GET, show_page),
    Route("/annotate", POST, routes.annotate),
    Route("/annotate/stream", POST, routes.annotate_stream),
    Route("/explain", POST, routes.explain),
    Route("/health", GET, routes.health),
    Route("/metrics", GET, routes.metrics),
    Route("/openapi.json", GET, show_description),
]
_BY_PATH = {route.path: route for route in ROUTES}


def make_app(annotator: Annotator, limits: Limits, hosts: Collection[str] | None = None) -> ASGIApp:
    """The application that serves this pipeline. hosts: As in Guards."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[dict[str, Any]]:
        async with running(annotator, limits, metrics) as service:
            yield {"service": service}

    return Guards(_Routes(Router(lifespan=lifespan)), metrics, hosts, _BY_PATH)


class _Routes:
    """An ASGI application that answers by path, and errors in their one form.

    Starlette's own application would take as long for a request as all the rest that is done for
    it beside the annotation: patterns of paths, layers for errors, and a wrapper for each route.
    """

    def __init__(self, lifespan: Router) -> None:
        self._lifespan = lifespan

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._lifespan(scope, receive, send)
            return
        response = await _answer(scope["path"], Request(scope, receive))
        await response(scope, receive, send)


async def _answer(path: str, request: Request) -> Response:
    try:
        return await _route(path, request.method).answer(request)
    except Refusal as refusal:
        return refusal.response()
    except ClientDisconnect:
        return Response(status_code=CLIENT_CLOSED)
    except Exception:
        logger.exception("treecrf: a request could not be answered")
        return Refusal(500, "the server made a mistake, which its log tells").response()


def _route(path: str, method: str) -> Route:
    route = _BY_PATH.get(path)
    if route is None:
        raise Refusal(404, f"there is no {path}; /openapi.json lists what there is")
    if method not in route.methods:
        allowed = {"Allow": ", ".join(route.methods)}
        raise Refusal(405, f"{path} does not take {method}", headers=allowed)
    return route
