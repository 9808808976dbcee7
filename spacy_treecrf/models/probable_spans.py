"""Spans that are more probable than not, by the exact probabilities of a chain.

The best label sequence has the best spans together, and the F1 of spans counts them one by one. A
span helps F1 where its probability is above half of the F1 that can be reached (Lipton et al. 2014,
theorem 1, there for labels), so that one half is the threshold of a good model. Two spans that
overlap exclude each other: only one of them can be more probable than not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.labels.biluo import OUTSIDE
from spacy_treecrf.labels.schemes import are_span_labels, letter_and_type
from spacy_treecrf.models.predictor import ScoredSequences

LOWEST_THRESHOLD = 0.5


class ProbableSpan(NamedTuple):
    """A span of positions of one sequence, and its probability."""

    start: int
    end: int  # past the last position
    name: str
    probability: float


class _Rows(NamedTuple):
    """A span of rows that a chain has scored."""

    first: int
    last: int  # past the last row
    name: str


def check_span_request(names: Sequence[str], threshold: float) -> None:
    """Refuse labels that do not tell where spans begin, and thresholds that let spans overlap."""
    if not LOWEST_THRESHOLD <= threshold < 1.0:
        raise ValueError(
            f"treecrf: threshold is {threshold}; use 0.5 or more, and less than 1: spans of lower "
            "probabilities may overlap"
        )
    if not are_span_labels(names) or not {letter_and_type(name)[0] for name in names} & set("BS"):
        raise ValueError(
            "treecrf: the labels of this model do not spell spans; train it on BIO, BIOES or BILUO "
            "labels"
        )


def probable_spans(
    scored: ScoredSequences, names: Sequence[str], threshold: float
) -> Iterator[list[ProbableSpan]]:
    """The spans of each sequence whose probability is above a threshold of at least one half.

    Every label of such a span has at least its probability, so it is the best of its row. Spans
    are those that a scheme spells out: where labels have letters for the last token, a span without
    such an end is none.

    names: The model's labels by id, in BIO, BIOES or BILUO.
    """
    nodes = scored.marginals()
    offsets = scored.data.offsets
    labels = nodes.argmax(axis=1).astype(np.int32)
    sure = nodes[np.arange(len(labels)), labels] > threshold
    parts = [letter_and_type(name) for name in names]
    rows = [parts[i] if own else (OUTSIDE, "") for i, own in zip(labels, sure, strict=True)]
    has_ends = any(letter in "ES" for letter, _ in parts)
    bounds = list(pairwise(offsets.tolist()))
    spelled = [list(_spelled_spans(rows, first, last, has_ends)) for first, last in bounds]
    spans = [span for own in spelled for span in own]
    places = np.array([(span.first, span.last) for span in spans], np.int64).reshape(-1, 2)
    found = scored.span_probabilities(places, labels)
    if not has_ends:
        inside = {name: i for i, (letter, name) in enumerate(parts) if letter == "I"}
        found = found - _longer(scored, spans, labels, inside)
    probabilities = iter(found.tolist())
    for (first, _), own in zip(bounds, spelled, strict=True):
        with_p = [(span, next(probabilities)) for span in own]
        yield [
            ProbableSpan(span.first - first, span.last - first, span.name, p)
            for span, p in with_p
            if p > threshold
        ]


def _spelled_spans(
    rows: Sequence[tuple[str, str]], first: int, last: int, has_ends: bool
) -> Iterator[_Rows]:
    """The spans that letters and names of the rows of one sequence spell out."""
    t = first
    while t < last:
        letter, name = rows[t]
        begin, t = t, t + 1
        if letter == "S":
            yield _Rows(begin, t, name)
        elif letter == "B":
            while t < last and rows[t] == ("I", name):
                t += 1
            if not has_ends:
                yield _Rows(begin, t, name)
            elif t < last and rows[t] == ("E", name):
                t += 1
                yield _Rows(begin, t, name)


def _longer(
    scored: ScoredSequences,
    spans: Sequence[_Rows],
    labels: npt.NDArray[np.int32],
    inside: dict[str, int],
) -> npt.NDArray[np.float64]:
    """P(the labels of a span, and that the row behind it goes on with it), for labels without ends.

    inside: The label that goes on with a span, by the span's name.
    """
    ends = set(scored.data.offsets.tolist())
    found = np.zeros(len(spans))
    # In two passes, because a row behind one span may be the first row of the next.
    for start in (0, 1):
        asked = [
            i
            for i in range(start, len(spans), 2)
            if spans[i].last not in ends and spans[i].name in inside
        ]
        own = labels.copy()
        own[[spans[i].last for i in asked]] = [inside[spans[i].name] for i in asked]
        places = np.array([(spans[i].first, spans[i].last + 1) for i in asked], np.int64)
        found[asked] = scored.span_probabilities(places.reshape(-1, 2), own)
    return found
