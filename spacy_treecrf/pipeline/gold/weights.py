"""The extensions doc._.treecrf_weight, span._.treecrf_weight and token._.treecrf_weight."""

from __future__ import annotations

from spacy.tokens import Doc, Span, Token

from spacy_treecrf.labels.doc_keys import WEIGHT


def register_weights() -> None:
    """Register the extensions; called when a pipe is made."""
    for kind in (Doc, Span, Token):
        if not kind.has_extension(WEIGHT):
            kind.set_extension(WEIGHT, default=None)
