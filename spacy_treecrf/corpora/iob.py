"""B-, I- and O labels of spans, and the older form of them that CoNLL-2003 has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spacy_treecrf.pipeline.tasks.biluo import OUTSIDE, split_label


def are_spans(labels: Iterable[str]) -> bool:
    """Whether these are labels of spans: all of them O, B-x, I-x, L-x or U-x, and not only O."""
    inside = set(labels) - {OUTSIDE}
    return bool(inside) and all(split_label(label)[1] for label in inside)


def iob1_to_bio(labels: Sequence[str]) -> list[str]:
    """In IOB1 a span begins with I-; with B- only right after another span of its kind."""
    converted = []
    before = ""
    for label in labels:
        prefix, _, name = label.partition("-")
        converted.append(f"B-{name}" if prefix == "I" and before != name else label)
        before = name
    return converted
