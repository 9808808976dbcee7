"""F1 of spans from label ids: what early stopping watches where labels spell spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.sequences import UNKNOWN_LABEL
from spacy_treecrf.labels.schemes import are_span_labels, letter_and_type

_OUTSIDE = 0
_LETTERS = {"O": _OUTSIDE, "B": 1, "I": 2, "E": 3, "S": 4}
_LEFT_OPEN = np.array([False, True, True, False, False])  # B and I: the span may go on
_GOES_ON = np.array([False, False, True, True, False])  # I and E: a span before may go on here

_TURNED_ROUND = np.array([_OUTSIDE, 3, 2, 1, 4], np.int8)  # B and E change places


class SpanLabels(NamedTuple):
    """Letters and types of labels by id; the last entry, that of UNKNOWN_LABEL, is outside."""

    letters: npt.NDArray[np.int8]  # shape: (n_labels + 1,)
    types: npt.NDArray[np.int32]  # shape: (n_labels + 1,)

    def turned_round(self) -> SpanLabels:
        """The same for sequences that are read from right to left: B ends a span, E begins it."""
        return SpanLabels(_TURNED_ROUND[self.letters], self.types)


class _Spans(NamedTuple):
    starts: npt.NDArray[np.intp]
    ends: npt.NDArray[np.intp]  # past the last row
    types: npt.NDArray[np.int32]


def span_labels(labels: Sequence[str]) -> SpanLabels | None:
    """What the labels say about spans; None if they spell none, as parts of speech."""
    if not all(isinstance(label, str) for label in labels) or not are_span_labels(labels):
        return None
    parts = [letter_and_type(label) for label in [*labels, None]]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(name for _, name in parts))}
    return SpanLabels(
        np.array([_LETTERS[letter] for letter, _ in parts], np.int8),
        np.array([numbers[name] for _, name in parts], np.int32),
    )


class SpanCounts(NamedTuple):
    """How many spans there are in the annotation, how many were predicted, how many are in both."""

    gold: int
    predicted: int
    right: int

    @property
    def f1(self) -> float:
        """F1 as conlleval has it; 0 where there are no spans."""
        total = self.gold + self.predicted
        return 2.0 * self.right / total if total else 0.0


def span_f1(
    gold: npt.NDArray[np.int32],
    predicted: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    labels: SpanLabels,
) -> float:
    """F1 of the spans of all sequences, as conlleval counts them; 0 where there are none."""
    return count_spans(gold, predicted, offsets, labels).f1


def count_spans(
    gold: npt.NDArray[np.int32],
    predicted: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    labels: SpanLabels,
) -> SpanCounts:
    """Count the spans of all sequences, as conlleval does.

    Predicted spans count only where all their rows are annotated.
    """
    wanted = _spans(gold, offsets, labels)
    found = _spans(predicted, offsets, labels)
    unknown = np.concatenate([[0], np.cumsum(gold == UNKNOWN_LABEL)])
    counted = unknown[found.ends] == unknown[found.starts]
    end_at = np.zeros(len(gold), np.intp)
    type_at = np.zeros(len(gold), np.int32)
    end_at[wanted.starts], type_at[wanted.starts] = wanted.ends, wanted.types
    right = (end_at[found.starts] == found.ends) & (type_at[found.starts] == found.types)
    return SpanCounts(len(wanted.starts), int(counted.sum()), int((right & counted).sum()))


def _spans(
    ids: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], labels: SpanLabels
) -> _Spans:
    letters, types = labels.letters[ids], labels.types[ids]
    goes_on = np.zeros(len(ids) + 1, bool)  # whether a row belongs to the span of the row before
    goes_on[1:-1] = _LEFT_OPEN[letters[:-1]] & _GOES_ON[letters[1:]] & (types[:-1] == types[1:])
    goes_on[offsets] = False
    inside = letters != _OUTSIDE
    starts = np.flatnonzero(inside & ~goes_on[:-1])
    ends = np.flatnonzero(inside & ~goes_on[1:]) + 1
    return _Spans(starts, ends, types[starts])
