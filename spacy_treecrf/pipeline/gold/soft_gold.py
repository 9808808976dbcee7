"""Weights and teachers' distributions on docs, as training reads them.

`span._.treecrf_weight` and `token._.treecrf_weight` say how far a label is believed, from 0 (not at
all) to 1; `doc._.treecrf_weight` how much a doc counts. A lattice is what a teacher says of all
labels of a doc; it lies in `doc.user_data`, and .spacy files keep it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.engine.sequences import UNKNOWN_LABEL
from spacy_treecrf.engine.soft_labels import NO_TABLE, SoftLabels
from spacy_treecrf.labels.doc_keys import DOC_WEIGHT, LATTICE, WEIGHT
from spacy_treecrf.pipeline.tasks.task import same_tokens

# Edges that are less probable are not stored: most are, and all labels after all would be many.
LEAST_STORED = 1e-6
MOST_WEIGHT = float(np.finfo(np.float32).max)  # of a doc
MOST_LOST = 0.5  # P(label) that a label which the pipe lacks may have at a token
FEW = 5  # labels in an error
MOST_SHOWN = 40  # characters of a text in an error


def store_lattice(
    doc: Doc,
    labels: Sequence[str],
    nodes: npt.NDArray[np.floating],
    pairs: npt.NDArray[np.floating],
) -> None:
    """Keep what a teacher says of a doc.

    nodes: P(label), (n_tokens, n_labels). pairs: P(label before, label), (n_tokens, n_labels,
    n_labels), 0 where a sequence begins.
    """
    rows, before, after = np.nonzero(pairs > LEAST_STORED)
    # Bytes, which all readers of .spacy files leave as they are.
    doc.user_data[LATTICE] = {
        "labels": list(labels),
        "nodes": np.asarray(nodes, "<f4").tobytes(),
        "rows": rows.astype("<i4").tobytes(),
        "edges": (before * len(labels) + after).astype("<i4").tobytes(),
        "pairs": pairs[rows, before, after].astype("<f4").tobytes(),
    }


@dataclass(frozen=True)
class _Lattice:
    """A stored lattice in the labels of a pipe."""

    nodes: npt.NDArray[np.float64]  # shape: (n_tokens, n_labels)
    after: npt.NDArray[np.float64]  # P(label | label before), (n_tokens, n_labels, n_labels)
    has_edges: npt.NDArray[np.bool_]  # shape: (n_tokens,)


def soft_content(doc: Doc) -> int:
    """A hash of the weights on a doc and of its lattice; 0 if it has neither."""
    if not doc.user_data:
        return 0
    stored: dict[Any, Any] = doc.user_data
    found = sorted(
        repr((key[2:], value))
        for key, value in stored.items()
        if isinstance(key, tuple) and key[:2] == ("._.", WEIGHT) and value is not None
    )
    lattice = stored.get(LATTICE)
    if not found and lattice is None:
        return 0
    parts = lattice.items() if isinstance(lattice, Mapping) else [(LATTICE, lattice)]
    # Bytes know their hash once it was asked for.
    own = [(key, value if isinstance(value, bytes) else repr(value)) for key, value in parts]
    return hash((tuple(found), tuple(own)))


def doc_weights(examples: Sequence[Example]) -> npt.NDArray[np.float32]:
    """How much each doc counts. shape: (n_tokens of all,)"""
    found = []
    for example in examples:
        value = _weight_of(example.reference)
        weight = 1.0 if value is None else _checked(value, "doc", MOST_WEIGHT)
        found.append(np.full(len(example.predicted), weight, np.float32))
    return np.concatenate(found) if found else np.zeros(0, np.float32)


def is_weighted(doc: Doc) -> bool:
    """Whether weights or a teacher say more of a doc than its labels do."""
    return _is_soft(doc) or _weight_of(doc) is not None


def soft_gold(
    examples: Sequence[Example],
    ids: npt.NDArray[np.int32],
    labels: Sequence[str],
    offsets: npt.NDArray[np.int64],
    pipe: str = "treecrf",
) -> tuple[npt.NDArray[np.int32], SoftLabels | None]:
    """Ids of labels, UNKNOWN_LABEL where weights or a teacher say more, and what these say.

    ids: Those of the labels that docs have, laid end to end. offsets: Where sequences begin.
    pipe: The name of the pipe, for errors.
    """
    spoken = [
        (first, example) for first, example in _with_first(examples) if _is_soft(example.reference)
    ]
    if not spoken:
        return ids, None
    made = _Tables(ids.copy(), labels, offsets)
    for first, example in spoken:
        stored = example.reference.user_data.get(LATTICE)
        if stored is not None:
            _check_tokens(example)
            made.add_lattice(first, _read(stored, labels, len(example.predicted), pipe))
        else:
            made.add_weights(first, example)
    return made.result()


def refuse_gaps(
    examples: Sequence[Example],
    ids: npt.NDArray[np.int32],
    soft: SoftLabels,
    offsets: npt.NDArray[np.int64],
) -> None:
    """Refuse sequences with weights of some tokens and nothing about others: no teacher says so."""
    is_gap = (ids == UNKNOWN_LABEL) & ~soft.is_soft
    has_weights = np.logical_or.reduceat(soft.is_soft, offsets[:-1])
    gaps = np.flatnonzero(is_gap & np.repeat(has_weights, np.diff(offsets)))
    if not len(gaps):
        return
    first, example = [(own, each) for own, each in _with_first(examples) if own <= gaps[0]][-1]
    token = example.predicted[int(gaps[0]) - first]
    raise ValueError(
        f"treecrf: the token {token.text!r} of the doc {_start_of(example)} has no label that the "
        "pipe knows, in a sequence with weights that are to be distilled; annotate all of its "
        "tokens, or use soft_labels = 'evidence'"
    )


class _Tables:
    """Tables of weights, and which rows have them."""

    def __init__(
        self,
        ids: npt.NDArray[np.int32],
        labels: Sequence[str],
        offsets: npt.NDArray[np.int64],
    ) -> None:
        self.ids = ids
        self.n_labels = len(labels)
        self.is_first = np.zeros(len(ids), bool)
        self.is_first[offsets[:-1]] = True
        self.node_table = np.full(len(ids), NO_TABLE, np.int32)
        self.edge_table = np.full(len(ids), NO_TABLE, np.int32)
        self.nodes: list[npt.NDArray[np.float64]] = []
        self.edges: list[npt.NDArray[np.float64]] = []
        self.known: dict[tuple[int, float], int] = {}

    def add_weights(self, first: int, example: Example) -> None:
        """Weights of spans and tokens; the smallest counts where a token has several."""
        doc = example.predicted
        weights = np.ones(len(doc))
        for start, end, value in _weights_of(example.reference):
            weight = _checked(value, "span or token", 1.0)
            for token in doc:
                if token.idx >= start and (token.idx == start or token.idx < end):
                    weights[token.i] = min(weights[token.i], weight)
        for row in np.flatnonzero(weights < 1.0) + first:
            label, weight = int(self.ids[row]), float(weights[row - first])
            if label == UNKNOWN_LABEL:
                continue
            table = self.known.get((label, weight))
            if table is None:
                table = self.known[label, weight] = len(self.nodes)
                spread = np.full(self.n_labels, (1.0 - weight) / self.n_labels)
                spread[label] += weight
                self.nodes.append(spread)
            self.node_table[row] = table
            self.ids[row] = UNKNOWN_LABEL

    def add_lattice(self, first: int, lattice: _Lattice) -> None:
        rows = slice(first, first + len(lattice.nodes))
        alone = self.is_first[rows] | ~lattice.has_edges
        self.ids[rows] = UNKNOWN_LABEL
        self.node_table[rows][alone] = np.arange(alone.sum()) + len(self.nodes)
        self.edge_table[rows][~alone] = np.arange((~alone).sum()) + len(self.edges)
        self.nodes += list(lattice.nodes[alone])
        self.edges += list(lattice.after[~alone])

    def result(self) -> tuple[npt.NDArray[np.int32], SoftLabels]:
        n = self.n_labels
        with np.errstate(divide="ignore"):
            nodes = np.log(np.array(self.nodes).reshape(-1, n)).astype(np.float32)
            edges = np.log(np.array(self.edges, np.float32).reshape(-1, n, n))
        return self.ids, SoftLabels(self.node_table, nodes, self.edge_table, edges)


def _with_first(examples: Sequence[Example]) -> Iterator[tuple[int, Example]]:
    """Each example with the number of its first row."""
    first = 0
    for example in examples:
        yield first, example
        first += len(example.predicted)


def _is_soft(doc: Doc) -> bool:
    return LATTICE in doc.user_data or any(_weights_of(doc))


def _weight_of(doc: Doc) -> Any:
    stored: dict[Any, Any] = doc.user_data
    return stored.get(DOC_WEIGHT)


def _check_tokens(example: Example) -> None:
    if not same_tokens(example):
        raise ValueError(
            f"treecrf: the doc {_start_of(example)} was taught with other tokens than the pipeline "
            "gives it; read the docs by spacy_treecrf.Corpus.v1, which keeps their tokens"
        )


def _start_of(example: Example) -> str:
    """The start of a doc's text, for errors."""
    text = example.reference.text
    return repr(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}...")


