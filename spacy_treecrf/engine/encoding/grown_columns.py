"""Columns that know more than before: what new data show is added behind what was known.

Features keep their ids and numeric columns their bins, so that whatever was learned keeps its
meaning. What is added has no weight yet, and no tree tests it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.attribute_columns import AttributeColumns
from spacy_treecrf.engine.encoding.columns import PAST_ALL_SLOTS, Columns
from spacy_treecrf.engine.encoding.missing_methods import IMPUTATION, IN_TREES


def grown_columns(known: Columns, found: Columns) -> Columns:
    """The known columns with those features and numeric columns of the found ones that are new.

    Returns the known columns themselves if nothing is.
    """
    if isinstance(known, AttributeColumns):
        raise ValueError(
            "treecrf: a model that CRFsuite has trained cannot take in new features; train a new "
            "model on all data"
        )
    added = _added(known, found)
    if not len(added.features) and not len(added.numeric):
        return known
    numeric_names = [*known.numeric_names, *(found.numeric_names[d] for d in added.numeric)]
    n_keys = len(added.slot_keys)
    slot_range = np.concatenate([known.slot_range, _slots(found, added)])
    shared = slot_range[:, 1] == PAST_ALL_SLOTS
    slot_range[shared, 0] = n_keys  # they lie behind the slots of keys, of which there are more
    most_shared = int(shared.sum())
    if known.missing in IN_TREES:  # a row may have a mark for each column
        most_shared += len(added.column_names)
    imputed_bins = known.imputed_bins
    if known.missing == IMPUTATION:
        imputed_bins = np.concatenate([imputed_bins, found.imputed_bins[added.numeric]])
    return Columns(
        feature_names=[*known.feature_names, *(found.feature_names[f] for f in added.features)],
        counts=_counts(known, found, added.features),
        column_of=np.concatenate([known.column_of, _columns_of(found, added)]),
        slot_range=slot_range,
        slot_keys=added.slot_keys,
        n_shared_slots=min(max(known.n_shared_slots, found.n_shared_slots), most_shared),
        column_names=added.column_names,
        numeric_names=numeric_names,
        bin_edges=[*known.bin_edges, *(found.bin_edges[d] for d in added.numeric)],
        bin_values=np.concatenate([known.bin_values, found.bin_values[added.numeric]]),
        missing=known.missing,
        imputed=known.imputed,
        imputed_bins=imputed_bins,
    )


@dataclass(frozen=True)
class _Added:
    """What of the found columns is new, by their numbers, and the names that there are then."""

    features: npt.NDArray[np.int64]
    numeric: npt.NDArray[np.int64]
    slot_keys: list[str]  # those known, and new ones
    column_names: list[str]  # those known, and new ones


def _added(known: Columns, found: Columns) -> _Added:
    """Find what is new. A key that was numeric stays so, and one that was a flag."""
    names, numbers = set(known.feature_names), set(known.numeric_names)
    features = [
        f for f, name in enumerate(found.feature_names) if name not in names and name not in numbers
    ]
    numeric = [
        d for d, name in enumerate(found.numeric_names) if name not in numbers and name not in names
    ]
    columns = [found.column_names[found.column_of[f]] for f in features]
    own = found.slot_range[features, 0] < len(found.slot_keys)
    # keys that nobody knew; others keep the place that they have
    keys = [
        found.slot_keys[found.slot_range[f, 0]]
        for f, has_slot in zip(features, own.tolist(), strict=True)
        if has_slot
    ]
    known_columns = set(known.column_names)
    return _Added(
        np.array(features, np.int64),
        np.array(numeric, np.int64),
        [*known.slot_keys, *dict.fromkeys(key for key in keys if key not in known_columns)],
        list(dict.fromkeys([*known.column_names, *columns])),
    )


def _slots(found: Columns, added: _Added) -> npt.NDArray[np.int32]:
    """Where the new features belong: the slot of their key if it has one, else shared slots."""
    slot_of = {key: slot for slot, key in enumerate(added.slot_keys)}
    slots = np.full((len(added.features), 2), PAST_ALL_SLOTS, np.int32)
    for i, f in enumerate(added.features.tolist()):
        first = int(found.slot_range[f, 0])
        slot = slot_of.get(found.slot_keys[first]) if first < len(found.slot_keys) else None
        if slot is not None:
            slots[i] = slot, slot + 1
    return slots


def _columns_of(found: Columns, added: _Added) -> npt.NDArray[np.int32]:
    number = {name: c for c, name in enumerate(added.column_names)}
    names = [found.column_names[c] for c in found.column_of[added.features].tolist()]
    return np.array([number[name] for name in names], np.int32)


def _counts(
    known: Columns, found: Columns, features: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """How many rows each feature has had, at most: the numbers must not rise from id to id.

    Trees look at features from the first one to the last that can have enough rows.
    """
    now = dict(zip(found.feature_names, found.counts.tolist(), strict=True))
    seen = [max(n, now.get(f, 0)) for f, n in zip(known.feature_names, known.counts, strict=True)]
    counts = np.concatenate([np.array(seen, np.int64), found.counts[features]])
    return np.maximum.accumulate(counts[::-1])[::-1].copy()
