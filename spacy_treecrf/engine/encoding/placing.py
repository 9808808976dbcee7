"""Events become rows: each id goes to the slot of its key, to a shared slot, or to a bin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.entry_tables import BINS
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.sequences import ABSENT, MISSING, MISSING_BIN
from spacy_treecrf.engine.wide_rows import GOES_ON


class Places(NamedTuple):
    """Where ids belong. Those in the shared slots of a row stand there once, sorted."""

    slot_of: npt.NDArray[np.int32]  # shape: (n_features,), n_keys or more: the shared slots
    missing_slot: npt.NDArray[np.int32]  # shape: (n_columns,), of the column's key, or -1
    missing_ids: npt.NDArray[np.int32]  # shape: (n_keys,), what a missing cell holds
    # Features, or n_features + column for the mark of a missing column, that go to the shared
    # slots of a row where a column is missing: stand_ins[stand_first[c] : stand_first[c + 1]].
    stand_first: npt.NDArray[np.int32]  # shape: (n_columns + 1,)
    stand_ins: npt.NDArray[np.int32]


def room_for_shared(ends: npt.NDArray[np.int64], places: Places) -> npt.NDArray[np.int32]:
    """Scratch for the ids of any row's shared slots, repeated ones included."""
    widest = int(np.diff(ends).max(initial=0))
    if len(places.stand_ins):
        widest *= 1 + int(np.diff(places.stand_first).max())
    return np.empty(widest, np.int32)


@kernel
def place_events(
    ends: npt.NDArray[np.int64],
    ids: npt.NDArray[np.int32],
    places: Places,
    shared: npt.NDArray[np.int32],
    first_bin: int,
    feature_ids: npt.NDArray[np.int32],
    numeric: npt.NDArray[np.uint8],
) -> int:
    """Fill feature_ids (n_rows, n_slots) and numeric (n_rows, n_numeric).

    shared: See `room_for_shared`. first_bin: The id of the first bin of the first numeric column.
    Of two ids for one cell the last counts, and any counts more than a missing value. Returns how
    many shared slots the rows need: if there are fewer, rows go on in those of feature_ids behind
    theirs (see `wide_rows`), or are filled as far as they go where there are none.
    """
    n_features, n_columns = len(places.slot_of), len(places.missing_slot)
    n_keys = len(places.missing_ids)
    n_rows = len(ends) - 1
    behind = n_rows
    most = 0
    for row in range(n_rows):
        for slot in range(feature_ids.shape[1]):
            feature_ids[row, slot] = ABSENT
        for column in range(numeric.shape[1]):
            numeric[row, column] = MISSING_BIN
        for event in range(ends[row], ends[row + 1]):
            i = ids[event]
            if i < 0:
                continue
            if i < n_features:
                if places.slot_of[i] < n_keys:
                    feature_ids[row, places.slot_of[i]] = i
            elif i < n_features + n_columns:
                slot = places.missing_slot[i - n_features]
                if slot >= 0 and feature_ids[row, slot] == ABSENT:
                    feature_ids[row, slot] = places.missing_ids[slot]
            elif i >= first_bin:
                numeric[row, (i - first_bin) // BINS] = (i - first_bin) % BINS
        n_shared = _shared_of_row(ends, ids, places, row, shared)
        most = max(most, n_shared)
        behind = _fill_shared(feature_ids, row, n_keys, shared, n_shared, n_features, behind)
    return most


@kernel
def count_shared(
    ends: npt.NDArray[np.int64],
    ids: npt.NDArray[np.int32],
    places: Places,
    shared: npt.NDArray[np.int32],
    counts: npt.NDArray[np.int64],
) -> None:
    """Fill counts (n_rows,) with how many different ids belong to the shared slots of each row."""
    for row in range(len(counts)):
        counts[row] = _shared_of_row(ends, ids, places, row, shared)


@step
def _shared_of_row(
    ends: npt.NDArray[np.int64],
    ids: npt.NDArray[np.int32],
    places: Places,
    row: int,
    shared: npt.NDArray[np.int32],
) -> int:
    """Write the different ids for the shared slots of a row, sorted; return how many they are."""
    n_features, n_columns = len(places.slot_of), len(places.missing_slot)
    n_keys = len(places.missing_ids)
    n = 0
    for event in range(ends[row], ends[row + 1]):
        i = ids[event]
        if 0 <= i < n_features:
            if places.slot_of[i] >= n_keys:
                shared[n] = i
                n += 1
        elif n_features <= i < n_features + n_columns:
            column = i - n_features
            for p in range(places.stand_first[column], places.stand_first[column + 1]):
                shared[n] = places.stand_ins[p]
                n += 1
    return int(_distinct(shared, n))


@step
def _fill_shared(
    feature_ids: npt.NDArray[np.int32],
    row: int,
    n_keys: int,
    shared: npt.NDArray[np.int32],
    n_shared: int,
    n_features: int,
    behind: int,
) -> int:
    """Write n_shared ids into the shared slots of a row, and into rows behind if it is too narrow.

    behind: The first row behind those of the sequences that is free. Returns the next one.
    """
    n_slots = feature_ids.shape[1]
    at, slot = row, n_keys
    for p in range(n_shared):
        if slot == n_slots - 1 and p < n_shared - 1 and behind < len(feature_ids):
            feature_ids[at, slot] = GOES_ON - behind
            at, slot = behind, 0
            behind += 1
            for cell in range(n_slots):
                feature_ids[at, cell] = ABSENT
        if slot == n_slots:
            break
        i = shared[p]
        feature_ids[at, slot] = i if i < n_features else MISSING - 1 - (i - n_features)
        slot += 1
    return behind


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
