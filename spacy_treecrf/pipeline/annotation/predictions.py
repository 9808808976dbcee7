"""From scored sequences to what is written on docs: labels, spans and their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc

from spacy_treecrf.labels.biluo import (
    OUTSIDE,
    PREFIXES,
    TokenSpan,
    labels_of_spans,
    prefix_and_name,
    spans_in_sequences,
)

if TYPE_CHECKING:  # numba is loaded when a pipe learns or predicts, not before
    from spacy_treecrf.engine.chain.span_choice import SpanLabels
    from spacy_treecrf.models.predictor import ScoredSequences


class Prediction(NamedTuple):
    """What the model says of one doc."""

    labels: list[str]  # of its tokens
    spans: list[TokenSpan]  # that the labels stand for; none where labels are no spans
    probabilities: npt.NDArray[np.float64] | None = None  # of these labels; None: not wanted
    span_probabilities: list[float] | None = None  # of these spans


def predictions_of(
    docs: Sequence[Doc],
    scored: ScoredSequences,
    names: Sequence[str],
    has_spans: bool,
    expected_f1: float = 0.0,
) -> tuple[list[Prediction], npt.NDArray[np.int32]]:
    """The predictions of docs without probabilities, and the ids of all their labels.

    names: labels by id. has_spans: labels are BILUO labels of spans; where decoding does not see
    to it, they are made well-formed. expected_f1: of spans, which are chosen to serve it; 0: labels
    are the most probable ones.
    """
    of_spans = span_labels_of(tuple(names)) if has_spans and expected_f1 else None
    ids = scored.labels_of_spans(of_spans, expected_f1 / 2) if of_spans else scored.labels()
    labels = [names[i] for i in ids.tolist()]
    spans: list[TokenSpan] = []
    if has_spans:
        spans = spans_in_sequences(labels, scored.data.offsets.tolist())
        if not scored.obeys("biluo"):
            labels = labels_of_spans(spans, len(labels))
            id_of = {name: i for i, name in enumerate(names)}
            ids = np.array([id_of[label] for label in labels], np.int32)
    if len(docs) == 1:
        return [Prediction(labels, spans)], ids
    predictions = []
    at = 0
    for first, last in pairwise(accumulate(map(len, docs), initial=0)):
        own = []
        while at < len(spans) and spans[at][0] < last:
            start, end, name = spans[at]
            own.append((start - first, end - first, name))
            at += 1
        predictions.append(Prediction(labels[first:last], own))
    return predictions, ids


def with_probabilities(
    predictions: Sequence[Prediction], ids: npt.NDArray[np.int32], scored: ScoredSequences
) -> list[Prediction]:
    """The predictions with the exact probabilities of their labels and spans.

    ids: of all their labels, laid end to end.
    """
    if len(predictions) == 1:
        labels, spans, *_ = predictions[0]
        found = scored.probabilities_of(ids, [(start, end) for start, end, _ in spans])
        return [Prediction(labels, spans, *found)]
    bounds = list(accumulate((len(own.labels) for own in predictions), initial=0))
    rows = [
        (first + start, first + end)
        for first, own in zip(bounds, predictions, strict=False)
        for start, end, _ in own.spans
    ]
    chosen, of_spans = scored.probabilities_of(ids, rows)
    ends = accumulate((len(own.spans) for own in predictions), initial=0)
    return [
        Prediction(own.labels, own.spans, chosen[a:b], of_spans[c:d])
        for own, (a, b), (c, d) in zip(predictions, pairwise(bounds), pairwise(ends), strict=True)
    ]


@lru_cache(maxsize=64)
def span_labels_of(names: tuple[str, ...]) -> SpanLabels | None:
    """The ids of BILUO labels; None where no label is outside of spans."""
    if OUTSIDE not in names:
        return None
    of_types: dict[str, list[int]] = {}
    opens = np.ones(len(names), np.bool_)
    for number, label in enumerate(names):
        prefix, name = prefix_and_name(label)
        if prefix != OUTSIDE:
            of_types.setdefault(name, [-1] * len(PREFIXES))[PREFIXES.index(prefix)] = number
            opens[number] = prefix in ("B", "U")
    ids = np.array(list(of_types.values()), np.int64).reshape(-1, len(PREFIXES))
    return names.index(OUTSIDE), ids, opens
