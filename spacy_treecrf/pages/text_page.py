"""The page of explained texts: entities or tags in the text, and a panel for the chosen token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spacy_treecrf.pages.document import document, in_frame
from spacy_treecrf.pages.markup import tag
from spacy_treecrf.pages.packing import packed

SCRIPTS = ("packing.js", "panel.js", "text_page.js")
MOST_CONTRIBUTIONS = 16  # of a token; the others are summed up
MOST_EFFECTS = 8
MOST_LABELS = 8
HELP = (
    "Choose a token or the name of an entity by mouse, or by Tab, the arrows and Enter; Escape "
    "closes the panel. The stronger the colour, the more probable the entity; tokens with a dotted "
    "line are less than 90 % sure."
)


def text_page(sequences: Iterable[dict[str, Any]], *, title: str, about: str = "") -> str:
    """A page that shows explained sequences.

    sequences: What `SequenceExplanation.to_dict` gives.
    about: A sentence below the title, such as which model it was.
    """
    shown = [shortened(sequence) for sequence in sequences]
    spans = any(sequence["spans"] for sequence in shown)
    names = (
        {span["label"] for own in shown for span in own["spans"]}
        if spans
        else {str(label) for own in shown for label in own["labels"]}
    )
    data = packed({"sequences": shown, "types": sorted(names), "spans": spans})
    head = tag("header", tag("h1", title), tag("p", about, class_="lead"), class_="top")
    note = tag("noscript", tag("p", "The texts are shown by a script, which is switched off."))
    main = tag("main", tag("p", HELP, class_="lead"), note, tag("div", id="texts"))
    return document(title, tag("div", head, main), data=data, scripts=SCRIPTS)


def in_notebook(sequences: Iterable[dict[str, Any]], title: str = "Explanation") -> str:
    """The same page as a frame in a notebook."""
    return in_frame(text_page(sequences, title=title), title, height=620)


def token_alone(token: dict[str, Any]) -> dict[str, Any]:
    """A sequence of one explained token. token: What `TokenExplanation.to_dict` gives."""
    label = token["label"]
    chance = {one["label"]: one["probability"] for one in token["probabilities"]}[label]
    return {
        "texts": [token["text"] or f"position {token['position'] + 1}"],
        "whitespace": [],
        "labels": [label],
        "probabilities": [chance],
        "spans": [],
        "alternatives": [],
        "tokens": [{**token, "position": 0}],
    }


def shortened(sequence: dict[str, Any]) -> dict[str, Any]:
    """A sequence with only as much of each explanation as the panel shows."""
    texts = sequence["texts"] or [str(i + 1) for i in range(len(sequence["labels"]))]
    return {**sequence, "texts": texts, "tokens": [shortened_token(t) for t in sequence["tokens"]]}


def shortened_token(token: dict[str, Any]) -> dict[str, Any]:
    """An explanation of a token with only what the panel shows; the rest is summed up."""
    # The largest of either sign: the panel shows those for and those against.
    ordered = sorted(token["contributions"], key=lambda one: -abs(one["value"]))
    positive = [one for one in ordered if one["value"] > 0][: MOST_CONTRIBUTIONS // 2]
    negative = [one for one in ordered if one["value"] < 0][: MOST_CONTRIBUTIONS // 2]
    kept = {id(one) for one in (*positive, *negative)}
    rest = [one["value"] for one in ordered if id(one) not in kept]
    keys = ("feature", "source", "value")
    return {
        **{key: value for key, value in token.items() if key not in ("interactions", "predicted")},
        "contributions": [{key: one[key] for key in keys} for one in ordered if id(one) in kept],
        "rest": {"count": len(rest), "value": sum(rest)} if rest else None,
        "probabilities": token["probabilities"][:MOST_LABELS],
        "effects": [
            {key: one[key] for key in ("feature", "replaced_by", "before", "after", "best")}
            for one in token["effects"][:MOST_EFFECTS]
        ],
    }
