"""Findings as people and programs pass them on: JSON lines, and decisions about them.

A line tells the place in the corpus, so that a decision can be applied to it, and what stood
there, so that it is not applied to anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy_treecrf.audit.findings import Finding
from spacy_treecrf.formats.checking import Field, json_lines
from spacy_treecrf.labels.biluo import TokenSpan

ACCEPT, REJECT = DECISIONS = ("accept", "reject")
SIGNIFICANT = 4  # digits of probabilities


@dataclass(frozen=True)
class Place:
    """Where a model's sequence stands in a corpus.

    unit: The number of the sequence in a file, or of the doc, from 0. first: The position in it
        where the model's sequence begins. name: What people call the place.
    """

    unit: int
    first: int
    name: str


@dataclass(frozen=True)
class Correction:
    """An accepted suggestion: in a unit of the corpus, these spans take the place of those.

    words: Those of the tokens start to end - 1. where: The line of the decision, for errors.
    """

    unit: int
    start: int
    end: int
    words: tuple[str, ...]
    annotated: tuple[TokenSpan, ...]
    suggested: tuple[TokenSpan, ...]
    where: str


def entry(rank: int, finding: Finding, place: Place, words: list[str]) -> dict[str, Any]:
    """A finding as plain data. words: All words of its sequence."""
    first = place.first
    return {
        "rank": rank,
        "kind": finding.kind,
        "place": place.name,
        "unit": place.unit,
        "start": first + finding.start,
        "end": first + finding.end,
        "annotated": _spans(finding.annotated, first),
        "suggested": _spans(finding.suggested, first),
        "probability": _rounded(finding.probability),
        "suggested_probability": _rounded(finding.suggested_probability),
        "score": _rounded(finding.score),
        "elsewhere": dict(finding.elsewhere),
        "inconsistent": finding.inconsistent,
        "first": first,
        "words": words,
    }


def read_decisions(path: Path) -> tuple[list[Correction], int]:
    """The accepted findings of a file of decisions, and how many others it has.

    A line without a decision is a finding that nobody has decided about.
    """
    accepted: list[Correction] = []
    others = 0
    for line in json_lines(path):
        decision = line.value.get("decision")
        if decision is not None and decision not in DECISIONS:
            raise line.part("decision").wrong(f"one of {', '.join(DECISIONS)}")
        if decision == ACCEPT:
            accepted.append(_correction(line))
        else:
            others += 1
    _refuse_overlaps(accepted)
    return accepted, others


def refused(correction: Correction, found: str) -> ValueError:
    """The error about a correction of something that the corpus does not have at this place."""
    return ValueError(
        f"treecrf: {correction.where} is about {' '.join(correction.words)!r} with a certain "
        f"annotation, and the corpus has {found!r} there; apply decisions to the corpus that was "
        "audited"
    )


def _correction(line: Field) -> Correction:
    unit, start, end = (line.part(name).integer() for name in ("unit", "start", "end"))
    first = line.part("first").integer()
    words = [word.text() for word in line.part("words").elements()]
    if unit < 0 or not 0 <= first <= start < end <= first + len(words):
        raise line.wrong("unit, first, start and end that lie within the words", "others")
    sides = [tuple(_read_spans(line, name, start, end)) for name in ("annotated", "suggested")]
    own = tuple(words[start - first : end - first])
    return Correction(unit, start, end, own, sides[0], sides[1], line.where)


def _read_spans(line: Field, name: str, start: int, end: int) -> Iterator[TokenSpan]:
    past = start
    for each in line.part(name).elements():
        span = each.table()
        a, b = span.part("start").integer(), span.part("end").integer()
        if not past <= a < b <= end:
            raise span.wrong(f"spans in their order within {start} and {end}", f"{a} and {b}")
        past = b
        yield a, b, span.part("label").text()


def _refuse_overlaps(accepted: Iterable[Correction]) -> None:
    before: Correction | None = None
    for one in sorted(accepted, key=lambda each: (each.unit, each.start, each.end)):
        if before is not None and before.unit == one.unit and one.start < before.end:
            raise ValueError(
                f"treecrf: {one.where} accepts a change of tokens that {before.where} changes as "
                "well; keep one of the two"
            )
        before = one


def _spans(spans: Iterable[TokenSpan], first: int) -> list[dict[str, Any]]:
    return [{"start": first + a, "end": first + b, "label": name} for a, b, name in spans]


def _rounded(value: float) -> float:
    return float(f"{value:.{SIGNIFICANT}g}")