def _weights_of(doc: Doc) -> Iterator[tuple[int, int, Any]]:
    """First character, past-the-last character and weight of spans and tokens; tokens end at 0."""
    for key, value in doc.user_data.items():
        if isinstance(key, tuple) and key[:2] == ("._.", WEIGHT) and value is not None:
            start, end = key[2], key[3]
            if start is not None:
                yield start, 0 if end is None else end, value


def _checked(value: Any, kind: str, high: float) -> float:
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    if not is_number or isinstance(value, bool) or not 0.0 <= value <= high:
        most = f"0 to {high:g}" if high < MOST_WEIGHT else "0 or more, finite in 32 bits"
        raise ValueError(f"treecrf: {WEIGHT} of a {kind} is {value!r}; use a number of {most}")
    return float(value)


def _refuse_others(
    names: Sequence[str], labels: Sequence[str], lost: npt.NDArray[np.float64], pipe: str
) -> None:
    """Refuse a lattice of other labels. lost: The mass of each name that the pipe does not have."""
    others = [names[i] for i in np.argsort(-lost, kind="stable")[:FEW] if lost[i]]
    own = [*labels[:FEW], "..."] if len(labels) > FEW else labels
    raise ValueError(
        f"treecrf: doc.user_data[{LATTICE!r}] tells of the labels {', '.join(others)}, which the "
        f"pipe {pipe!r} with the labels {', '.join(own)} does not have; train a pipe with the "
        "teacher's labels (add_label, or labels in [initialize.components]), or delete it"
    )


