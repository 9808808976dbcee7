"""Columns that know only some of their features, for models that use no others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.attribute_columns import AttributeColumns
from spacy_treecrf.engine.encoding.columns import PAST_ALL_SLOTS, Columns
from spacy_treecrf.engine.encoding.missing_methods import ABSENT_METHOD


def may_drop_features(columns: Columns) -> bool:
    """Whether a feature that nothing uses is the same as an absent one.

    It is not where its column must be known to tell which values are missing, or where it is known
    by its number.
    """
    return columns.missing == ABSENT_METHOD and not isinstance(columns, AttributeColumns)


def in_order_of_names(columns: Columns, features: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The features sorted by slot and name: neighbours then begin with the same letters."""
    names = columns.feature_names
    slots = columns.slot_range[:, 0].tolist()
    return np.array(sorted(features.tolist(), key=lambda f: (slots[f], names[f])), np.int64)


def with_features(columns: Columns, kept: npt.NDArray[np.int64]) -> Columns:
    """The columns with the kept features alone, numbered in this order; counts are not kept."""
    n_keys = len(columns.slot_keys)
    slots = columns.slot_range[kept, 0]
    shared = slots >= n_keys
    used = np.unique(slots[~shared])
    slot_range = np.empty((len(kept), 2), np.int32)
    slot_range[:, 0] = np.searchsorted(used, slots)
    slot_range[:, 1] = slot_range[:, 0] + 1
    slot_range[shared] = len(used), PAST_ALL_SLOTS
    return replace(
        columns,
        feature_names=[columns.feature_names[f] for f in kept.tolist()],
        counts=np.ones(len(kept), np.int64),
        column_of=columns.column_of[kept],
        slot_range=slot_range,
        slot_keys=[columns.slot_keys[slot] for slot in used.tolist()],
        n_shared_slots=min(columns.n_shared_slots, int(shared.sum())),
    )
