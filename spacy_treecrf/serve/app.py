"""The application: routes, errors and guards put together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import ASGIApp

from spacy_treecrf.serve import refusals, routes
from spacy_treecrf.serve.annotating import PipelineAnnotator
from spacy_treecrf.serve.guards import Guards
from spacy_treecrf.serve.limits import Limits
from spacy_treecrf.serve.live_page import show_page
from spacy_treecrf.serve.metrics import Metrics
from spacy_treecrf.serve.openapi import show_description
from spacy_treecrf.serve.refusals import Refusal
from spacy_treecrf.serve.state import running

ROUTES = [
    Route("/", show_page, methods=["GET"]),
    Route("/annotate", routes.annotate, methods=["POST"]),
    Route("/annotate/stream", routes.annotate_stream, methods=["POST"]),
    Route("/explain", routes.explain, methods=["POST"]),
    Route("/health", routes.health, methods=["GET"]),
    Route("/metrics", routes.metrics, methods=["GET"]),
    Route("/openapi.json", show_description, methods=["GET"]),
]


def make_app(
    annotator: PipelineAnnotator, limits: Limits, hosts: Collection[str] | None = None
) -> ASGIApp:
    """The application that serves this pipeline. hosts: As in Guards."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        async with running(annotator, limits, metrics) as service:
            yield {"service": service}

    app = Starlette(
        routes=ROUTES,
        lifespan=lifespan,
        exception_handlers={
            Refusal: refusals.answer_refusal,
            HTTPException: refusals.answer_http_error,
            ClientDisconnect: refusals.answer_disconnect,
            Exception: refusals.answer_mistake,
        },
    )
    app.router.redirect_slashes = False
    return Guards(app, metrics, hosts, [route.path for route in ROUTES])