def _read(stored: Any, labels: Sequence[str], n_tokens: int, pipe: str) -> _Lattice:
    """A stored lattice in the labels of a pipe; others are left out, and the rest is normalised."""
    try:
        names = list(stored["labels"])
        n = len(names)
        nodes = np.frombuffer(stored["nodes"], "<f4").astype(float).reshape(n_tokens, n)
        rows, edges = (np.frombuffer(stored[key], "<i4") for key in ("rows", "edges"))
        pairs = np.frombuffer(stored["pairs"], "<f4")
        good = rows.shape == edges.shape == pairs.shape and len(set(names)) == n
        good = good and bool(np.all((rows >= 0) & (rows < n_tokens)))
        good = good and bool(np.all((edges >= 0) & (edges < n * n)))
        good = good and bool(np.all(np.isfinite(nodes)) and np.all(nodes >= 0.0))
        good = good and bool(np.all(np.isfinite(pairs)) and np.all(pairs >= 0.0))
    except (KeyError, TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(
            f"treecrf: doc.user_data[{LATTICE!r}] is not what `spacy-treecrf distill` writes for a "
            f"doc of {n_tokens} tokens; write it again, or delete it"
        )
    own: Mapping[str, int] = {label: i for i, label in enumerate(labels)}
    at = np.array([own.get(name, -1) for name in names])
    known = at >= 0
    if (nodes[:, ~known] > MOST_LOST).any():
        _refuse_others(names, labels, nodes.sum(axis=0) * ~known, pipe)
    found = np.zeros((n_tokens, len(labels)))
    found[:, at[known]] = nodes[:, known]
    before, label = np.divmod(edges, n)
    kept = known[before] & known[label]
    joint = np.zeros((n_tokens, len(labels), len(labels)))
    joint[rows[kept], at[before[kept]], at[label[kept]]] = pairs[kept]
    totals = joint.sum(axis=2, keepdims=True)
    has_edges = totals.sum(axis=(1, 2)) > 0.0
    return _Lattice(found, np.divide(joint, totals, out=joint, where=totals > 0.0), has_edges)
