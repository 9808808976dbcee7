"""The page on which a person accepts or rejects findings by keyboard, and saves the decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spacy_treecrf.pages.document import document
from spacy_treecrf.pages.markup import tag
from spacy_treecrf.pages.packing import packed

SCRIPTS = ("packing.js", "review.js")
HELP = (
    "Keys: A accepts the suggestion, R rejects it, U takes a decision back; J or the arrow down "
    "goes to the next finding, K or the arrow up to the one before; S saves the decisions as a "
    "file. Decisions stay in this browser as well."
)
DECISIONS_FILE = "decisions.jsonl"


def review_page(
    entries: Sequence[dict[str, Any]], *, title: str, about: str = "", name: str = DECISIONS_FILE
) -> str:
    """A page that shows findings, the most probable errors first.

    entries: Findings as plain data: the lines of the file that holds them. name: What the file of
        decisions is called; each of its lines is an entry with a field `decision`.
    """
    labels = sorted({span["label"] for one in entries for side in _SIDES for span in one[side]})
    head = tag("header", tag("h1", title), tag("p", about, class_="lead"), class_="top")
    note = tag("noscript", tag("p", "Findings are shown by a script, which is switched off."))
    bar = tag(
        "p",
        tag("span", id="progress", role="status"),
        tag("button", "Save decisions (S)", id="save", type="button"),
        class_="reviewbar",
    )
    main = tag("main", tag("p", HELP, class_="lead"), note, bar, tag("div", id="findings"))
    data = packed({"entries": list(entries), "types": labels, "file": name})
    return document(title, tag("div", head, main), data=data, scripts=SCRIPTS)


_SIDES = ("annotated", "suggested")
