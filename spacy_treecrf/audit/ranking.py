"""What findings are ranked by.

score = log(P(suggested) / (1 - P(suggested))) - log P(annotated) - prior of the kind,

for the same tokens: a finding comes first where the models are sure of the suggestion, and sure
that it is not what is annotated. Of an unseen name a model may be sure that it is nothing, and
annotators rarely mark what is nothing: so suggestions to remove a span pay a price.
"""

from __future__ import annotations

import math

from spacy_treecrf.audit.findings import BOUNDARY, MISSING, SPURIOUS, TYPE
from spacy_treecrf.labels.biluo import TokenSpan

# Probabilities are not trusted below this.
FLOOR = 1e-4
SPURIOUS_PRICE = 2.0


def score_of(annotated: float, suggested: float, kind: str) -> float:
    """The score of a finding, from the probabilities of both labellings of its tokens."""
    sure = math.log((suggested + FLOOR) / (1.0 - suggested + FLOOR))
    return sure - math.log(annotated + FLOOR) - (SPURIOUS_PRICE if kind == SPURIOUS else 0.0)


def kind_of(annotated: tuple[TokenSpan, ...], suggested: tuple[TokenSpan, ...]) -> str:
    """What is wrong with annotated spans if the suggested ones are right."""
    if not annotated:
        return MISSING
    if not suggested:
        return SPURIOUS
    same_tokens = [span[:2] for span in annotated] == [span[:2] for span in suggested]
    return TYPE if same_tokens else BOUNDARY
