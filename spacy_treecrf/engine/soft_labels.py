"""Soft labels: log weights of labels and of neighbouring labels, in place of known labels.

Many rows may share one table of weights, so that rows name theirs by number: what an annotator's
label says of the true one is the same wherever the annotator has given it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

NO_TABLE = -1


@dataclass(frozen=True)
class SoftLabels:
    """Log weights w of labels and of edges; a path weighs the product of w along it.

    A row that names no table of labels has its label, or, without one, weighs all labels alike.
    """

    node_table: npt.NDArray[np.int32]  # shape: (n_rows,), which of `nodes`, or NO_TABLE
    nodes: npt.NDArray[np.float32]  # shape: (n_tables, n_labels), -inf rules a label out
    edge_table: npt.NDArray[np.int32]  # shape: (n_rows,), which of `edges`, or NO_TABLE
    # shape: (n_edge_tables, n_labels, n_labels), of the label before and the label of the row
    edges: npt.NDArray[np.float32]
    # shape: (n_labels, n_labels), P(given | true) before anything is learned. With it, `nodes` are
    # what annotators' labels say (see `boosting/annotators`), and training estimates them.
    prior: npt.NDArray[np.float64] | None = None

    @classmethod
    def none(cls, n_rows: int, n_labels: int) -> SoftLabels:
        """Soft labels of rows that have none."""
        nothing = np.full(n_rows, NO_TABLE, np.int32)
        return cls(
            nothing,
            np.zeros((0, n_labels), np.float32),
            nothing,
            np.zeros((0, n_labels, n_labels), np.float32),
        )

    @property
    def is_soft(self) -> npt.NDArray[np.bool_]:
        """Which rows name a table. shape: (n_rows,)"""
        soft: npt.NDArray[np.bool_] = (self.node_table != NO_TABLE) | (self.edge_table != NO_TABLE)
        return soft

    def of_rows(self, rows: npt.NDArray[np.int64] | slice) -> SoftLabels:
        """The soft labels of some rows; tables are shared, not copied."""
        return replace(self, node_table=self.node_table[rows], edge_table=self.edge_table[rows])

    def arrays(self) -> list[npt.NDArray[np.generic]]:
        """All arrays that there are, in the order of the fields."""
        found = [getattr(self, field.name) for field in fields(self)]
        return [array for array in found if array is not None]

    def best_labels(self, labels: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The labels, with the one of the largest weight where a row names a table of labels."""
        if not len(self.nodes):
            return labels
        best = self.nodes.argmax(axis=1).astype(np.int32)
        soft = self.node_table != NO_TABLE
        return np.where(soft, best[np.where(soft, self.node_table, 0)], labels)


def join_soft_labels(parts: list[SoftLabels | None], n_rows: list[int]) -> SoftLabels | None:
    """Soft labels of the rows of all parts, in this order; None if no part has any."""
    given = [part for part in parts if part is not None]
    if not given:
        return None
    n_labels = given[0].nodes.shape[1]
    whole = [part or SoftLabels.none(n, n_labels) for part, n in zip(parts, n_rows, strict=True)]
    return SoftLabels(
        _joined_numbers([part.node_table for part in whole], [len(part.nodes) for part in whole]),
        np.concatenate([part.nodes for part in whole]),
        _joined_numbers([part.edge_table for part in whole], [len(part.edges) for part in whole]),
        np.concatenate([part.edges for part in whole]),
        given[0].prior,
    )


def _joined_numbers(
    numbers: list[npt.NDArray[np.int32]], sizes: list[int]
) -> npt.NDArray[np.int32]:
    """Numbers of tables, counted through all parts. sizes: how many tables each part has."""
    firsts = np.concatenate([[0], np.cumsum(sizes[:-1])]).astype(np.int32)
    shifted = [
        np.where(own == NO_TABLE, np.int32(NO_TABLE), own + first)
        for own, first in zip(numbers, firsts, strict=True)
    ]
    return np.concatenate(shifted).astype(np.int32)
