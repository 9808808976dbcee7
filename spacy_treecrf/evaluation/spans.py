"""Precision, recall and F1 of spans, by type and of all types, as conlleval counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spacy_treecrf.evaluation.labels import LabelSequence, check_aligned
from spacy_treecrf.labels.biluo import TokenSpan, prefix_and_name
from spacy_treecrf.labels.schemes import conll_spans

GOES_ON, CAME_ON = ("B", "I"), ("I", "L")  # of BILUO: with the label behind, or before


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
    gold: LabelSequence,
    predicted: LabelSequence,
    cut: bool = False,
    unaligned: Sequence[TokenSpan] = (),
) -> tuple[list[TokenSpan], list[TokenSpan]]:
    """Gold and predicted spans of a sequence, the latter only where it is annotated.

    cut: Whether labels are BILUO and sequences were cut out of docs. A gold span that runs over an
    end then counts where it begins, and ends behind the last token there.
    unaligned: Gold spans that the tokens cannot spell, by the tokens that they touch: these are
    annotated, though they have no label. Such a span is empty here, so that no other is equal.
    """
    wanted, found = conll_spans(gold), conll_spans(predicted)
    if None in gold:
        touched = {i for start, end, _ in unaligned for i in range(start, end)}
        missing = {i for i, label in enumerate(gold) if label is None} - touched
        found = [span for span in found if missing.isdisjoint(range(*span[:2]))]
    if cut and wanted:
        start, end, name = wanted[-1]
        if end == len(gold) and prefix_and_name(gold[-1])[0] in GOES_ON:
            wanted[-1] = start, end + 1, name
        if wanted[0][0] == 0 and prefix_and_name(gold[0])[0] in CAME_ON:
            del wanted[0]
    return wanted + [(start, start, name) for start, _, name in unaligned], found


def span_scores(
    gold: Sequence[LabelSequence], predicted: Sequence[LabelSequence], cut: bool = False
) -> dict[str, SpanScore]:
    """Scores by type, in sorted order; `total_score` sums them up. cut: See `sequence_spans`."""
    check_aligned(gold, predicted)
    return scores_of_pairs(sequence_spans(a, b, cut) for a, b in zip(gold, predicted, strict=True))


def scores_of_pairs(
    pairs: Iterable[tuple[list[TokenSpan], list[TokenSpan]]],
) -> dict[str, SpanScore]:
    """Scores by type of the gold and the predicted spans of sequences."""
    right: Counter[str] = Counter()
    of_prediction: Counter[str] = Counter()
    of_gold: Counter[str] = Counter()
    for wanted, found in pairs:
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
