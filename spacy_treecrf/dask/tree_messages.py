"""What the driver, the workers and the owners of features tell each other while trees grow."""

from __future__ import annotations

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


def slice_for_owner(found: NodeSums, owner: int, n_owners: int) -> NodeSums:
    """The part of a node's sums that an owner gets, its features numbered by their owner.

    Feature f belongs to owner f % n_owners, as number f // n_owners; numeric columns belong to
    owners in ranges, and contexts to the first.
    """
    bins = found.bins[numeric_range(len(found.bins), owner, n_owners)]
    contexts = found.contexts if owner == 0 else found.contexts[:0]
    if n_owners == 1:
        return NodeSums(found.features, found.sums, bins, contexts)
    own = found.features % n_owners == owner
    return NodeSums(found.features[own] // n_owners, found.sums[own], bins, contexts)


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
