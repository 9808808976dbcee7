"""Events become rows: each id goes to the slot of its key, to a shared slot, or to a bin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.entry_tables import BINS
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.sequences import ABSENT, MISSING, MISSING_BIN


class Places(NamedTuple):
    """Where ids belong. Those in the shared slots of a row stand there once, sorted."""

    slot_of: npt.NDArray[np.int32]  # shape: (n_features,), n_keys or more: the shared slots
    missing_slot: npt.NDArray[np.int32]  # shape: (n_columns,), of the column's key, or -1
    missing_ids: npt.NDArray[np.int32]  # shape: (n_keys,), what a missing cell holds
    # Features, or n_features + column for the mark of a missing column, that go to the shared
    # slots of a row where a column is missing: stand_ins[stand_first[c] : stand_first[c + 1]].
    stand_first: npt.NDArray[np.int32]  # shape: (n_columns + 1,)
    stand_ins: npt.NDArray[np.int32]


@kernel
def place_events(
    ends: npt.NDArray[np.int64],
    ids: npt.NDArray[np.int32],
    places: Places,
    first_bin: int,
    feature_ids: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
) -> int:
    """Fill feature_ids (n_rows, n_slots) and numeric (n_rows, n_numeric).

    first_bin: The id of the first bin of the first numeric column.
    Of two ids for one cell the last counts, and any counts more than a missing value. Returns how
    many shared slots the rows need: if there are fewer, rows are filled as far as they go.
    """
    n_features, n_columns = len(places.slot_of), len(places.missing_slot)
    n_keys = len(places.missing_ids)
    n_shared_slots = feature_ids.shape[1] - n_keys
    shared = np.empty(_most_shared(ends, ids, places), np.int32)
    most = 0
    for row in range(len(ends) - 1):
        for slot in range(feature_ids.shape[1]):
            feature_ids[row, slot] = ABSENT
        for column in range(numeric.shape[1]):
            numeric[row, column] = MISSING_BIN
        n_shared = 0
        for event in range(ends[row], ends[row + 1]):
            i = ids[event]
            if i < 0:
                continue
            if i < n_features:
                if places.slot_of[i] < n_keys:
                    feature_ids[row, places.slot_of[i]] = i
                else:
                    shared[n_shared] = i
                    n_shared += 1
            elif i < n_features + n_columns:
                column = i - n_features
                slot = places.missing_slot[column]
                if slot >= 0 and feature_ids[row, slot] == ABSENT:
                    feature_ids[row, slot] = places.missing_ids[slot]
                for p in range(places.stand_first[column], places.stand_first[column + 1]):
                    shared[n_shared] = places.stand_ins[p]
                    n_shared += 1
            elif i >= first_bin:
                numeric[row, (i - first_bin) // BINS] = (i - first_bin) % BINS
        n_shared = _distinct(shared, n_shared)
        most = max(most, n_shared)
        for p in range(min(n_shared, n_shared_slots)):
            i = shared[p]
            feature_ids[row, n_keys + p] = i if i < n_features else MISSING - 1 - (i - n_features)
    return most


@step
def _most_shared(ends: npt.NDArray[np.int64], ids: npt.NDArray[np.int32], places: Places) -> int:
    """Return how many ids the shared slots of a row may get, repeated ones included."""
    n_features, n_columns = len(places.slot_of), len(places.missing_slot)
    most = 0
    for row in range(len(ends) - 1):
        n = ends[row + 1] - ends[row]
        if len(places.stand_ins):
            for event in range(ends[row], ends[row + 1]):
                column = ids[event] - n_features
                if 0 <= column < n_columns:
                    n += places.stand_first[column + 1] - places.stand_first[column]
        most = max(most, n)
    return most


@step
def _distinct(ids: npt.NDArray[np.int32], n: int) -> int:
    """Sort the first n ids and drop repeated ones; returns how many are left."""
    gap = 1
    while gap < n // 3:  # Shell's sort: most rows have few, some have thousands
        gap = 3 * gap + 1
    while gap:
        for i in range(gap, n):
            held = ids[i]
            at = i
            while at >= gap and ids[at - gap] > held:
                ids[at] = ids[at - gap]
                at -= gap
            ids[at] = held
        gap //= 3
    kept = min(n, 1)
    for i in range(1, n):
        if ids[i] != ids[kept - 1]:
            ids[kept] = ids[i]
            kept += 1
    return kept
