"""Weights of labels in column files: "B-PER:0.7|O:0.3" is a distribution, "B-PER:0.5" a weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from spacy_treecrf.columnar.files import ColumnFile


def with_weights(labels: Sequence[Sequence[str | None]], file: ColumnFile) -> list[list[Any]]:
    """The labels of a file with their weights, as `BoostedCRF.fit` takes them."""
    known: dict[str | None, Any] = {None: None}
    found: list[list[Any]] = []
    for s, own in enumerate(labels):
        for t, text in enumerate(own):
            if text is not None and text not in known:
                known[text] = parse_weights(text, file.place(s, t))
        found.append([known[text] for text in own])
    return found


def parse_weights(text: str, place: str) -> str | tuple[str, float] | dict[str, float]:
    """A label, a label with its weight, or labels with their weights."""
    parts = [_label_and_weight(part, place) for part in text.split("|")]
    if len(parts) == 1:
        label, weight = parts[0]
        return label if weight is None else (label, weight)
    weights: dict[str, float] = {}
    for label, weight in parts:
        if weight is None or label in weights:
            raise ValueError(
                f"treecrf: {place}: expected labels with weights as in B-PER:0.7|O:0.3, each once, "
                f"found {text!r}; write them so, or leave --soft out if | is part of a label"
            )
        weights[label] = weight
    return weights


def _label_and_weight(part: str, place: str) -> tuple[str, float | None]:
    label, colon, digits = part.rpartition(":")
    if not colon:
        return part, None
    try:
        weight = float(digits)
    except ValueError:
        weight = math.nan
    if not label or not 0.0 <= weight < math.inf:
        raise ValueError(
            f"treecrf: {place}: expected a label with its weight, as in B-PER:0.7, found {part!r}; "
            "write it so, or leave --soft out if : is part of a label"
        )
    return label, weight
