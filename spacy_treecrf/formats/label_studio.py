"""Label Studio's JSON: tasks with their data, annotations of people and predictions with scores.

Offsets are those of a browser, in units of UTF-16. A region also has its text, so that files whose
offsets are code points are told from others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy_treecrf.formats.annotated_text import (
    MORE_ANNOTATIONS,
    OTHER_RESULTS,
    AnnotatedText,
    LabelledSpan,
    Tally,
)
from spacy_treecrf.formats.checking import Field, json_file
from spacy_treecrf.formats.offsets import (
    COUNTINGS,
    UTF_16,
    from_code_points,
    to_code_points,
)

FROM_NAME, TO_NAME = "label", "text"  # names of the tags in the usual labelling config
SPANS = "labels"
OF_AN_ANNOTATION = ("annotation_id", "annotator")  # fields of JSON-MIN
MODEL_VERSION = "spacy-treecrf"


def read_label_studio(
    path: Path, tally: Tally, counting: str | None = None
) -> Iterator[AnnotatedText]:
    """The first annotation of each task that was not cancelled, or else its best prediction.

    counting: How offsets are counted; None: in units of UTF-16, unless the texts of the regions
    say otherwise.
    """
    value = json_file(path)
    tasks = value.elements() if isinstance(value.value, list) else [value]
    for task in tasks:
        task.table()
        if task.has("data"):
            yield _task(task, tally, counting)
        else:  # the export that is called JSON-MIN
            text = task.part("text").text()
            regions = [region.table() for region in task.items(FROM_NAME)]
            spans = _spans(regions, text, counting)
            # An annotation without spans has no field for them.
            predicted = not any(map(task.has, (FROM_NAME, *OF_AN_ANNOTATION)))
            yield AnnotatedText(text, spans, predicted=predicted, name=_name(task))


def _task(task: Field, tally: Tally, counting: str | None) -> AnnotatedText:
    text = _text(task.part("data").table())
    annotations = [each.table() for each in task.items("annotations")]
    done = [each for each in annotations if each.value.get("was_cancelled") is not True]
    predictions = [each.table() for each in task.items("predictions")]
    tally.left_out[MORE_ANNOTATIONS] += max(0, len(done) - 1)
    name = _name(task)
    if done:
        return AnnotatedText(text, _results(done[0], text, tally, counting), name=name)
    if not predictions:
        return AnnotatedText(text, predicted=True, name=name)
    best = max(predictions, key=lambda p: p.part("score").number() if p.has("score") else 0.0)
    return AnnotatedText(text, _results(best, text, tally, counting), predicted=True, name=name)


def _name(task: Field) -> str:
    return str(task.value["id"]) if isinstance(task.value.get("id"), int) else ""


def _text(data: Field) -> str:
    if data.has(TO_NAME):
        return data.part(TO_NAME).text()
    texts = [name for name, value in data.value.items() if isinstance(value, str)]
    if len(texts) != 1:
        raise data.wrong(f"the field {TO_NAME!r}, or one text alone")
    return data.part(texts[0]).text()


def _results(
    annotation: Field, text: str, tally: Tally, counting: str | None
) -> tuple[LabelledSpan, ...]:
    results = [each.table() for each in annotation.items("result")]
    regions = [each for each in results if each.value.get("type") == SPANS]
    tally.left_out[OTHER_RESULTS] += len(results) - len(regions)
    values = []
    for region in regions:
        value = region.part("value").table()
        if region.has("score"):
            value = Field({**value.value, "score": region.value["score"]}, value.where)
        values.append(value)
    return _spans(values, text, counting)


def _spans(regions: list[Field], text: str, counting: str | None) -> tuple[LabelledSpan, ...]:
    spans: list[LabelledSpan] = []
    for region in regions:
        start, end = _offsets(region, text, counting)
        score = region.part("score").number() if region.has("score") else None
        spans += [LabelledSpan(start, end, each.label(), score) for each in region.items(SPANS)]
    return tuple(spans)


def _offsets(region: Field, text: str, counting: str | None) -> tuple[int, int]:
    """First and past-the-last code point of a region."""
    given = region.part("start").integer(), region.part("end").integer()
    marked = region.part("text").text() if region.has("text") else None
    for way in (counting,) if counting else reversed(COUNTINGS):
        place = to_code_points(text, way)
        start, end = place(given[0]), place(given[1])
        if start is None or end is None or start >= end:
            continue
        if marked is None or text[start:end] == marked:
            return start, end
    if marked is None:
        raise region.wrong("a start before its end, both within the text", f"{given}")
    raise region.wrong(f"the place of {marked[:60]!r}", f"{given}")


def write_label_studio(
    texts: Iterable[AnnotatedText], counting: str | None = None
) -> Iterator[bytes]:
    """A list of tasks; what is predicted becomes a prediction, whose score is its smallest."""
    separator = "[\n"
    for each in texts:
        task = _written(each, counting or UTF_16)
        yield (separator + json.dumps(task, ensure_ascii=False)).encode()
        separator = ",\n"
    yield b"[]\n" if separator == "[\n" else b"\n]\n"


def _written(each: AnnotatedText, counting: str) -> dict[str, Any]:
    place = from_code_points(each.text, counting)
    result = []
    for i, span in enumerate(each.spans):
        region: dict[str, Any] = {
            "id": f"span-{i}",
            "from_name": FROM_NAME,
            "to_name": TO_NAME,
            "type": SPANS,
            "value": {
                "start": place(span.start),
                "end": place(span.end),
                "text": each.text[span.start : span.end],
                SPANS: [span.label],
            },
        }
        if span.score is not None:
            region["score"] = span.score
        result.append(region)
    task: dict[str, Any] = {"data": {TO_NAME: each.text}}
    if not each.predicted:
        return {**task, "annotations": [{"result": result}]}
    prediction: dict[str, Any] = {"model_version": MODEL_VERSION, "result": result}
    scores = [span.score for span in each.spans if span.score is not None]
    if scores:
        prediction["score"] = min(scores)
    return {**task, "predictions": [prediction]}
