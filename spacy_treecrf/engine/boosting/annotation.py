"""The annotation of a training set, in the forms that residuals need."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.soft_labels import NO_TABLE, SoftLabels
from spacy_treecrf.engine.trees.contexts import count_lags

NO_EDGES = np.zeros((0, 0, 0), np.float32)
_NO_ROWS = np.zeros(0, np.int64)


class Observed(NamedTuple):
    """The annotation of all rows, as kernels read it."""

    labels: npt.NDArray[np.int32]  # shape: (n_rows,), 0 where there is none
    context: npt.NDArray[np.int64]  # shape: (n_rows,), that of the annotated previous labels
    n_valid: npt.NDArray[np.int64]  # shape: (n_rows,), how many contexts the row can have
    # Row of `clamped` where the sequence is not fully annotated, else -1; empty if all are.
    clamped_row: npt.NDArray[np.int64]
    # shape: (n_clamped_rows, n_contexts, n_labels), what the model clamped to the known labels,
    # or a teacher, expects; may be empty
    clamped: npt.NDArray[np.float32]


class AnnotationTotals(NamedTuple):
    """What residuals need to know of the annotation of all rows."""

    edge_counts: npt.NDArray[np.float64]  # shape: (n_labels + 1, n_labels), weighted
    n_starts: float  # weighted number of sequences
    n_inner: float  # weighted number of rows behind the first ones
    n_rows: int


class Taught(NamedTuple):
    """What a teacher expects of the sequences whose labels it gives."""

    pairs: npt.NDArray[np.float32]  # shape: (n_rows, n_contexts, n_labels)
    edges: npt.NDArray[np.float64]  # shape: (n_chunks, n_labels + 1, n_labels), weighted sums
    possible: npt.NDArray[np.bool_]  # shape: (n_sequences,), whether anything is allowed


def allowed_labels(labels: npt.NDArray[np.int32], n_labels: int) -> npt.NDArray[np.uint8]:
    """1 for the annotated label, and for every label where there is none.

    shape: (n_rows, n_labels)
    """
    allowed: npt.NDArray[np.bool_] = labels[:, None] == np.arange(n_labels)[None, :]
    allowed[labels == UNKNOWN_LABEL] = True
    return allowed.astype(np.uint8)


class Annotated:
    """A training set's annotation in the forms that residuals need; computed once."""

    def __init__(
        self, data: Sequences, n_labels: int, order: int, joint: bool, distill: bool = False
    ) -> None:
        """distill: Whether soft labels are a teacher's distribution; else they are evidence."""
        self.data = data
        self.n_labels = n_labels
        self.order = order
        self.joint = joint and order > 0
        self.n_contexts = n_labels**order if self.joint else 1
        self.lags = count_lags(data.offsets, order if self.joint else 0)
        self.weighted = bool(np.any(data.weights != 1.0))
        lengths = np.diff(data.offsets)
        starts = data.offsets[:-1]
        unknown = data.labels == UNKNOWN_LABEL
        self.partial = np.add.reduceat(unknown, starts).astype(bool)
        self.taught = np.zeros(len(starts), bool)  # sequences whose labels a teacher gives
        self.expected_by_teacher: Taught | None = None  # kept by residuals
        if data.soft is not None:
            soft = np.add.reduceat(data.soft.is_soft, starts).astype(bool)
            self.partial |= soft
            if distill:
                self.taught = soft
        self.sequence_weights = np.add.reduceat(data.weights.astype(float), starts) / lengths
        # The context that the annotated previous labels of each row make.
        labels = np.maximum(data.labels, 0)
        self.labels = labels
        self.context = np.zeros(data.n_rows, np.int64)
        if self.joint:
            for lag in range(1, order + 1):
                before = np.zeros(data.n_rows, np.int64)
                before[lag:] = labels[:-lag]
                self.context += np.where(self.lags >= lag, before * n_labels ** (lag - 1), 0)
        # Counts of the annotated edges; partial sequences add their expectation every round.
        weights = np.where(self.partial, 0.0, self.sequence_weights)
        self.edge_counts = np.zeros((n_labels + 1, n_labels))
        np.add.at(self.edge_counts[n_labels], labels[starts], weights)
        inner = np.ones(data.n_rows, bool)
        inner[starts] = False
        inner = np.flatnonzero(inner)
        row_weights = np.repeat(weights, lengths)
        np.add.at(self.edge_counts, (labels[inner - 1], labels[inner]), row_weights[inner])

    @cached
    def totals(self) -> AnnotationTotals:
        """Sums of the annotation, as residuals need them."""
        inner = self.sequence_weights * (np.diff(self.data.offsets) - 1)
        n_starts = float(self.sequence_weights.sum())
        return AnnotationTotals(self.edge_counts, n_starts, float(inner.sum()), self.data.n_rows)

    @property
    def is_clamped(self) -> npt.NDArray[np.bool_]:
        """Which sequences are in `clamped`. shape: (n_sequences,)"""
        return self.partial & ~self.taught

    @cached
    def clamped_chunks(self) -> list[tuple[int, int]]:
        """The sequences of `clamped` that are in each chunk of all sequences, where some are."""
        before = np.concatenate([[0], np.cumsum(self.is_clamped)]).tolist()
        chunks = [(before[first], before[last]) for first, last in self.data.chunks]
        return [(first, last) for first, last in chunks if first < last]

    @cached
    def clamped(self) -> Annotated:
        """The annotation of the sequences of which labels, or weights, are known in part."""
        return self._subset(self.is_clamped)

    @cached
    def lessons(self) -> Annotated:
        """The annotation of the sequences whose labels a teacher gives."""
        return self._subset(self.taught)

    def with_soft(self, soft: SoftLabels) -> Annotated:
        """The same rows with other soft labels, which are evidence."""
        data = replace(self.data, soft=soft)
        return Annotated(data, self.n_labels, self.order, self.joint)

    def _subset(self, sequences: npt.NDArray[np.bool_]) -> Annotated:
        nothing = np.empty((self.data.n_rows, 0), np.int32)  # in place of columns
        data = replace(self.data, feature_ids=nothing, numeric=nothing.astype(np.uint8))
        rest = data.subset(np.flatnonzero(sequences))
        return Annotated(rest, self.n_labels, self.order, self.joint)

    @cached
    def clamped_row(self) -> npt.NDArray[np.int64]:
        """Each row's number among those of partial sequences, or -1. shape: (n_rows,)"""
        rows = np.full(self.data.n_rows, -1, np.int64)
        inside = np.repeat(self.partial, np.diff(self.data.offsets))
        rows[inside] = np.arange(int(inside.sum()))
        return rows

    def log_weights(self, rows: slice) -> npt.NDArray[np.float32]:
        """What the annotation of rows says of labels: 0 for what it allows, -inf, or between.

        shape: (n_rows, n_labels)
        """
        allowed = allowed_labels(self.data.labels[rows], self.n_labels)
        weights = np.where(allowed > 0, np.float32(0.0), np.float32(-np.inf))
        if self.data.soft is not None:
            tables = self.data.soft.node_table[rows]
            soft = tables != NO_TABLE
            weights[soft] = self.data.soft.nodes[tables[soft]]
        return weights

    def edge_log_weights(self, rows: slice) -> npt.NDArray[np.float32]:
        """What the annotation of rows says of neighbouring labels; empty if it says nothing.

        shape: (n_rows, n_labels, n_labels), the label before first
        """
        soft = self.data.soft
        if soft is None or not np.any(soft.edge_table[rows] != NO_TABLE):
            return NO_EDGES
        tables = soft.edge_table[rows]
        weights = np.zeros((len(tables), self.n_labels, self.n_labels), np.float32)
        weights[tables != NO_TABLE] = soft.edges[tables[tables != NO_TABLE]]
        return weights

    @cached
    def n_valid(self) -> npt.NDArray[np.int64]:
        """How many contexts each row can have. shape: (n_rows,)"""
        n_valid: npt.NDArray[np.int64] = self.n_labels ** self.lags.astype(np.int64)
        return n_valid

    def observed(self, clamped: npt.NDArray[np.float32]) -> Observed:
        """What is annotated, with what the model clamped to it expects (see `Observed`)."""
        clamped_row = self.clamped_row if self.partial.any() else _NO_ROWS
        return Observed(self.labels, self.context, self.n_valid, clamped_row, clamped)
