"""Annotation errors: cross-fitted judgements of a corpus, ranked findings, decisions, corrections.

`audit_sequences` and `denoise_sequences` are the ways in from Python; the command line imports the
rest. It imports column files, estimators, the pipe's features and tasks, formats, pages, and what
is below them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # numba is loaded when something is judged, not before
    from spacy_treecrf.audit.auditing import audit_sequences
    from spacy_treecrf.audit.denoising import denoise_sequences
    from spacy_treecrf.audit.findings import Audit, Finding, JudgedSpan

__all__ = ["Audit", "Finding", "JudgedSpan", "audit_sequences", "denoise_sequences"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from spacy_treecrf.audit import auditing, denoising, findings

    modules = {"audit_sequences": auditing, "denoise_sequences": denoising}
    return getattr(modules.get(name, findings), name)
