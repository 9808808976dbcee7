"""Columns that are learned from training data: which features there are, their ids and bins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.binning import MAX_BINS
from spacy_treecrf.engine.encoding.columns import PAST_ALL_SLOTS, Columns
from spacy_treecrf.engine.encoding.entry_tables import put_in_bins
from spacy_treecrf.engine.encoding.feature_dicts import Events, Ids, new_ids
from spacy_treecrf.engine.encoding.missing_methods import ABSENT_METHOD, IMPUTATION, INDICATOR
from spacy_treecrf.engine.encoding.stored_events import scan_into
from spacy_treecrf.engine.encoding.tallying import (
    SHARED,
    EventTallies,
    Tallies,
    describe,
    drop_hollow,
    homes,
    known_rows,
    missing_values,
    most_common,
    rarely_held,
)
from spacy_treecrf.engine.row_storage import IN_MEMORY, RowStorage
from spacy_treecrf.engine.sequences import ABSENT


def fit_columns(
    X: Iterable[Iterable[Any]],
    *,
    min_count: int = 1,
    max_bins: int = MAX_BINS,
    missing: str = ABSENT_METHOD,
    storage: RowStorage = IN_MEMORY,
) -> tuple[Columns, npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Learn the columns of X and encode it; features of fewer than `min_count` rows are dropped."""
    next_id = count().__next__
    seen = new_ids(next_id, indicator=missing == INDICATOR)
    events = scan_into(storage, X, seen, "X")
    _refuse_empty_sequences(events.offsets)
    tallies = EventTallies(events, storage)
    learned = learn_columns(
        seen, next_id(), tallies, min_count=min_count, max_bins=max_bins, missing=missing
    )
    learned.rename(events)
    encoded, n_shared_slots = learned.columns.place(events, 0, "X", storage=storage)
    return replace(learned.columns, n_shared_slots=n_shared_slots), *encoded


@dataclass(frozen=True)
class LearnedColumns:
    """Columns, still without shared slots, and their ids for everything that was seen."""

    columns: Columns
    ids: npt.NDArray[np.int32]  # shape: (n_seen,), those of scans under the columns

    def rename(self, events: Events) -> None:
        """Give events the ids of the columns, and numbers those of their bins, in place."""
        events.rename(self.ids)
        put_in_bins(events, self.columns.nothing, self.columns.bin_edges)


def learn_columns(
    seen: Ids,
    n_seen: int,
    tallies: Tallies,
    *,
    min_count: int,
    max_bins: int,
    missing: str,
) -> LearnedColumns:
    """Learn the columns of rows in which this was seen; features of few rows are dropped."""
    if min_count < 1:
        raise ValueError(f"treecrf: min_count is {min_count}; it must be 1 or more")
    if not 2 <= max_bins <= MAX_BINS:
        raise ValueError(f"treecrf: max_bins is {max_bins}; it must be from 2 to {MAX_BINS}")
    found = _tally_indicators(seen, tallies, n_seen, missing, min_count)
    kept = np.argsort(-found.counts, kind="stable")
    kept = kept[: np.count_nonzero(found.counts >= min_count)]
    new_id = np.full(n_seen, ABSENT, dtype=np.int64)
    new_id[kept] = np.arange(len(kept))
    bins = tallies.bins(found.numeric, max_bins, n_seen)
    columns = replace(
        _name_columns(seen, found, kept, new_id),
        bin_edges=[each.edges for each in bins],
        bin_values=np.array([each.values for each in bins]).reshape(len(bins), MAX_BINS + 1),
        missing=missing,
    )
    if missing == IMPUTATION:
        imputed = _stand_ins(columns, seen, tallies, found, n_seen)
        medians = np.array([each.median for each in bins], np.uint8)
        columns = replace(columns, imputed=imputed, imputed_bins=medians)
    return LearnedColumns(columns, _ids_of_columns(columns, seen, found, new_id))


@dataclass(frozen=True)
class _Indicators:
    """What training data say about the ids seen in them, in their order of appearance."""

    numeric: npt.NDArray[np.int32]  # ids that are numeric columns
    first_seen: npt.NDArray[np.int64]  # shape: (n_seen,), the first id of the same name
    home: npt.NDArray[np.int64]  # shape: (n_seen,), slot, SHARED, or -1 for no indicator
    counts: npt.NDArray[np.int64]  # shape: (n_seen,), rows that hold the id


