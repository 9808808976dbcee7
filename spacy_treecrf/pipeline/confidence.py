"""Probabilities on docs: token._.treecrf_prob and span._.treecrf_prob."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc, Span, Token

NAME = "treecrf_prob"


def register_extensions() -> None:
    """Called when a pipe that sets them is made."""
    if not Token.has_extension(NAME):
        Token.set_extension(NAME, getter=_of_token)
    if not Span.has_extension(NAME):
        Span.set_extension(NAME, default=None)


def set_token_probabilities(doc: Doc, probabilities: npt.NDArray[np.float64]) -> None:
    # One array for a doc: an extension value for each token would cost more than the prediction.
    doc.user_data[NAME] = probabilities.astype(np.float32)


def set_span_probabilities(spans: Sequence[Span], probabilities: Sequence[float]) -> None:
    for span, probability in zip(spans, probabilities, strict=True):
        span._.set(NAME, float(probability))


def _of_token(token: Token) -> float | None:
    """P(the label that was predicted for the token); None if a doc has no (or others') values."""
    values = token.doc.user_data.get(NAME)
    if values is None or len(values) != len(token.doc):  # e.g. after tokens were merged
        return None
    return float(values[token.i])
