"""B-, I- and O labels of spans, and the older form of them that CoNLL-2003 has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spacy_treecrf.labels.biluo import OUTSIDE, prefix_and_name


def are_biluo_labels(labels: Iterable[str]) -> bool:
    """Whether these are BIO or BILUO labels of named spans, and not only O."""
    inside = set(labels) - {OUTSIDE}
    return bool(inside) and all(prefix_and_name(label)[1] for label in inside)


def iob1_to_bio(labels: Sequence[str]) -> list[str]:
    """The labels in BIO. In IOB1 a span begins with I-, or with B- right after one of its kind."""
    converted = []
    before = ""
    for label in labels:
        prefix, _, name = label.partition("-")
        converted.append(f"B-{name}" if prefix == "I" and before != name else label)
        before = name
    return converted