def _refuse_empty_sequences(offsets: npt.NDArray[np.int64]) -> None:
    if len(offsets) == 1:
        raise ValueError("treecrf: X holds no sequences; training needs at least one")
    if len(empty := np.flatnonzero(np.diff(offsets) == 0)):
        raise ValueError(
            f"treecrf: X[{empty[0]}] is an empty sequence; remove it (and its labels) for training"
        )


def _tally_indicators(
    seen: Ids, tallies: Tallies, n_seen: int, missing: str, min_count: int
) -> _Indicators:
    """Find the numeric columns, and count the rows of all else that was seen, by its name."""
    # a key is numeric as soon as one of its values is not 1; ids rise by first appearance
    numeric, proper = tallies.numbers()
    hollow = drop_hollow(seen, proper)
    numeric = numeric[~np.isin(numeric, hollow)]
    first_seen, home = homes(seen, numeric, n_seen)
    home[hollow] = -1
    if missing == INDICATOR:  # the lowest bin of a numeric column is that of missing numbers
        home[missing_values(seen, numeric)] = -1
    counts, displaced = tallies.tally(first_seen, home, len(seen.strings))
    if missing == ABSENT_METHOD:
        kept = np.where(counts >= min_count, counts, 0)
        displaced = np.union1d(displaced, rarely_held(kept, home, tallies.n_rows))
    # Two values of one key in a row, by way of nested dicts, or keys that hardly any row has.
    if len(displaced):
        home[displaced] = SHARED
        counts, _ = tallies.tally(first_seen, home, len(seen.strings))
    return _Indicators(numeric, first_seen, home, counts)


def _name_columns(
    seen: Ids, found: _Indicators, kept: npt.NDArray[np.int64], new_id: npt.NDArray[np.int64]
) -> Columns:
    """Columns of the kept features, still without bins and shared slots.

    kept: what was seen, by feature; new_id: the feature of what was seen, or ABSENT.
    """
    used_slots, slot_of = np.unique(found.home[kept], return_inverse=True)  # SHARED sorts last
    n_keys = int(np.count_nonzero(used_slots != SHARED))
    past_slots = np.where(slot_of < n_keys, slot_of + 1, PAST_ALL_SLOTS)
    keys = list(seen.strings)
    feature_names, column_of, column_names = describe(seen, found.numeric, new_id)
    number_names = {number: key for key, number in seen.numbers.items()}
    return Columns(
        feature_names=feature_names,
        counts=found.counts[kept],
        column_of=column_of,
        slot_range=np.stack([slot_of, past_slots], axis=1).astype(np.int32),
        slot_keys=[keys[slot] for slot in used_slots[:n_keys].tolist()],
        n_shared_slots=0,
        column_names=column_names,
        numeric_names=[number_names[number] for number in found.numeric.tolist()],
        bin_edges=[],
        bin_values=np.empty((0, MAX_BINS + 1)),
    )


def _stand_ins(
    columns: Columns, seen: Ids, tallies: Tallies, found: _Indicators, n_seen: int
) -> npt.NDArray[np.int32]:
    """Features that stand for missing values, rising."""
    n_events = tallies.events_of(n_seen)
    known = known_rows(tallies.n_rows, n_events, seen, columns.column_names)[columns.column_of]
    own = (found.home >= 0) & (found.home != SHARED)
    with_value = np.bincount(found.home[own], found.counts[own], minlength=len(seen.strings))
    slots = {key: slot for slot, key in enumerate(seen.strings)}
    used = np.array([slots[key] for key in columns.slot_keys], np.int64)
    valued = with_value.astype(np.int64)[used]
    slots_of = columns.slot_range[:, 0].astype(np.int64)
    return most_common(columns.counts, slots_of, known, valued)


def _ids_of_columns(
    columns: Columns, seen: Ids, found: _Indicators, new_id: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    """The ids of scans under the columns for those in order of appearance. shape: (n_seen,)"""
    n_features, n_numeric = len(columns.feature_names), len(columns.numeric_names)
    renamed = new_id[found.first_seen]
    nothing = columns.nothing
    renamed[found.numeric] = nothing + 1 + np.arange(n_numeric)
    for column, key in enumerate(columns.column_names):
        if key in seen.missing:
            renamed[seen.missing[key]] = n_features + column
    renamed[renamed == ABSENT] = nothing
    return renamed.astype(np.int32)
