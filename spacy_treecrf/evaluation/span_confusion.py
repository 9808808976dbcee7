"""Which types are taken for which, and where the boundaries of spans are missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spacy_treecrf.evaluation.judging import Judged
from spacy_treecrf.labels.biluo import TokenSpan

NOTHING = "(none)"
RIGHT = "right"
TYPE = "right boundaries, wrong type"
BOUNDARIES = "right type, wrong boundaries"
BOTH = "overlaps, wrong type and boundaries"
MISSED = "missed"
SPURIOUS = "where there is nothing"
KINDS = (RIGHT, TYPE, BOUNDARIES, BOTH, MISSED, SPURIOUS)


@dataclass
class SpanConfusion:
    """Spans of the gold annotation and predicted ones in pairs, and what the pairs are."""

    types: Counter[tuple[str, str]] = field(default_factory=Counter)  # (gold, predicted)
    kinds: Counter[str] = field(default_factory=Counter)  # of KINDS
    # Of pairs that overlap: by how many tokens a predicted span begins too late and ends too late
    shifts: Counter[tuple[int, int]] = field(default_factory=Counter)

    @property
    def names(self) -> list[str]:
        """All types in sorted order, and NOTHING."""
        found = {name for pair in self.types for name in pair} - {NOTHING}
        return [*sorted(found), NOTHING]

    def table(self, names: Sequence[str]) -> list[list[int]]:
        """Counts of types: rows are gold, columns predicted."""
        return [[self.types[gold, predicted] for predicted in names] for gold in names]


def span_confusion(judged: Judged) -> SpanConfusion:
    found = SpanConfusion()
    for spans in judged.spans():
        for pair in matched(*spans):
            _add(found, *pair)
    return found


def matched(
    gold: Iterable[TokenSpan], predicted: Iterable[TokenSpan]
) -> list[tuple[TokenSpan | None, TokenSpan | None]]:
    """Each span with at most one of the other side: the pairs that agree most come first.

    First those that are equal, then those with equal boundaries, then by their common tokens.
    """
    left, right = list(gold), list(predicted)
    ranked = sorted(
        (_disagreement(a, b), i, j)
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if min(a[1], b[1]) > max(a[0], b[0])
    )
    pair_of: dict[int, int] = {}
    used: set[int] = set()
    for _, i, j in ranked:
        if i not in pair_of and j not in used:
            pair_of[i] = j
            used.add(j)
    pairs: list[tuple[TokenSpan | None, TokenSpan | None]] = [
        (span, right[pair_of[i]] if i in pair_of else None) for i, span in enumerate(left)
    ]
    return pairs + [(None, span) for j, span in enumerate(right) if j not in used]


def _disagreement(a: TokenSpan, b: TokenSpan) -> tuple[int, int, int]:
    common = min(a[1], b[1]) - max(a[0], b[0])
    other_type = int(a[2] != b[2])
    if a[:2] == b[:2]:
        return 0, other_type, 0
    return 1, -common, other_type


def _add(found: SpanConfusion, gold: TokenSpan | None, predicted: TokenSpan | None) -> None:
    names = tuple(NOTHING if span is None else span[2] or "(no type)" for span in (gold, predicted))
    found.types[names[0], names[1]] += 1
    if gold is None or predicted is None:
        found.kinds[SPURIOUS if gold is None else MISSED] += 1
        return
    same_type, same_place = gold[2] == predicted[2], gold[:2] == predicted[:2]
    kind = {(True, True): RIGHT, (False, True): TYPE, (True, False): BOUNDARIES}
    found.kinds[kind.get((same_type, same_place), BOTH)] += 1
    found.shifts[predicted[0] - gold[0], predicted[1] - gold[1]] += 1
