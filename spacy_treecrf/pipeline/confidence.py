"""Probabilities on docs: the extensions token._.treecrf_prob and span._.treecrf_prob."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc, Span, Token

NAME = "treecrf_prob"
SPANS = "treecrf_prob.spans"  # key in doc.user_data


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
        known: dict[str, float] = spans[0].doc.user_data.setdefault(SPANS, {})
        known.update(zip(map(_key, spans), map(float, probabilities), strict=True))


def _key(span: Span) -> str:
    return f"{span.start_char}:{span.end_char}:{span.label_}"


def _of_span(span: Span) -> float | None:
    """P(exactly this span has this label); None for a span that no pipe has predicted."""
    known: dict[str, float] = span.doc.user_data.get(SPANS, {})
    return known.get(_key(span))


def _of_token(token: Token) -> float | None:
    """P(the label predicted for the token); None if the doc has no values for its tokens."""
    values = token.doc.user_data.get(NAME)
    if values is None or len(values) != len(token.doc):  # e.g. after tokens were merged
        return None
    return float(values[token.i])
