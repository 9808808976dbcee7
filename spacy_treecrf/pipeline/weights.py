"""The extensions doc._.treecrf_weight, span._.treecrf_weight and token._.treecrf_weight."""

from __future__ import annotations

from spacy.tokens import Doc, Span, Token

NAME = "treecrf_weight"


def register_weights() -> None:
    """Register the extensions; called when a pipe is made."""
    for kind in (Doc, Span, Token):
        if not kind.has_extension(NAME):
            kind.set_extension(NAME, default=None)
