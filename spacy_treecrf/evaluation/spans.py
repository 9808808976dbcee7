"""Precision, recall and F1 of spans, by type and of all types, as conlleval counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from spacy_treecrf.evaluation.labels import LabelSequence, check_aligned
from spacy_treecrf.labels.biluo import TokenSpan
from spacy_treecrf.labels.schemes import conll_spans


@dataclass(frozen=True)
class SpanScore:
    """Counts of spans: those in both, in the prediction, and in the gold annotation."""

    right: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        both = self.predicted + self.gold
        return 2 * self.right / both if both else 0.0


def sequence_spans(
    gold: LabelSequence, predicted: LabelSequence
) -> tuple[list[TokenSpan], list[TokenSpan]]:
    """Gold and predicted spans of a sequence, the latter only where it is annotated."""
    found = conll_spans(predicted)
    if None in gold:
        found = [span for span in found if None not in gold[span[0] : span[1]]]
    return conll_spans(gold), found


def span_scores(
    gold: Sequence[LabelSequence], predicted: Sequence[LabelSequence]
) -> dict[str, SpanScore]:
    """Scores by type, in sorted order; `total_score` sums them up."""
    check_aligned(gold, predicted)
    right: Counter[str] = Counter()
    of_prediction: Counter[str] = Counter()
    of_gold: Counter[str] = Counter()
    for a, b in zip(gold, predicted, strict=True):
        wanted, found = sequence_spans(a, b)
        of_gold.update(name for _, _, name in wanted)
        of_prediction.update(name for _, _, name in found)
        right.update(name for _, _, name in set(wanted) & set(found))
    return {
        name: SpanScore(right[name], of_prediction[name], of_gold[name])
        for name in sorted({*of_gold, *of_prediction})
    }


def total_score(scores: dict[str, SpanScore]) -> SpanScore:
    """The score of all types together (micro average), as conlleval's first line has it."""
    values = scores.values()
    return SpanScore(
        sum(score.right for score in values),
        sum(score.predicted for score in values),
        sum(score.gold for score in values),
    )
