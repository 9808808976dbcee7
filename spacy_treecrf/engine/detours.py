"""Detours: where a row goes at a node whose test it cannot answer, because the value is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.splitting import CATEGORICAL, NUMERIC

# The tests that stand in for a missing one, at each node (five, as in CART programs).
MAX_SURROGATES = 5


class TreeDetours(NamedTuple):
    """The detours of one tree's nodes; surrogates are in the order in which they are tried."""

    right_share: npt.NDArray[np.float32]  # shape: (n_nodes,), of the rows that know the answer
    n_surrogates: npt.NDArray[np.int32]  # shape: (n_nodes,)
    kind: npt.NDArray[np.uint8]  # shape: (n_surrogates.sum(),), node after node
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    flip: npt.NDArray[np.bool_]  # the test holds: left


@dataclass(frozen=True)
class Detours:
    """The detours of all nodes of a forest; without surrogates rows go both ways."""

    right_share: npt.NDArray[np.float32]  # shape: (n_nodes,)
    first: npt.NDArray[np.int64]  # shape: (n_nodes + 1,), of each node's surrogates
    kind: npt.NDArray[np.uint8]  # shape: (n_surrogates,)
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    flip: npt.NDArray[np.bool_]

    @classmethod
    def of_trees(cls, trees: Sequence[TreeDetours]) -> Detours:
        n_surrogates = _joined([tree.n_surrogates for tree in trees], np.int32)
        return cls(
            _joined([tree.right_share for tree in trees], np.float32),
            np.concatenate([[0], np.cumsum(n_surrogates)]).astype(np.int64),
            _joined([tree.kind for tree in trees], np.uint8),
            _joined([tree.feature for tree in trees], np.int32),
            _joined([tree.threshold for tree in trees], np.int32),
            _joined([tree.flip for tree in trees], np.bool_),
        )

    @classmethod
    def none(cls, n_nodes: int) -> Detours:
        """Of trees that were made without: every row that cannot answer goes left."""
        nothing = np.zeros(0, np.int32)
        return cls(
            np.zeros(n_nodes, np.float32),
            np.zeros(n_nodes + 1, np.int64),
            nothing.astype(np.uint8),
            nothing,
            nothing,
            nothing.astype(np.bool_),
        )

    @classmethod
    def join(cls, parts: Sequence[Detours]) -> Detours:
        """Those of several forests, one after the other."""
        lengths = [np.diff(part.first) for part in parts]
        return cls(
            _joined([part.right_share for part in parts], np.float32),
            np.concatenate([[0], np.cumsum(_joined(lengths, np.int64))]).astype(np.int64),
            *(np.concatenate([getattr(part, name) for part in parts]) for name in SURROGATE_FIELDS),
        )

    def reordered(self, nodes: npt.NDArray[np.int64]) -> Detours:
        """Those of the given nodes, in the given order."""
        lengths = np.diff(self.first)[nodes]
        first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        at = np.repeat(self.first[nodes] - first[:-1], lengths) + np.arange(first[-1])
        return Detours(
            self.right_share[nodes], first, *(getattr(self, name)[at] for name in SURROGATE_FIELDS)
        )

    def to_state(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @classmethod
    def from_state(cls, state: Fields, n_nodes: int, n_features: int, n_numeric: int) -> Detours:
        """Read stored detours; refuse tests of features that do not exist."""
        first = state.array("first", np.int64, (n_nodes + 1,), low=0)
        kind = state.array("kind", np.uint8, (None,), low=CATEGORICAL, high=NUMERIC)
        n = len(kind)
        detours = cls(
            state.array("right_share", np.float32, (n_nodes,), low=0.0, high=1.0),
            first,
            kind,
            state.array("feature", np.int32, (n,), low=0),
            state.array("threshold", np.int32, (n,), low=0, high=255),
            state.array("flip", np.bool_, (n,)),
        )
        state.done()
        lengths = np.diff(first)
        if first[0] != 0 or first[-1] != n or np.any((lengths < 0) | (lengths > MAX_SURROGATES)):
            state.fail("first", f"steps of 0 to {MAX_SURROGATES} from 0 to {n}", "others")
        limit = np.where(kind == CATEGORICAL, n_features, n_numeric)
        if np.any(detours.feature >= limit):
            state.fail("feature", "features and numeric columns of the model", "others")
        return detours


SURROGATE_FIELDS = ("kind", "feature", "threshold", "flip")


def _joined(parts: Sequence[npt.NDArray[Any]], dtype: type) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype)
