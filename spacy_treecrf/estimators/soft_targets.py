"""Soft labels as users give them: distributions, weights and lattices, turned into log weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.sequences import UNKNOWN_LABEL
from spacy_treecrf.engine.soft_labels import NO_TABLE, SoftLabels

PLAIN_TYPES = frozenset({str, int, type(None)})


@dataclass(frozen=True)
class Lattice:
    """A distribution over the labels of one sequence in which neighbours depend on each other.

    labels: What the numbers below stand for. nodes: P(label) at each position, of shape
    (n_positions, n_labels). pairs: P(label before, label) of each two neighbours, of shape
    (n_positions - 1, n_labels, n_labels). q(y) is the probability of the first label times that of
    each further label after the one before it.
    """

    labels: Sequence[Any]
    nodes: npt.NDArray[np.float32]
    pairs: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        n = len(self.labels)
        if len(set(self.labels)) < n:
            raise ValueError(
                f"treecrf: labels of a lattice are {list(self.labels)!r}; name each label once"
            )
        for name, shape in (
            ("nodes", (len(self.nodes), n)),
            ("pairs", (max(0, len(self.nodes) - 1), n, n)),
        ):
            try:
                array = np.asarray(getattr(self, name), np.float32)
            except (ValueError, TypeError) as error:
                raise ValueError(f"treecrf: {name} of a lattice hold no numbers") from error
            if array.shape != shape or not np.all(np.isfinite(array)) or np.any(array < 0.0):
                raise ValueError(
                    f"treecrf: {name} of a lattice over {n} labels must be probabilities of shape "
                    f"{shape}, found shape {array.shape}"
                )
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[dict[Any, float]]:
        """P(label) of each position, without its neighbours."""
        for row in self.nodes.tolist():
            yield dict(zip(self.labels, row, strict=True))


def has_soft_labels(y: Sequence[Any]) -> bool:
    """Whether some sequence of labels is a lattice, or some label has a weight."""
    return any(
        isinstance(labels, Lattice)
        or any(isinstance(label, (Mapping, tuple)) for label in _unusual(labels))
        for labels in y
    )


def _unusual(labels: Any) -> Iterator[Any]:
    """Labels that are neither strings, integers nor None; quick where there are none."""
    if not set(map(type, labels)) <= PLAIN_TYPES:
        yield from (label for label in labels if type(label) not in PLAIN_TYPES)


def named_labels(label: Any) -> tuple[Any, ...]:
    """The labels that an entry of y names."""
    if isinstance(label, Mapping):
        return tuple(label)
    if isinstance(label, tuple):
        return label[:1]
    return (label,)


def without_weights(y: Sequence[Any], name: str) -> list[list[Any]]:
    """All labels that y names, as sequences of plain labels; malformed weights are refused.

    Sequences come back longer: they tell which labels there are, not where.
    """
    found = []
    for s, labels in enumerate(y):
        if isinstance(labels, Lattice):
            found.append(list(labels.labels))
            continue
        for t, label in enumerate(labels):
            _check_weights(label, f"{name}[{s}][{t}]")
        found.append([each for label in labels for each in named_labels(label)])
    return found


def _check_weights(label: Any, place: str) -> None:
    if isinstance(label, Mapping):
        weights = list(label.values())
        good = bool(label) and all(_is_number(w) and 0.0 <= w < math.inf for w in weights)
        if not good or not any(w > 0.0 for w in weights) or None in label:
            raise ValueError(
                f"treecrf: {place} is {dict(label)!r}; give labels weights of at least 0, of which "
                "one is above 0"
            )
    elif isinstance(label, tuple):
        good = len(label) == 2 and label[0] is not None
        if not good or not _is_number(label[1]) or not 0.0 <= label[1] <= 1.0:
            raise ValueError(
                f"treecrf: {place} is {label!r}; use a label and its weight from 0 (says nothing) "
                "to 1 (is certain)"
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


class SoftTargets:
    """Labels of sequences as ids, and the log weights of those that are soft."""

    def __init__(self, ids: Mapping[Any, int], name: str) -> None:
        self._ids = ids
        self._name = name
        self._labels: list[int] = []
        self._node_table: list[int] = []
        self._edge_table: list[int] = []
        self._nodes: list[npt.NDArray[np.float32]] = []
        self._edges: list[npt.NDArray[np.float32]] = []
        self._known: dict[Any, int] = {}  # tables of weights that have been seen

    def add(self, s: int, labels: Any) -> None:
        """Add a sequence, number s of y."""
        if isinstance(labels, Lattice):
            self._add_lattice(s, labels)
            return
        for t, label in enumerate(labels):
            table = NO_TABLE
            if isinstance(label, (Mapping, tuple)):
                table = self._table_of(label, f"{self._name}[{s}][{t}]")
            hard = label is not None and table == NO_TABLE
            place = f"{self._name}[{s}][{t}]"
            self._labels.append(self._id(label, place) if hard else UNKNOWN_LABEL)
            self._node_table.append(table)
            self._edge_table.append(NO_TABLE)

    def arrays(self) -> tuple[npt.NDArray[np.int32], SoftLabels]:
        """Ids of labels, UNKNOWN_LABEL where they are soft or not known, and the soft labels."""
        n = len(self._ids)
        return np.array(self._labels, np.int32), SoftLabels(
            np.array(self._node_table, np.int32),
            np.array(self._nodes, np.float32).reshape(-1, n),
            np.array(self._edge_table, np.int32),
            np.array(self._edges, np.float32).reshape(-1, n, n),
        )

    def _id(self, label: Any, place: str) -> int:
        found = self._ids.get(label)
        if found is None:
            raise ValueError(
                f"treecrf: {place} is {label!r}, a label that the model does not have; fit a new "
                "one with warm_start=False"
            )
        return found

    def _table_of(self, label: Any, place: str) -> int:
        """The number of the table with a label's weights; equal ones share a table."""
        key = tuple(label.items()) if isinstance(label, Mapping) else label
        table = self._known.get(key)
        if table is None:
            table = self._known[key] = len(self._nodes)
            self._nodes.append(_log(self._weights(label, place)))
        return table

    def _weights(self, label: Any, place: str) -> npt.NDArray[np.float64]:
        n = len(self._ids)
        weights = np.zeros(n)
        if isinstance(label, Mapping):
            for name, weight in label.items():
                weights[self._id(name, place)] = weight
            return weights
        name, share = label
        weights += (1.0 - share) / n
        weights[self._id(name, place)] += share
        return weights

    def _add_lattice(self, s: int, lattice: Lattice) -> None:
        at = np.array(
            [self._id(label, f"a label of {self._name}[{s}]") for label in lattice.labels]
        )
        n = len(self._ids)
        length = len(lattice)
        first = np.zeros(n)
        first[at] = lattice.nodes[0]
        self._node_table.append(len(self._nodes))
        self._nodes.append(_log(first))
        self._node_table += [NO_TABLE] * (length - 1)
        self._edge_table += [NO_TABLE]
        self._edge_table += range(len(self._edges), len(self._edges) + length - 1)
        pairs = np.zeros((length - 1, n, n))
        pairs[:, at[:, None], at] = lattice.pairs
        before = pairs.sum(axis=2, keepdims=True)
        self._edges += list(_log(np.divide(pairs, before, out=pairs, where=before > 0.0)))
        self._labels += [UNKNOWN_LABEL] * length


def soft_targets(
    y: Sequence[Any], ids: Mapping[Any, int], name: str
) -> tuple[npt.NDArray[np.int32], SoftLabels]:
    """Ids of the labels of y, and the log weights of those that are soft."""
    targets = SoftTargets(ids, name)
    for s, labels in enumerate(y):
        targets.add(s, labels)
    return targets.arrays()


def refuse_gaps(y: Sequence[Any], name: str) -> None:
    """Refuse sequences of which a teacher has labelled some positions only."""
    for s, labels in enumerate(y):
        if isinstance(labels, Lattice) or not has_soft_labels([labels]):
            continue
        for t, label in enumerate(labels):
            if label is None:
                raise ValueError(
                    f"treecrf: {name}[{s}][{t}] is None in a sequence that a teacher has labelled; "
                    "give each of its positions a distribution, or use soft_labels='evidence'"
                )


def _log(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    with np.errstate(divide="ignore"):
        found: npt.NDArray[np.float32] = np.log(weights).astype(np.float32)
    return found
