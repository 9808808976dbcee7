"""Conjugate directions in function space (Kersting & Gutmann 2006, algorithm 1).

A round's functional gradient Delta_m is its trees (and, in family "separate", its transitions);
the step goes along d_m = Delta_m + beta_m d_{m-1}. A direction is never copied: it is a sum of
trees that the model has anyway, d_m = sum_i share_i Delta_i, so a step only adds eta_m share_i to
the factor by which tree i counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.storage.state_reader import StateReader

# A tree whose share in the direction falls below this is forgotten: its part of a step would be
# lost in the rounding of leaf values, and a round need not look at it any more.
LEAST_SHARE = 2.0**-10
# What a stored direction may hold; steps never lead out of it.
MAX_SCALE = 1e6
MAX_SHARE = 1e3


@dataclass(frozen=True)
class Direction:
    """How much each tree counts, and its share in the last direction.

    Trees are in the order in which they were grown.
    """

    scale: npt.NDArray[np.float64]  # shape: (n_trees,), sum_m eta_m share_{i,m}
    share: npt.NDArray[np.float64]  # shape: (n_trees,), beta_{i,m} = prod_{j = i+1..m} beta_j
    edges: npt.NDArray[np.float64]  # shape: (n_labels + 1, n_labels), of the last direction
    edge_gradient: npt.NDArray[np.float64]  # the same, of the last Delta

    @classmethod
    def start(cls, n_trees: int, n_labels: int) -> Direction:
        """The state after trees that belong to no direction."""
        nothing = np.zeros((n_labels + 1, n_labels))
        return cls(np.ones(n_trees), np.zeros(n_trees), nothing, nothing)

    def left(self, n_new: int, n_labels: int | None = None) -> Direction:
        """The state after n_new trees that are no conjugate step: the next one begins anew."""
        start = Direction.start(len(self.scale) + n_new, n_labels or self.edges.shape[1])
        return replace(start, scale=np.concatenate([self.scale, np.ones(n_new)]))

    def turned(self, beta: float, n_new: int, edge_gradient: npt.NDArray[np.float64]) -> Direction:
        """The direction after this one; its n_new trees count nothing until a step is taken."""
        share = np.clip(self.share * beta, -MAX_SHARE, MAX_SHARE)
        share[np.abs(share) < LEAST_SHARE] = 0.0
        return Direction(
            np.concatenate([self.scale, np.zeros(n_new)]),
            np.concatenate([share, np.ones(n_new)]),
            np.clip(edge_gradient + beta * self.edges, -MAX_SHARE, MAX_SHARE),
            edge_gradient,
        )

    def stepped(self, eta: float) -> Direction:
        """The state after a step of length eta along the direction."""
        scale = self.scale + eta * self.share
        return replace(self, scale=np.clip(scale, -MAX_SCALE, MAX_SCALE))

    @property
    def n_active(self) -> int:
        """The number of trees from the first one that has a share in the direction on."""
        used = np.flatnonzero(self.share)
        return len(self.share) - int(used[0]) if len(used) else 0

    def to_state(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @classmethod
    def from_state(cls, state: dict[str, Any], n_trees: int, n_labels: int) -> Direction:
        """Read a stored direction of these trees; every field is checked."""
        fields = StateReader(state, path="direction")
        shape = (n_labels + 1, n_labels)
        direction = cls(
            fields.array("scale", np.float64, (n_trees,), -MAX_SCALE, MAX_SCALE),
            fields.array("share", np.float64, (n_trees,), -MAX_SHARE, MAX_SHARE),
            fields.array("edges", np.float64, shape, -MAX_SHARE, MAX_SHARE),
            fields.array("edge_gradient", np.float64, shape, -MAX_SHARE, MAX_SHARE),
        )
        fields.done()
        if direction.n_active and np.any(direction.share[-n_labels:] != 1.0):
            fields.fail("share", f"1 for the last {n_labels} trees", "others")
        if 0 < direction.n_active < n_labels:
            fields.fail("share", f"at least {n_labels} trees in the direction", "fewer")
        return direction


def inner_product(
    data: Sequences,
    first: npt.NDArray[np.float32],
    second: npt.NDArray[np.float32],
    first_edges: npt.NDArray[np.float64],
    second_edges: npt.NDArray[np.float64],
    edge_rows: npt.NDArray[np.float64],
) -> float:
    """The inner product <f, f'> on the training examples: the sum of f f' over all of them.

    first, second: f and f' (n_rows, n_contexts, n_labels), 0 in contexts that a row does not have;
    rows count by their weights. first_edges, second_edges: (n_labels + 1, n_labels), functions of
    two labels, which are the same at each of the edge_rows positions that have them.
    """
    total = float(np.sum(first_edges * second_edges * edge_rows))
    for chunk in data.chunks:  # in order, and no BLAS: the same for any number of threads
        rows = data.rows_of(chunk)
        products = first[rows].astype(np.float64) * second[rows]
        total += float(np.sum(products * data.weights[rows, None, None]))
    return total


def polak_ribiere(new_new: float, new_last: float, last_last: float) -> float:
    """Polak and Ribiere's beta = <D_m, D_m - D_{m-1}> / <D_{m-1}, D_{m-1}>, and 0 instead of less.

    With a beta of 0 the direction begins anew.
    """
    if last_last <= 0.0:
        return 0.0
    return max(0.0, (new_new - new_last) / last_last)
