"""Missing branches: where a row goes at a node that tests a value which the row lacks.

It goes both ways in parts, or follows surrogates: tests of other columns that stand in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.trees.splitting import CATEGORICAL, NUMERIC
from spacy_treecrf.storage.state_reader import StateReader

# The tests that stand in for a missing one, at each node (five, as in CART programs).
MAX_SURROGATES = 5


class TreeBranches(NamedTuple):
    """The missing branches of one tree; a node's surrogates are tried in their order."""

    right_share: npt.NDArray[np.float32]  # shape: (n_nodes,), of the rows that know the answer
    n_surrogates: npt.NDArray[np.int32]  # shape: (n_nodes,)
    kind: npt.NDArray[np.uint8]  # shape: (n_surrogates.sum(),), node after node
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    flip: npt.NDArray[np.bool_]  # the test holds: left


@dataclass(frozen=True)
class MissingBranches:
    """The missing branches of a forest; at nodes without surrogates rows go both ways."""

    right_share: npt.NDArray[np.float32]  # shape: (n_nodes,)
    first: npt.NDArray[np.int64]  # shape: (n_nodes + 1,), of each node's surrogates
    kind: npt.NDArray[np.uint8]  # shape: (n_surrogates,)
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    flip: npt.NDArray[np.bool_]

    @classmethod
    def of_trees(cls, trees: Sequence[TreeBranches]) -> MissingBranches:
        """Return the branches of trees, one after the other."""
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
    def all_left(cls, n_nodes: int) -> MissingBranches:
        """Return branches by which every row that lacks the tested value goes left.

        Trees that were grown without regard to missing values get these.
        """
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
    def join(cls, parts: Sequence[MissingBranches]) -> MissingBranches:
        """Return the branches of several forests, one after the other."""
        lengths = [np.diff(part.first) for part in parts]
        return cls(
            _joined([part.right_share for part in parts], np.float32),
            np.concatenate([[0], np.cumsum(_joined(lengths, np.int64))]).astype(np.int64),
            *(np.concatenate([getattr(part, name) for part in parts]) for name in SURROGATE_FIELDS),
        )

    def reordered(self, nodes: npt.NDArray[np.int64]) -> MissingBranches:
        """Return the branches of the given nodes, in the given order."""
        lengths = np.diff(self.first)[nodes]
        first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        at = np.repeat(self.first[nodes] - first[:-1], lengths) + np.arange(first[-1])
        return MissingBranches(
            self.right_share[nodes], first, *(getattr(self, name)[at] for name in SURROGATE_FIELDS)
        )

    def to_state(self) -> dict[str, Any]:
        """Return what is stored of the branches."""
        return dict(self.__dict__)

    @classmethod
    def from_state(
        cls, state: StateReader, n_nodes: int, n_features: int, n_numeric: int
    ) -> MissingBranches:
        """Read stored branches; refuse tests of features that do not exist."""
        first = state.array("first", np.int64, (n_nodes + 1,), low=0)
        kind = state.array("kind", np.uint8, (None,), low=CATEGORICAL, high=NUMERIC)
        n = len(kind)
        branches = cls(
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
        if np.any(branches.feature >= limit):
            state.fail("feature", "features and numeric columns of the model", "others")
        return branches


SURROGATE_FIELDS = ("kind", "feature", "threshold", "flip")


def _joined(parts: Sequence[npt.NDArray[Any]], dtype: type) -> npt.NDArray[Any]:
    """Return the arrays one after the other; there may be none."""
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype)
