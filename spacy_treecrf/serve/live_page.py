"""The page where a person types and sees what the pipeline makes of it."""

from __future__ import annotations

import os
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from spacy_treecrf.pages.document import STYLE, asset, document, policy
from spacy_treecrf.pages.markup import join, tag
from spacy_treecrf.serve.asking import Served
from spacy_treecrf.serve.state import service_of

SCRIPTS = ("panel.js", "live.js")
HINT = "Type or paste a text"


def live_page(served: Served) -> str:
    """The page as HTML; labels of the pipeline are the only data on it."""
    typing = tag(
        "label",
        "Text",
        tag("textarea", id="text", placeholder=HINT, spellcheck="false", autofocus=True),
        class_="typing",
    )
    lead = "Labels come while you type. Choose a token, by mouse or by arrows, for the reasons."
    name = name_of(served.name)
    body = join(
        [
            tag("header", tag("h1", name), tag("p", lead, class_="lead"), class_="top"),
            tag(
                "main",
                typing,
                tag("p", id="status", class_="status", role="status"),
                tag("div", id="texts"),
                tag("noscript", tag("p", "This page needs JavaScript.")),
            ),
            tag(
                "footer",
                tag("p", "For programs: ", tag("a", "/openapi.json", href="openapi.json")),
            ),
        ]
    )
    data = {"types": served.labels, "spans": served.has_spans}
    return document(name, body, data=data, scripts=SCRIPTS, asks_server=True)


def name_of(model: str) -> str:
    """The name of a package, or the end of a path: where it lies is nobody's business."""
    return "/".join(Path(model).parts[-2:]) if os.sep in model else model


async def show_page(request: Request) -> Response:
    """The page, whose policy also stands in a header: there it forbids frames as well."""
    rules = policy(asset(STYLE), tuple(map(asset, SCRIPTS)), asks_server=True)
    headers = {
        "Content-Security-Policy": f"{rules}; frame-ancestors 'none'",
        "Cache-Control": "no-cache",
    }
    return HTMLResponse(live_page(service_of(request).served), headers=headers)
