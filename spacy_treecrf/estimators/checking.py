"""What users pass to estimators, checked and turned into arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.sequences import UNKNOWN_LABEL
from spacy_treecrf.engine.soft_labels import SoftLabels
from spacy_treecrf.estimators.soft_targets import has_soft_labels, soft_targets, without_weights

FeatureSequences = Sequence[Sequence[Any]]
# Entries may also be dicts of weights, or pairs of a label and a weight; a sequence of them may be
# a lattice.
LabelSequences = Sequence[Sequence[Any]]
_END = object()


def checked(
    X: FeatureSequences, y: LabelSequences, x_name: str, y_name: str, soft: bool = False
) -> tuple[FeatureSequences, LabelSequences]:
    """X and y as lists whose sequences have the same lengths. soft: Whether labels may be soft."""
    for value, name in ((X, x_name), (y, y_name)):
        scalar = getattr(value, "shape", None) == ()  # an array without dimensions
        if isinstance(value, (str, bytes, dict)) or scalar or not hasattr(value, "__iter__"):
            raise ValueError(
                f"treecrf: {name} is a {type(value).__name__}; use a list of sequences"
            )
    X, y = list(X), list(y)
    if len(X) != len(y):
        raise ValueError(
            f"treecrf: {x_name} holds {len(X)} sequences, {y_name} holds {len(y)}; "
            "each sequence needs one sequence of labels"
        )
    if not X:
        raise ValueError(f"treecrf: {x_name} holds no sequences; pass at least one")
    for s, (items, labels) in enumerate(zip(X, y, strict=True)):
        _check_pair(items, labels, f"{x_name}[{s}]", f"{y_name}[{s}]")
    check_labels(y, y_name, soft)
    return X, y


def read_in_step(X: Iterable[Any], y: Iterable[Any]) -> tuple[Iterator[Any], list[Sequence[Any]]]:
    """The sequences of X one by one, checked, and a list to which reading them adds their labels.

    So that no more than one sequence of X is in memory at a time.
    """
    read: list[Sequence[Any]] = []
    same: dict[str, str] = {}  # one object for each label, however many are read

    def sequences() -> Iterator[Any]:
        labels_of = iter(y)
        for s, items in enumerate(X):
            labels: Any = next(labels_of, _END)
            if labels is _END:
                raise ValueError(f"treecrf: X holds more sequences than y, which has {s}")
            _check_pair(items, labels, f"X[{s}]", f"y[{s}]")
            if isinstance(labels, (list, tuple)):
                labels = [same.setdefault(y, y) if isinstance(y, str) else y for y in labels]
            read.append(labels)
            yield items
        if next(labels_of, _END) is not _END:
            raise ValueError(f"treecrf: y holds more sequences than X, which has {len(read)}")

    return sequences(), read


def _check_pair(items: Any, labels: Any, x_name: str, y_name: str) -> None:
    """Refuse a sequence whose items and labels do not go together."""
    for sequence, name in ((items, x_name), (labels, y_name)):
        if isinstance(sequence, (str, bytes, dict)) or not hasattr(sequence, "__len__"):
            raise ValueError(
                f"treecrf: {name} is a {type(sequence).__name__}; use a list, one entry for each "
                "position"
            )
    if len(items) != len(labels):
        raise ValueError(
            f"treecrf: {x_name} has {len(items)} positions, {y_name} has {len(labels)} labels"
        )
    if len(items) == 0:
        raise ValueError(f"treecrf: {x_name} is an empty sequence; leave it out")


def check_labels(y: LabelSequences, y_name: str, soft: bool) -> None:
    """Refuse labels of a wrong type. soft: Whether they may be soft."""
    if has_soft_labels(y):
        if not soft:
            raise ValueError(
                f"treecrf: {y_name} holds soft labels (dicts, pairs with a weight, lattices), "
                "which only BoostedCRF.fit takes, for training; use plain labels here"
            )
        _check_label_types(without_weights(y, y_name), y_name)
    else:
        _check_label_types(y, y_name)


def distinct_labels(y: LabelSequences) -> list[str] | list[int]:
    """The labels in sorted order, as plain strings or integers."""
    if has_soft_labels(y):
        y = without_weights(y, "y")
    seen: set[Any] = set()
    for labels in y:
        seen.update(label for label in labels if label is not None)
    if not seen:
        raise ValueError("treecrf: y holds no label at all; annotate at least one position")
    if all(isinstance(label, str) for label in seen):
        return sorted(str(label) for label in seen)
    return sorted(int(label) for label in seen)


def _check_label_types(y: LabelSequences, name: str) -> None:
    """Refuse labels that are neither strings nor integers, or some of both."""
    integers: bool | None = None
    for s, labels in enumerate(y):
        for t, label in enumerate(labels):
            if label is None:
                continue
            is_integer = isinstance(label, (int, np.integer)) and not isinstance(label, bool)
            if not (is_integer or isinstance(label, str)) or integers not in (None, is_integer):
                raise ValueError(
                    f"treecrf: {name}[{s}][{t}] is {label!r}, a {type(label).__name__}; labels "
                    "are strings or integers, all of one type, or None where a position is not "
                    "annotated"
                )
            integers = is_integer


def label_ids(
    y: LabelSequences, ids: Mapping[Any, int], name: str, unseen: int | None = None
) -> npt.NDArray[np.int32]:
    known: dict[Any, int] = {None: UNKNOWN_LABEL, **ids}
    flat = [known.get(label, unseen) for labels in y for label in labels]
    if None in flat:
        s, t = next(
            (s, t)
            for s, labels in enumerate(y)
            for t, label in enumerate(labels)
            if label not in known
        )
        raise ValueError(
            f"treecrf: {name}[{s}][{t}] is {y[s][t]!r}, a label that the model does not have; "
            "fit a new one with warm_start=False"
        )
    return np.array(flat, np.int32)


def targets(
    y: LabelSequences, ids: Mapping[Any, int], name: str
) -> tuple[npt.NDArray[np.int32], SoftLabels | None]:
    """Ids of the labels of y, and what is soft among them; None if nothing is."""
    if has_soft_labels(y):
        return soft_targets(y, ids, name)
    return label_ids(y, ids, name), None


def row_weights(
    offsets: npt.NDArray[np.int64], weights: Sequence[float] | None
) -> npt.NDArray[np.float32]:
    """Weights of sequences spread over their rows."""
    n_sequences = len(offsets) - 1
    if weights is None:
        return np.ones(int(offsets[-1]), np.float32)
    array = sequence_weights(weights, n_sequences)
    if not array.any():
        raise ValueError("treecrf: every sample_weight is zero; give some sequence a weight")
    return np.repeat(array, np.diff(offsets))


def sequence_weights(weights: Sequence[float], n_sequences: int) -> npt.NDArray[np.float32]:
    try:
        array = np.asarray(weights, np.float32)
    except (ValueError, TypeError, OverflowError):
        array = np.empty(0, np.float32)
    if array.shape != (n_sequences,) or not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ValueError(
            f"treecrf: sample_weight must hold one number of at least 0 for each of the "
            f"{n_sequences} sequences"
        )
    return array
