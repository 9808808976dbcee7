"""doccano's JSON lines: `label` or `labels` as lists, or `entities` as objects.

doccano counts offsets as a browser does, in units of UTF-16. Some files count code points instead.
A span does not hold its text, so a file cannot tell which of them it counts: the user says it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy_treecrf.formats.annotated_text import (
    OTHER_RESULTS,
    AnnotatedText,
    LabelledSpan,
    Tally,
)
from spacy_treecrf.formats.checking import Field, json_lines
from spacy_treecrf.formats.offsets import UTF_16, from_code_points, to_code_points

LISTS = ("label", "labels")
ENTITIES = "entities"


def read_doccano(path: Path, tally: Tally, counting: str | None = None) -> Iterator[AnnotatedText]:
    """The texts of a file; relations are left out.

    A line without any field of spans is a text that nobody has annotated.

    counting: How offsets are counted; None: in units of UTF-16.
    """
    for line in json_lines(path):
        text = line.part("text" if "text" in line.value else "data").text()
        tally.left_out[OTHER_RESULTS] += len(line.items("relations"))
        found = [_listed(each) for name in LISTS for each in line.items(name)]
        found += [_entity(each.table()) for each in line.items(ENTITIES)]
        place = to_code_points(text, counting or UTF_16)
        spans = []
        for start, end, label in found:
            first, last = place(start.integer()), place(end.integer())
            if first is None or last is None or first >= last:
                place_found = f"{start.value} and {end.value}"
                raise start.wrong("a start before its end, both within the text", place_found)
            spans.append(LabelledSpan(first, last, label.label()))
        predicted = not any(map(line.has, (*LISTS, ENTITIES)))
        name = str(line.value["id"]) if isinstance(line.value.get("id"), int) else ""
        yield AnnotatedText(text, tuple(spans), predicted=predicted, name=name)


def _listed(span: Field) -> tuple[Field, Field, Field]:
    parts = span.elements()
    if len(parts) != 3:
        raise span.wrong("[start, end, label]")
    return parts[0], parts[1], parts[2]


def _entity(span: Field) -> tuple[Field, Field, Field]:
    return span.part("start_offset"), span.part("end_offset"), span.part("label")


def write_doccano(texts: Iterable[AnnotatedText], counting: str | None = None) -> Iterator[bytes]:
    """A line for each text, with `label`, as doccano imports it.

    A text that nobody has annotated and that has no suggestions either has no `label`.
    """
    for each in texts:
        place = from_code_points(each.text, counting or UTF_16)
        line: dict[str, Any] = {"text": each.text}
        if each.spans or not each.predicted:
            line["label"] = [[place(s.start), place(s.end), s.label] for s in each.spans]
        yield (json.dumps(line, ensure_ascii=False) + "\n").encode()
