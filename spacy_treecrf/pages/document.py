"""A page as one file: the stylesheet, scripts and data inside, and a policy that forbids the rest.

The policy (Content-Security-Policy) allows the style and the scripts of the page by their hashes
and nothing else: no request leaves the page, and markup that slipped in from data cannot run.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib import resources
from typing import Any

from spacy_treecrf.pages.markup import Markup, tag

STYLE = "page.css"
DATA_ID = "treecrf-data"


@cache
def asset(name: str) -> str:
    """The text of a file beside this module, in the folder `assets`."""
    folder = resources.files("spacy_treecrf.pages") / "assets"
    return (folder / name).read_text(encoding="utf-8")


def policy(style: str, scripts: tuple[str, ...], asks_server: bool = False) -> str:
    """The policy of a page with this style and these scripts, which are texts.

    asks_server: Whether scripts may send requests to the server that the page came from.
    """
    allowed = " ".join(map(_hash, scripts)) or "'none'"
    requests = "connect-src 'self'; " if asks_server else ""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {allowed}; {requests}"
        "base-uri 'none'; form-action 'none'"
    )


def document(
    title: str,
    body: Markup,
    *,
    data: Any = None,
    scripts: tuple[str, ...] = (),
    asks_server: bool = False,
) -> str:
    """A whole page.

    data: What scripts find, as JSON, in the element with the id DATA_ID.
    scripts: Names of assets. asks_server: As in `policy`.
    """
    style, texts = asset(STYLE), tuple(map(asset, scripts))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag(
            "meta",
            http_equiv="Content-Security-Policy",
            content=policy(style, texts, asks_server),
        ),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    parts = [body]
    if data is not None:
        parts.append(tag("script", data_block(data), type="application/json", id=DATA_ID))
    parts += [tag("script", Markup(text)) for text in texts]
    return f"<!doctype html>\n{tag('html', head, tag('body', parts), lang='en')}\n"


def data_block(data: Any) -> Markup:
    """JSON as it may stand in a script element: no character of it can end the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def in_frame(page: str, title: str, height: int = 480) -> str:
    """A whole page as an element for a notebook; nothing of it touches the notebook's own page."""
    return (
        f'<iframe srcdoc="{escape(page, quote=True)}" title="{escape(title, quote=True)}" '
        f'sandbox="allow-scripts" width="100%" height="{height}" frameborder="0"></iframe>'
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
