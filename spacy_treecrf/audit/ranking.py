"""What findings are ranked by.

score = log(P(suggested) / (1 - P(suggested))) - log P(annotated)
        + NEARBY_WEIGHT log((a + 1/2) / (b + 1/2)) + ELSEWHERE_WEIGHT log((c + 1/2) / (d + 1/2))
        - SPURIOUS_PRICE, if a span is to be removed.

P are probabilities of the same tokens: a finding comes first where the models are sure of the
suggestion, and sure that it is not what is annotated. Of the other places where the same phrase
stands, a and c have the suggested label, b and d the annotated one; a and b are those of the same
document, which the models have not seen. Of an unseen name a model may be sure that it is nothing,
and annotators rarely mark what is nothing, hence the price.

The weights were found on CoNLL-2003's training file with spoiled spans, and not elsewhere.
"""

from __future__ import annotations

import math
from collections import Counter

from spacy_treecrf.audit.findings import BOUNDARY, MISSING, SPURIOUS, TYPE
from spacy_treecrf.labels.biluo import TokenSpan

# Probabilities are not trusted below this.
FLOOR = 1e-4
SPURIOUS_PRICE = 2.0
NEARBY_WEIGHT = 2.0
ELSEWHERE_WEIGHT = 0.5


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


def support(every: Counter[str], nearby: Counter[str], suggested: str, annotated: str) -> float:
    """What other places of the same phrase add to the score.

    every: Labels of all other places. nearby: Those of the same document, which are among them.
    """
    return NEARBY_WEIGHT * _log_ratio(nearby, suggested, annotated) + (
        ELSEWHERE_WEIGHT * _log_ratio(every - nearby, suggested, annotated)
    )


def _log_ratio(counts: Counter[str], label: str, other: str) -> float:
    return math.log((counts[label] + 0.5) / (counts[other] + 0.5))
