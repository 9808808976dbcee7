"""Growth of a tree that may test a share of the columns: it reads their slots alone.

Histograms are summed up row by row and slot by slot, and slots of columns that were not drawn for
the tree would take as long as the others. So those that may hold drawn columns are copied, for the
rows of the tree, and lie side by side. The tree is the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.engine.sampling import chosen
from spacy_treecrf.engine.trees.grower import grow_tree
from spacy_treecrf.engine.trees.growing_tree import Tree
from spacy_treecrf.engine.trees.tree_input import Entries, TreeInput, TreeLimits

# A copy pays where it leaves out this share of the slots at least, and is not larger than that.
LEAST_LEFT_OUT = 0.6
MOST_BYTES = 2**28


@kernel
def drawn_slots(
    slot_range: npt.NDArray[np.int32],
    column_of: npt.NDArray[np.int32],
    n_features: int,
    n_columns: int,
    n_slots: int,
    share: float,
    seed: np.uint64,
) -> npt.NDArray[np.int32]:
    """Return the slots, rising, that may hold features of columns that were drawn for a tree."""
    column_is_drawn = np.zeros(n_columns, np.bool_)
    for column in range(n_columns):
        column_is_drawn[column] = chosen(seed, column, share)
    is_drawn = np.zeros(n_slots, np.bool_)
    # The slots of the feature of a column that was seen last: those of most others are the same.
    first_seen, last_seen = np.full(n_columns, -1, np.int32), np.full(n_columns, -1, np.int32)
    for feature in range(n_features):
        column = column_of[feature]
        if column_is_drawn[column]:
            first, last = slot_range[feature, 0], slot_range[feature, 1]
            if first != first_seen[column] or last != last_seen[column]:
                is_drawn[first : min(last, n_slots)] = True
                first_seen[column], last_seen[column] = first, last
    found: npt.NDArray[np.int32] = np.flatnonzero(is_drawn).astype(np.int32)
    return found


@kernel
def _copy_slots(
    feature_ids: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int32],
    slots: npt.NDArray[np.int32],
    found: npt.NDArray[np.int32],
) -> None:
    """Fill the given rows of `found` (n_rows, n_drawn) with these slots of theirs."""
    for row in rows:
        for i in range(len(slots)):
            found[row, i] = feature_ids[row, slots[i]]


def with_drawn_slots(data: TreeInput, entries: Entries, share: float, seed: np.uint64) -> TreeInput:
    """The input whose `feature_ids` have the slots of drawn columns only, in rows with an entry."""
    n_slots = data.feature_ids.shape[1]
    goes_on = len(data.feature_ids) > len(data.lags)  # wide rows have any feature in any slot
    if share >= 1.0 or goes_on:
        return data
    counts = data.n_features, data.n_columns, n_slots
    slots = drawn_slots(data.slot_range, data.column_of, *counts, share, seed)
    pays = len(slots) <= (1.0 - LEAST_LEFT_OUT) * n_slots
    # The rows with an entry are all over the copy, so that memory pages of nearly all are used.
    if not pays or 4 * len(slots) * len(data.lags) > MOST_BYTES:
        return data
    found = np.empty((len(data.lags), len(slots)), np.int32)
    _copy_slots(data.feature_ids, entries.rows, slots, found)
    return data._replace(feature_ids=found)


def grow_on_drawn_columns(
    data: TreeInput, entries: Entries, limits: TreeLimits, seed: np.uint64
) -> Tree:
    """The tree that `grow_tree` grows."""
    drawn = with_drawn_slots(data, entries, limits.tree_columns, seed)
    tree: Tree = grow_tree(drawn, entries, limits, seed)
    return tree
