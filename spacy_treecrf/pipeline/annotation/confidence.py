"""Probabilities on docs: the extensions token._.treecrf_prob and span._.treecrf_prob."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc, Span, Token

NAME = "treecrf_prob"
SPANS = "treecrf_prob.spans"  # key in doc.user_data
LENGTH = ""  # the key of the number of characters that the places of spans were counted in


def register_extensions() -> None:
    """Register both extensions; called when a pipe that sets them is made."""
    if not Token.has_extension(NAME):
        Token.set_extension(NAME, getter=_of_token)
    if not Span.has_extension(NAME):
        Span.set_extension(NAME, getter=_of_span)


def set_token_probabilities(doc: Doc, probabilities: npt.NDArray[np.float64]) -> None:
    # One array for a doc: an extension value for each token would cost more than the prediction.
    doc.user_data[NAME] = probabilities.astype(np.float32)


def set_span_probabilities(spans: Sequence[Span], probabilities: Sequence[float]) -> None:
    """Store the probabilities of spans by their places and labels.

    Labels tell an entity from a chunk of the same words.
    """
    if spans:
        doc = spans[0].doc
        known: dict[str, float] = doc.user_data.setdefault(SPANS, {})
        known[LENGTH] = _length(doc)
        keys = (_key(span.start_char, span.end_char, span.label_) for span in spans)
        known.update(zip(keys, map(float, probabilities), strict=True))


def token_probabilities(doc: Doc) -> npt.NDArray[np.float32] | None:
    """P(the label predicted for each token); None if the doc has no values for its tokens."""
    values: npt.NDArray[np.float32] | None = doc.user_data.get(NAME)
    if values is None or len(values) != len(doc):  # e.g. after tokens were merged
        return None
    return values


def span_probability(doc: Doc, start_char: int, end_char: int, label: str) -> float | None:
    """P(exactly these characters have this label); None for a span that no pipe has predicted.

    A doc that is a part of another one, with its user data, has the places of the other one.
    """
    known: dict[str, float] = doc.user_data.get(SPANS, {})
    if LENGTH in known and known[LENGTH] != _length(doc):
        return None
    return known.get(_key(start_char, end_char, label))


def _length(doc: Doc) -> int:
    """The number of characters, without a blank at the end."""
    return doc[-1].idx + len(doc[-1]) if len(doc) else 0


def _key(start_char: int, end_char: int, label: str) -> str:
    return f"{start_char}:{end_char}:{label}"


def _of_span(span: Span) -> float | None:
    return span_probability(span.doc, span.start_char, span.end_char, span.label_)


def _of_token(token: Token) -> float | None:
    values = token_probabilities(token.doc)
    return None if values is None else float(values[token.i])
