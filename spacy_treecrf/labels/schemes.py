"""Spans in labels of all common schemes (see SCHEMES), read as conlleval reads them.

The rules are those of conlleval.pl (Tjong Kim Sang & Buchholz 2000): a span begins at B, S and
wherever the type changes, and ends at E, S and before whatever does not go on with it. L and U of
BILUO are E and S.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spacy_treecrf.labels.biluo import OUTSIDE, Label, TokenSpan, write_span

_LETTERS = {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S"}
# Labels without types, as for the noun phrases of a text; other letters may be anything.
_UNTYPED = frozenset("BIESLU")
SCHEMES = ("BIO", "IOB1", "IOE2", "BIOES", "BILUO")
# The letters of a span of one token, and of the last token of a longer one.
_LAST = {"BIOES": ("S", "E"), "BILUO": ("U", "L"), "IOE2": ("E", "E")}


def letter_and_type(label: Label) -> tuple[str, str]:
    """The letter of a label, out of B, I, E, S, O, and its type; None counts as outside."""
    if label is None:
        return OUTSIDE, ""
    letter, dash, name = label.partition("-")
    if letter in _LETTERS and (name or not dash):
        return _LETTERS[letter], name
    return OUTSIDE, ""


def are_span_labels(labels: Iterable[Label]) -> bool:
    """Whether all of these labels belong to spans: O, and B-X, I-X, ... or B and I alone.

    One label of another kind, e.g. a part of speech, says that these are no spans.
    """
    found = {label for label in labels if label not in (None, OUTSIDE)}
    if not found:
        return False
    typed = [label is not None and "-" in label for label in found]
    if any(typed):
        return all(typed) and all(letter_and_type(label)[0] != OUTSIDE for label in found)
    return "B" in found and found <= _UNTYPED


def goes_on(before: tuple[str, str], here: tuple[str, str]) -> bool:
    """Whether a label goes on with the span of the label before, both as letter and type."""
    return before[0] in ("B", "I") and here[0] in ("I", "E") and here[1] == before[1]


def conll_spans(labels: Sequence[Label]) -> list[TokenSpan]:
    """The spans of one label sequence of any scheme, in order."""
    spans: list[TokenSpan] = []
    start = 0
    before = OUTSIDE, ""
    for i, label in enumerate([*labels, OUTSIDE]):
        here = letter_and_type(label)
        if not goes_on(before, here):
            if before[0] != OUTSIDE:
                spans.append((start, i, before[1]))
            start = i
        before = here
    return spans


def to_bio(labels: Sequence[Label]) -> list[Label]:
    """The labels in BIO, and None where it was, so that schemes can be compared."""
    bio: list[Label] = [None if label is None else OUTSIDE for label in labels]
    for start, end, name in conll_spans(labels):
        suffix = f"-{name}" if name else ""
        bio[start:end] = [f"B{suffix}", *[f"I{suffix}"] * (end - start - 1)]
    return bio


def as_biluo(labels: Sequence[Label]) -> list[Label]:
    """Labels of any scheme of spans as BILUO labels, and None where it was."""
    biluo: list[Label] = [None if label is None else OUTSIDE for label in labels]
    for start, end, name in conll_spans(labels):
        write_span(biluo, start, end, name)
    return biluo


def as_ioe2(labels: Sequence[Label]) -> list[Label]:
    """Labels of any scheme of spans in IOE2, where E ends each span, and None where it was."""
    ioe2: list[Label] = [None if label is None else OUTSIDE for label in labels]
    for start, end, name in conll_spans(labels):
        suffix = f"-{name}" if name else ""
        ioe2[start:end] = [*[f"I{suffix}"] * (end - start - 1), f"E{suffix}"]
    return ioe2


def scheme_of(sequences: Iterable[Sequence[Label]]) -> str:
    """The scheme that label sequences are written in: one of SCHEMES.

    Where nothing tells them apart, BIO. In IOB1, B stands only between two spans of a kind: one B
    elsewhere says that spans which I opens are mistakes. What follows None tells nothing.
    """
    letters: set[str] = set()
    openers: set[str] = set()  # the letters that open spans where IOB1 and BIO differ
    for labels in sequences:
        before: Label = OUTSIDE
        for label in labels:
            known, name = letter_and_type(label)
            letter = label[:1] if label and known != OUTSIDE else OUTSIDE
            before_letter, before_type = letter_and_type(before)
            if before is not None and (before_letter == OUTSIDE or name != before_type):
                openers.add(letter)
            letters.add(letter)
            before = label
    if letters & {"L", "U"}:
        return "BILUO"
    if letters & {"E", "S"}:
        return "BIOES" if letters & {"B", "S"} else "IOE2"
    return "IOB1" if "I" in openers and "B" not in openers else "BIO"


def spelled(spans: Iterable[TokenSpan], n: int, scheme: str) -> list[str]:
    """The n labels that spell these spans in a scheme; names may be empty."""
    labels = [OUTSIDE] * n
    before_end, before_name = -1, ""
    for start, end, name in sorted(spans):
        suffix = f"-{name}" if name else ""
        first = "I" if scheme == "IOE2" else "B"
        if scheme == "IOB1" and not (before_end == start and before_name == name):
            first = "I"
        letters = [first, *["I"] * (end - start - 1)]
        if scheme in _LAST:
            single, last = _LAST[scheme]
            letters[-1] = last if len(letters) > 1 else single
        labels[start:end] = [letter + suffix for letter in letters]
        before_end, before_name = end, name
    return labels
