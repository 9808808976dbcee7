"""Regions: the tokens of annotated and suggested spans that overlap, which are judged together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spacy_treecrf.labels.biluo import TokenSpan


@dataclass(frozen=True)
class Region:
    """Tokens start to end - 1 of a sequence, and the spans there; none crosses the ends."""

    start: int
    end: int
    annotated: tuple[TokenSpan, ...]
    suggested: tuple[TokenSpan, ...]

    def overlaps(self, start: int, end: int) -> bool:
        return start < self.end and self.start < end


def differing_regions(
    annotated: Sequence[TokenSpan], suggested: Sequence[TokenSpan]
) -> list[Region]:
    """The regions where annotated and suggested spans differ, from left to right.

    Spans of either list do not overlap each other; those that both lists have are in no region
    unless they touch tokens of one that differs, which cannot be.
    """
    both = set(annotated) & set(suggested)
    spans = [(*span, 0) for span in annotated if span not in both]
    spans += [(*span, 1) for span in suggested if span not in both]
    found: list[Region] = []
    open_: list[tuple[int, int, str, int]] = []
    for span in sorted(spans):
        if open_ and span[0] >= max(one[1] for one in open_):
            found.append(_region(open_))
            open_ = []
        open_.append(span)
    if open_:
        found.append(_region(open_))
    return found


def _region(spans: Sequence[tuple[int, int, str, int]]) -> Region:
    sides = [tuple((a, b, name) for a, b, name, of in spans if of == side) for side in (0, 1)]
    return Region(spans[0][0], max(span[1] for span in spans), sides[0], sides[1])
