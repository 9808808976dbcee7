"""Prodigy's JSON lines: text, tokens, spans with their first and last tokens, and the answer.

Offsets are code points; the last token of a span belongs to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy_treecrf.formats.annotated_text import (
    NOT_ACCEPTED,
    AnnotatedText,
    LabelledSpan,
    Tally,
)
from spacy_treecrf.formats.checking import Field, json_lines

ACCEPT = "accept"
ANSWERS = (ACCEPT, "reject", "ignore")


def read_prodigy(path: Path, tally: Tally) -> Iterator[AnnotatedText]:
    """The texts that were accepted, or have no answer: these are still to be annotated."""
    for task in json_lines(path):
        text = task.part("text").text()
        answer = task.value.get("answer")
        if answer is not None and answer not in ANSWERS:
            raise task.part("answer").wrong(f"one of {', '.join(ANSWERS)}")
        if answer not in (None, ACCEPT):
            tally.left_out[NOT_ACCEPTED] += 1
            continue
        yield AnnotatedText(
            text,
            tuple(_span(each.table(), text) for each in task.items("spans")),
            _tokens(task, text),
            predicted=answer is None,
        )


def _span(span: Field, text: str) -> LabelledSpan:
    start, end = span.part("start").integer(), span.part("end").integer()
    if not 0 <= start < end <= len(text):
        raise span.wrong(f"0 <= start < end <= {len(text)}", f"{start} and {end}")
    score = span.part("score").number() if span.has("score") else None
    return LabelledSpan(start, end, span.part("label").label(), score)


def _tokens(task: Field, text: str) -> tuple[tuple[int, int], ...] | None:
    tokens: list[tuple[int, int]] = []
    for each in task.items("tokens"):
        token = each.table()
        start, end = token.part("start").integer(), token.part("end").integer()
        if not (tokens[-1][1] if tokens else 0) <= start < end <= len(text):
            raise token.wrong("tokens in their order, within the text", f"{start} and {end}")
        if token.has("text") and token.part("text").text() != text[start:end]:
            raise token.part("text").wrong(repr(text[start:end]))
        tokens.append((start, end))
    return tuple(tokens) if tokens else None


def write_prodigy(texts: Iterable[AnnotatedText]) -> Iterator[bytes]:
    """A line for each text; what is predicted has no answer yet."""
    for each in texts:
        task: dict[str, Any] = {"text": each.text}
        if each.tokens is not None:
            task["tokens"] = [
                {
                    "text": each.text[start:end],
                    "start": start,
                    "end": end,
                    "id": i,
                    "ws": each.text[end : end + 1] == " ",
                }
                for i, (start, end) in enumerate(each.tokens)
            ]
        task["spans"] = [_written_span(span, each.tokens or ()) for span in each.spans]
        if not each.predicted:
            task["answer"] = ACCEPT
        yield (json.dumps(task, ensure_ascii=False) + "\n").encode()


def _written_span(span: LabelledSpan, tokens: tuple[tuple[int, int], ...]) -> dict[str, Any]:
    written: dict[str, Any] = {"start": span.start, "end": span.end}
    inside = [i for i, (start, end) in enumerate(tokens) if span.start <= start < end <= span.end]
    if inside and (tokens[inside[0]][0], tokens[inside[-1]][1]) == (span.start, span.end):
        written |= {"token_start": inside[0], "token_end": inside[-1]}
    written["label"] = span.label
    if span.score is not None:
        written["score"] = span.score
    return written
