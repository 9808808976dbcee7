"""Findings as people and programs pass them on: JSON lines, and decisions about them.

A line tells the place in the corpus, so that a decision can be applied to it, and what stood
there, so that it is not applied to anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spacy_treecrf.audit.findings import Finding
from spacy_treecrf.formats.checking import Field, json_lines
from spacy_treecrf.labels.biluo import TokenSpan

ACCEPT, REJECT = DECISIONS = ("accept", "reject")
SIGNIFICANT = 4  # digits of probabilities


@dataclass(frozen=True)
class Layer:
    """What of a corpus is audited, and so what corrections change: of docs or of a column file.

    task: The short name of a task of docs. config: The config that it was taken from, if it was.
    label_column: The column of the label, from 1. unlabelled: The label of tokens without one.
    """

    task: str | None = None
    config: str | None = field(default=None, compare=False)
    label_column: int | None = None
    unlabelled: str | None = None

    def __str__(self) -> str:
        if self.task is not None:
            return f"the task {self.task!r}" + (f" of {self.config}" if self.config else "")
        unlabelled = f" with --unlabelled {self.unlabelled}" if self.unlabelled else ""
        return f"the label column {self.label_column}{unlabelled}"


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

    words: Those of the tokens start to end - 1. layer: What was audited. where: The line of the
        decision, for errors.
    """

    unit: int
    start: int
    end: int
    words: tuple[str, ...]
    annotated: tuple[TokenSpan, ...]
    suggested: tuple[TokenSpan, ...]
    layer: Layer
    where: str


def entry(
    rank: int, finding: Finding, place: Place, words: list[str], layer: Layer
) -> dict[str, Any]:
    """A finding as plain data. words: All words of its sequence. layer: What was audited."""
    first = place.first
    return {
        "rank": rank,
        "kind": finding.kind,
        "place": place.name,
        "layer": {name: value for name, value in asdict(layer).items() if value is not None},
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


def refuse_other_layers(corrections: Iterable[Correction], layer: Layer) -> None:
    """Refuse decisions about something else than what is to be corrected."""
    for one in corrections:
        if one.layer != layer:
            raise ValueError(
                f"treecrf: {one.where} is a decision about {one.layer}, and the corrected corpus "
                f"would change {layer}; pass the options of the audit to --apply as well"
            )


def _correction(line: Field) -> Correction:
    unit, start, end = (line.part(name).integer() for name in ("unit", "start", "end"))
    first = line.part("first").integer()
    words = [word.text() for word in line.part("words").elements()]
    if unit < 0 or not 0 <= first <= start < end <= first + len(words):
        raise line.wrong("unit, first, start and end that lie within the words", "others")
    sides = [tuple(_read_spans(line, name, start, end)) for name in ("annotated", "suggested")]
    own = tuple(words[start - first : end - first])
    return Correction(unit, start, end, own, sides[0], sides[1], _read_layer(line), line.where)


def _read_layer(line: Field) -> Layer:
    found = line.part("layer").table()
    texts = {
        name: found.part(name).text()
        for name in ("task", "config", "unlabelled")
        if found.has(name)
    }
    if found.has("task") == found.has("label_column"):
        raise found.wrong("a task of docs or the label_column of a column file")
    number = found.part("label_column").integer() if found.has("label_column") else None
    return Layer(**texts, label_column=number)


def _read_spans(line: Field, name: str, start: int, end: int) -> Iterator[TokenSpan]:
    past = start
    for each in line.part(name).elements():
        span = each.table()
        a, b = span.part("start").integer(), span.part("end").integer()
        if not past <= a < b <= end:
            raise span.wrong(f"spans in their order within {start} and {end}", f"{a} and {b}")
        past = b
        label = span.part("label")
        if any(char.isspace() and char != " " for char in label.label()):
            raise label.wrong("the name of a label without tabs and line ends")
        yield a, b, label.label()


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
