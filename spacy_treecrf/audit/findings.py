"""What an audit finds, as plain data: judged spans, and findings in the order of their rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.labels.biluo import TokenSpan

# What may be wrong with an annotation, and how tables call it.
TYPE, BOUNDARY, MISSING, SPURIOUS, LABEL, INCONSISTENT = KINDS = (
    "type",
    "boundary",
    "missing",
    "spurious",
    "label",
    "inconsistent",
)


@dataclass(frozen=True)
class JudgedSpan:
    """An annotated span, or the label of a position, and its probability under unseen models."""

    sequence: int
    start: int
    end: int
    label: str
    probability: float  # of exactly this span: its boundaries and its label


@dataclass(frozen=True)
class Finding:
    """A place where the annotation is probably wrong, and what is suggested instead.

    sequence: The number of the sequence, from 0. start, end: The tokens that the finding is about.
    annotated, suggested: Spans within them, as (first token, past the last one, label); where
        labels are no spans, the label of one position.
    probability, suggested_probability: That these tokens are labelled as they are annotated, and
        as suggested.
    score: What findings are ranked by; see `ranking`.
    elsewhere: How the same phrase is annotated in other places: labels and counts, the most
        frequent first; the label "O" counts those where it is no span.
    inconsistent: Whether most of these agree with the suggestion, and few with the annotation.
    """

    sequence: int
    start: int
    end: int
    kind: str
    annotated: tuple[TokenSpan, ...]
    suggested: tuple[TokenSpan, ...]
    probability: float
    suggested_probability: float
    score: float
    elsewhere: tuple[tuple[str, int], ...] = ()
    inconsistent: bool = False


@dataclass(frozen=True)
class Audit:
    """All that an audit says about a corpus.

    findings: The most probable errors first. judged: Every annotated span, or position where labels
        are no spans, in the order of the corpus.
    label_probabilities: P(annotated label) of every position under models that have not seen it;
        NaN where nothing is annotated. offsets: Sequence s is positions offsets[s]:offsets[s+1].
    """

    findings: list[Finding]
    judged: list[JudgedSpan]
    label_probabilities: npt.NDArray[np.float64]
    offsets: npt.NDArray[np.int64]
    spans: bool

    def summary(self) -> dict[str, Any]:
        """Counts, for people and programs."""
        kinds = {kind: sum(one.kind == kind for one in self.findings) for kind in KINDS}
        return {
            "sequences": len(self.offsets) - 1,
            "tokens": int(self.offsets[-1]),
            "judged": len(self.judged),
            "findings": len(self.findings),
            "kinds": {kind: n for kind, n in kinds.items() if n},
        }
