"""BILUO labels and the spans they stand for: Begin, Inside, Last, Unit of a span, and Outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

OUTSIDE = "O"
PREFIXES = ("B", "I", "L", "U")

Label = str | None  # None: not annotated
TokenSpan = tuple[int, int, str]  # first token, past the last token, name


def biluo_labels(name: str) -> tuple[str, ...]:
    """All labels that the name of a span needs: B-ORG, I-ORG, L-ORG and U-ORG for "ORG"."""
    return tuple(f"{prefix}-{name}" for prefix in PREFIXES)


def prefix_and_name(label: Label) -> tuple[str, str]:
    """The prefix and the name of a label; ("O", "") for whatever is not a prefix, "-" and a name.

    The name begins behind the first "-": it may itself hold any character.
    """
    if label is None:
        return OUTSIDE, ""
    prefix, _, name = label.partition("-")
    return (prefix, name) if name and prefix in PREFIXES else (OUTSIDE, "")


def write_span(labels: list[Any], start: int, end: int, name: str) -> None:
    """Put the labels of one span into a list of labels."""
    if end - start == 1:
        labels[start] = f"U-{name}"
        return
    labels[start] = f"B-{name}"
    labels[start + 1 : end - 1] = [f"I-{name}"] * (end - start - 2)
    labels[end - 1] = f"L-{name}"


def biluo_spans(labels: Sequence[Label]) -> list[TokenSpan]:
    """The spans of a label sequence, in order.

    No sequence is refused: without constraints a model may predict impossible ones. A span that
    nothing opens begins where it first shows, one that nothing closes ends where it last shows.
    """
    spans = []
    start, open_name = 0, ""
    for i, label in enumerate(labels):
        if label == OUTSIDE and not open_name:
            continue
        prefix, name = prefix_and_name(label)
        if open_name and not (prefix in ("I", "L") and name == open_name):
            spans.append((start, i, open_name))
            open_name = ""
        if prefix == OUTSIDE:
            continue
        if not open_name:
            start, open_name = i, name
        if prefix in ("L", "U"):
            spans.append((start, i + 1, open_name))
            open_name = ""
    if open_name:
        spans.append((start, len(labels), open_name))
    return spans


def spans_in_sequences(labels: Sequence[Label], offsets: Sequence[int]) -> list[TokenSpan]:
    """The spans of all sequences, none of them in two; positions are those in `labels`.

    offsets: sequence s is labels offsets[s]:offsets[s+1].
    """
    return [
        (first + start, first + end, name)
        for first, last in pairwise(offsets)
        for start, end, name in biluo_spans(labels[first:last])
    ]


def labels_of_spans(spans: Iterable[TokenSpan], n: int) -> list[str]:
    """The n labels that spell these spans."""
    labels = [OUTSIDE] * n
    for start, end, name in spans:
        write_span(labels, start, end, name)
    return labels


def without_cut_spans(
    labels: Sequence[Label], boundaries: Iterable[int], instead: Label
) -> list[Label]:
    """The labels, with `instead` in every span that would be cut in front of a boundary token.

    A sequence that ends inside of a span is impossible under BILUO constraints: where a document
    is cut into sentences, such a span can be learned only as "not annotated".
    """
    result = list(labels)
    cuts = set(boundaries)
    for start, end, _ in biluo_spans(labels):
        if not cuts.isdisjoint(range(start + 1, end)):
            result[start:end] = [instead] * (end - start)
    return result
