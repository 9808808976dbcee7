"""Precision and recall when only answers of a least probability are kept, as `min_prob` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.evaluation.observing import Observed
from spacy_treecrf.evaluation.spans import SpanScore
from spacy_treecrf.labels.schemes import conll_spans

THRESHOLDS = (*(round(0.05 * i, 2) for i in range(20)), 0.97, 0.98, 0.99, 0.995, 0.999)


@dataclass(frozen=True)
class OperatingPoint:
    """The score of the answers that have at least this probability."""

    min_prob: float
    score: SpanScore


@dataclass(frozen=True)
class Answers:
    """Answers that count: spans, or labels of tokens."""

    probabilities: npt.NDArray[np.float64]  # nan is below every threshold but 0
    right: npt.NDArray[np.bool_]
    gold: int  # how many right answers there could be


def span_answers(observed: Observed) -> Answers:
    """The predicted spans that `sequence_spans` counts: those where the data are annotated."""
    judged = observed.judged
    chances: list[float] = []
    right: list[bool] = []
    n_gold = 0
    for spans, predicted, own in zip(
        judged.spans(), judged.predicted, observed.span_probabilities, strict=True
    ):
        wanted, found = map(set, spans)
        n_gold += len(wanted)
        for span, p in zip(conll_spans(predicted), own.tolist(), strict=True):
            if span in found:
                chances.append(p)
                right.append(span in wanted)
    return Answers(np.array(chances, np.float64), np.array(right, np.bool_), n_gold)


def token_answers(observed: Observed) -> Answers:
    """The labels of annotated tokens."""
    judged = observed.judged
    pairs = [
        (p, a == b)
        for gold, predicted, own in zip(
            judged.gold, judged.predicted, judged.probabilities, strict=True
        )
        for a, b, p in zip(gold, predicted, own.tolist(), strict=True)
        if a is not None
    ]
    chances = np.array([p for p, _ in pairs], np.float64)
    return Answers(chances, np.array([right for _, right in pairs], np.bool_), len(pairs))


def operating_points(
    answers: Answers, thresholds: Sequence[float] = THRESHOLDS
) -> list[OperatingPoint]:
    """The scores over thresholds."""
    p = np.nan_to_num(answers.probabilities, nan=0.0)
    found = []
    for threshold in thresholds:
        kept = p >= threshold
        score = SpanScore(int(answers.right[kept].sum()), int(kept.sum()), answers.gold)
        found.append(OperatingPoint(threshold, score))
    return found
