"""Spans in labels of any common scheme (IOB1, BIO, BIOES, BILUO), read as conlleval reads them.

The rules are those of conlleval.pl (Tjong Kim Sang & Buchholz 2000): a span begins at B, S and
wherever the type changes, and ends at E, S and before whatever does not go on with it. L and U of
BILUO are E and S.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spacy_treecrf.evaluation.labels import Label, LabelSequence, check_aligned

OUTSIDE = "O"
Span = tuple[int, int, str]  # first position, past the last position, type

_LETTERS = {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S"}
# Labels without types, as for the noun phrases of a text; other letters may be anything.
_UNTYPED = frozenset("BIESLU")


def split_label(label: Label) -> tuple[str, str]:
    """A label as a letter out of B, I, E, S, O and a type; None counts as outside."""
    if label is None:
        return OUTSIDE, ""
    letter, dash, name = label.partition("-")
    if letter in _LETTERS and (name or not dash):
        return _LETTERS[letter], name
    return OUTSIDE, ""


def are_span_labels(labels: Iterable[Label]) -> bool:
    """Whether all of these labels belong to spans: O, and B-X, I-X, ... or B and I alone.

    One label of another kind, e.g. a part of speech, says that these are no spans.
    """
    found = {label for label in labels if label not in (None, OUTSIDE)}
    if not found:
        return False
    typed = [label is not None and "-" in label for label in found]
    if any(typed):
        return all(typed) and all(split_label(label)[0] != OUTSIDE for label in found)
    return "B" in found and found <= _UNTYPED


def spans_of(labels: LabelSequence) -> list[Span]:
    """The spans of one sequence, in order."""
    spans: list[Span] = []
    start = 0
    before, before_type = OUTSIDE, ""
    for i, label in enumerate([*labels, OUTSIDE]):
        letter, name = split_label(label)
        goes_on = before in ("B", "I") and letter in ("I", "E") and name == before_type
        if before != OUTSIDE and not goes_on:
            spans.append((start, i, before_type))
        if letter != OUTSIDE and not goes_on:
            start = i
        before, before_type = letter, name
    return spans


def to_bio(labels: LabelSequence) -> list[Label]:
    """The same spans in BIO, and None where it was, so that schemes can be compared."""
    bio: list[Label] = [None if label is None else OUTSIDE for label in labels]
    for start, end, name in spans_of(labels):
        suffix = f"-{name}" if name else ""
        bio[start:end] = [f"B{suffix}", *[f"I{suffix}"] * (end - start - 1)]
    return bio


@dataclass(frozen=True)
class SpanScore:
    """Counts of spans: in both, in the prediction, in the gold annotation."""

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


def sequence_spans(gold: LabelSequence, predicted: LabelSequence) -> tuple[list[Span], list[Span]]:
    """Gold and predicted spans of one sequence, the latter without those on unannotated parts."""
    found = spans_of(predicted)
    if None in gold:
        found = [span for span in found if None not in gold[span[0] : span[1]]]
    return spans_of(gold), found


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
    """All types together (micro average), as conlleval's first line."""
    values = scores.values()
    return SpanScore(
        sum(score.right for score in values),
        sum(score.predicted for score in values),
        sum(score.gold for score in values),
    )
