"""What the driver, the workers and the owners of features tell each other while trees grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.trees.growing_tree import Family
from spacy_treecrf.engine.trees.shared_growth import NodeSums
from spacy_treecrf.engine.trees.splitting import NodeTest, Split


class Expansion(NamedTuple):
    """A leaf of a label's tree that is split; nodes are numbered as they were made."""

    tree: int  # among those that are grown
    family: Family
    test: NodeTest
    small: int  # the child whose rows are summed up
    sums: npt.NDArray[np.float64]  # shape: (2, 4), of the left and the right child
    searched: tuple[bool, bool]  # whether each of them may be split further


class Found(NamedTuple):
    """The best split of a node among the features of one owner."""

    tree: int
    node: int
    split: Split


class TreeStart(NamedTuple):
    """The root of a tree."""

    totals: npt.NDArray[np.float64]  # shape: (4,), of the entries and of the rows trimmed away
    n_pairs: float  # of the entries


def pack_found(found: Sequence[Found]) -> npt.NDArray[np.float64]:
    """Splits as numbers, all of which a double holds. shape: (n, 9)"""
    rows = [(each.tree, each.node, *each.split) for each in found]
    return np.array(rows, np.float64).reshape(-1, 2 + len(Split._fields))


def unpack_found(packed: npt.NDArray[np.float64]) -> list[Found]:
    return [
        Found(int(tree), int(node), Split(gain, int(kind), int(feature), int(threshold), g, h, n))
        for tree, node, gain, kind, feature, threshold, g, h, n in packed.tolist()
    ]


def owner_bounds(counts: npt.NDArray[np.int64], n_owners: int) -> npt.NDArray[np.int64]:
    """Ranges of features that are about as much work: frequent ones are in more nodes.

    counts: rows that have each feature. shape of the bounds: (n_owners + 1,)
    """
    work = np.cumsum(np.log1p(counts) ** 1.25)  # as measured
    total = work[-1] if len(work) else 0.0
    inner = np.searchsorted(work, total * np.arange(1, n_owners) / n_owners)
    return np.concatenate([[0], inner, [len(counts)]]).astype(np.int64)


def slice_for_owner(found: NodeSums, owner: int, bounds: npt.NDArray[np.int64]) -> NodeSums:
    """The part of a node's sums that an owner gets.

    Features and numeric columns belong to owners in ranges, and contexts to the first.
    """
    n_owners = len(bounds) - 1
    bins = found.bins[numeric_range(len(found.bins), owner, n_owners)]
    contexts = found.contexts if owner == 0 else found.contexts[:0]
    ends = bounds[owner : owner + 2].astype(found.features.dtype)  # else all features are converted
    first, last = np.searchsorted(found.features, ends)
    return NodeSums(found.features[first:last], found.sums[first:last], bins, contexts)


def numeric_range(n_numeric: int, owner: int, n_owners: int) -> slice:
    """The numeric columns of an owner."""
    return slice(n_numeric * owner // n_owners, n_numeric * (owner + 1) // n_owners)


def better(one: Split, other: Split) -> bool:
    """Whether the other split comes before this one: by gain, and equals as in one search."""
    if other.gain != one.gain:
        return other.gain > one.gain
    if other.kind != one.kind:
        return one.kind == 0 or 0 < other.kind < one.kind
    if other.feature != one.feature:
        return int(other.feature) < int(one.feature)
    return False
