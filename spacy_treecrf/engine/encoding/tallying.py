"""What the events of a training set say: rows with each feature, names, bins, common values.

Ids here are those that the events were read with, in their order of appearance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.binning import (
    ColumnBins,
    CountedValues,
    column_bins,
    count_values,
)
from spacy_treecrf.engine.encoding.feature_dicts import (
    BLOCK_ROWS,
    Events,
    Ids,
    as_string_values,
    named,
)
from spacy_treecrf.engine.encoding.missing_methods import MISSING_VALUE
from spacy_treecrf.engine.row_storage import IN_MEMORY, GrowingArray, RowStorage
from spacy_treecrf.engine.sequences import ABSENT
from spacy_treecrf.engine.wide_rows import LARGE

BLOCK_EVENTS = 1 << 20  # looked at together: bounds the temporary arrays
MAX_EMPTY_CELLS = 64  # for each that holds an id
SHARED = 2**31 - 1  # home of a feature that is in no key's slot


class Numbers(NamedTuple):
    """How ids appear in events. Both rise."""

    given: npt.NDArray[np.int32]  # ids that came with a number other than 1
    proper: npt.NDArray[np.int32]  # ids that came without a number, or with one that is not NaN


class Tallies(Protocol):
    """What learning columns asks of the events of all rows, wherever these are."""

    @property
    def n_rows(self) -> int: ...

    def numbers(self) -> Numbers: ...

    def tally(
        self, first_seen: npt.NDArray[np.int64], home: npt.NDArray[np.int64], n_keys: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """See the function of this name."""
        ...

    def events_of(self, n_seen: int) -> npt.NDArray[np.int64]:
        """How many events each id has without a number. shape: (n_seen,)"""
        ...

    def bins(self, numeric: npt.NDArray[np.int32], max_bins: int, n_seen: int) -> list[ColumnBins]:
        """The bins of each numeric column."""
        ...


class EventTallies:
    """The tallies of events that are all here."""

    def __init__(self, events: Events, storage: RowStorage = IN_MEMORY) -> None:
        self._events = events
        self._storage = storage

    @property
    def n_rows(self) -> int:
        return self._events.n_rows

    def numbers(self) -> Numbers:
        return numbers_in(self._events)

    def tally(
        self, first_seen: npt.NDArray[np.int64], home: npt.NDArray[np.int64], n_keys: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        return tally(self._events, first_seen, home, n_keys)

    def events_of(self, n_seen: int) -> npt.NDArray[np.int64]:
        return events_of(self._events, n_seen)

    def bins(self, numeric: npt.NDArray[np.int32], max_bins: int, n_seen: int) -> list[ColumnBins]:
        if not len(numeric):
            return []
        numbers = values_of_columns(self._events, numeric, n_seen, self._storage)
        return [column_bins(count_values(own), max_bins) for own in numbers]


def numbers_in(events: Events) -> Numbers:
    numbers = proper = np.empty(0, np.int32)
    used = 0
    for ids in _some_ids(events):
        given = ids < 0
        with_number = ~ids[given]
        values = events.values[used : used + len(with_number)]
        used += len(with_number)
        numbers = np.union1d(numbers, with_number)
        proper = np.union1d(proper, np.union1d(ids[~given], with_number[~np.isnan(values)]))
    return Numbers(numbers.astype(np.int32), proper.astype(np.int32))


def events_of(events: Events, n_seen: int) -> npt.NDArray[np.int64]:
    """How many events each id has without a number. shape: (n_seen,)"""
    counts = np.zeros(n_seen, np.int64)
    for ids in _some_ids(events):
        counts += np.bincount(ids[ids >= 0], minlength=n_seen)
    return counts


def _some_ids(events: Events) -> Iterator[npt.NDArray[np.int32]]:
    """The ids of events, some at a time."""
    for first in range(0, len(events.ids), BLOCK_EVENTS):
        yield events.ids[first : first + BLOCK_EVENTS]


def drop_hollow(seen: Ids, proper: npt.NDArray[np.int32]) -> list[int]:
    """Drop the numbers that are all NaN of keys with string values; returns their ids.

    They are just missing strings. proper: see `Numbers`.
    """
    hollow = {
        key: i
        for key, i in seen.numbers.items()
        if key in seen.strings and any(value != MISSING_VALUE for value in seen.strings[key])
    }
    ids = np.array(list(hollow.values()), np.int64)
    drop = set(ids[~np.isin(ids, proper)].tolist())
    for key in [key for key, i in hollow.items() if i in drop]:
        del seen.numbers[key]
    return sorted(drop)


def homes(
    seen: Ids, numeric: npt.NDArray[np.int32], n_seen: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each id, the first id of the same name, and its slot, SHARED, or -1 for no indicator."""
    first_seen = np.arange(n_seen)
    home = np.full(n_seen, SHARED, dtype=np.int64)
    home[numeric] = -1
    home[list(seen.missing.values())] = -1
    one_name: dict[str, set[int]] = {}
    for slot, (key, table) in enumerate(seen.strings.items()):
        home[list(table.values())] = slot
        if "=" in key:  # of two spellings of a name, the longer key has the "=" of the shorter
            for value in table:
                name = f"{key}={value}"
                ids = set(as_string_values(name, seen.strings))
                if len(ids) > 1:
                    one_name[name] = ids
    names: dict[str, int] = {}
    for i, _, name in named(seen, numeric):
        first = names.setdefault(name, i)
        ids = {i, first, *as_string_values(name, seen.strings)} if seen.strings else {i, first}
        if len(ids) > 1:
            one_name.setdefault(name, set()).update(ids)
    for ids in one_name.values():
        first_seen[list(ids)] = min(ids)
        home[min(ids)] = SHARED
    return first_seen, home


def missing_values(seen: Ids, numeric: npt.NDArray[np.int32]) -> list[int]:
    """Ids of the missing values of numeric columns, where they are string values."""
    columns = set(numeric.tolist())
    keys = [key for key, number in seen.numbers.items() if number in columns]
    tables = [seen.strings[key] for key in keys if key in seen.strings]
    return [table[MISSING_VALUE] for table in tables if MISSING_VALUE in table]


def known_rows(
    n_rows: int, n_events: npt.NDArray[np.int64], seen: Ids, column_names: list[str]
) -> npt.NDArray[np.int64]:
    """The number of rows where each column is not missing. n_events: see `events_of`."""
    missing = [
        int(n_events[seen.missing[name]]) if name in seen.missing else 0 for name in column_names
    ]
    return n_rows - np.array(missing, np.int64)


def most_common(
    counts: npt.NDArray[np.int64],
    slots: npt.NDArray[np.int64],
    known: npt.NDArray[np.int64],
    valued: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]:
    """Features that stand for the missing values of their column, rising.

    For a key with values this is the most common value, unless more rows have none. Among features
    that do not exclude each other it is those that most rows have.
    counts: (n_features,), falling. slots: (n_features,), that of a key is below len(valued).
    known: (n_features,), rows where the feature's column is not missing. valued: (n_keys,), rows
    with any value of a key.
    """
    own = slots < len(valued)
    _, first = np.unique(slots[own], return_index=True)
    top = np.flatnonzero(own)[first]
    top = top[counts[top] >= known[top] - valued[slots[top]]]
    usual = np.flatnonzero(~own & (2 * counts > known))
    return np.sort(np.concatenate([top, usual])).astype(np.int32)


def tally(
    events: Events,
    first_seen: npt.NDArray[np.int64],
    home: npt.NDArray[np.int64],
    n_keys: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The number of rows with each id, and the ids that lost their slot to another in some row."""
    n_seen = len(home)
    counts = np.zeros(n_seen, dtype=np.int64)
    displaced = []
    for rows, ids, _ in events.blocks():
        names = first_seen[ids]
        slots = home[names]
        shared = slots == SHARED
        _, in_shared = distinct(rows[shared], names[shared], n_seen)
        counts += np.bincount(in_shared, minlength=n_seen)
        own = (slots >= 0) & ~shared
        in_own = names[own]
        cells = (rows[own] - rows[:1]) * n_keys + slots[own]  # of this block
        if cells.max(initial=0) > MAX_EMPTY_CELLS * (len(cells) + BLOCK_ROWS):
            cells = np.unique(cells, return_inverse=True)[1]  # slower, but only cells with ids
        holder = np.full(int(cells.max(initial=-1)) + 1, ABSENT)
        holder[cells] = in_own
        displaced.append(np.unique(in_own[holder[cells] != in_own]))
        counts += np.bincount(holder[holder != ABSENT], minlength=n_seen)
    return counts, np.unique(np.concatenate(displaced))


def rarely_held(
    counts: npt.NDArray[np.int64], home: npt.NDArray[np.int64], n_rows: int
) -> npt.NDArray[np.int64]:
    """Ids of the keys that hardly any row has, if a slot for each key would be mostly empty.

    counts: (n_seen,), rows that hold the id. home: (n_seen,), see `homes`.
    """
    own = (home >= 0) & (home != SHARED) & (counts > 0)
    held = np.bincount(home[own], counts[own])  # rows with each key
    n_cells = n_rows * np.count_nonzero(held)
    if n_cells <= max(LARGE, MAX_EMPTY_CELLS * held.sum()):
        return np.empty(0, np.int64)
    rare = np.flatnonzero(MAX_EMPTY_CELLS * held < n_rows)
    return np.flatnonzero((home != SHARED) & np.isin(home, rare))


def describe(
    seen: Ids, numeric: npt.NDArray[np.int32], new_id: npt.NDArray[np.int64]
) -> tuple[list[str], npt.NDArray[np.int32], list[str]]:
    """Names and logical columns of the kept features, and the names of those columns."""
    n_features = int(np.count_nonzero(new_id != ABSENT))
    names = [""] * n_features
    column_of = np.empty(n_features, dtype=np.int32)
    columns: dict[str, int] = {}
    kept = new_id.tolist()
    for key, table in seen.strings.items():
        features = []
        for value, i in table.items():
            if (feature := kept[i]) != ABSENT:
                names[feature] = f"{key}={value}"
                features.append(feature)
        if features:
            column_of[features] = columns.setdefault(key, len(columns))
    for i, column, name in named(seen, numeric):
        if (feature := kept[i]) != ABSENT:
            names[feature] = name
            column_of[feature] = columns.setdefault(column, len(columns))
    return names, column_of, list(columns)


def numbers_of_columns(
    events: Events, numeric: npt.NDArray[np.int32], n_seen: int
) -> list[CountedValues]:
    """The numbers of each numeric column, counted."""
    return [count_values(own) for own in values_of_columns(events, numeric, n_seen, IN_MEMORY)]


def values_of_columns(
    events: Events, numeric: npt.NDArray[np.int32], n_seen: int, storage: RowStorage
) -> list[npt.NDArray[np.float64]]:
    """The numbers of each numeric column, in the storage."""
    column_of = np.full(n_seen, -1)
    column_of[numeric] = np.arange(len(numeric))
    found = [GrowingArray(storage, np.float64) for _ in numeric]
    for rows, ids, values in events.blocks():
        column = column_of[ids]
        number = column >= 0
        for d, _, amounts in by_column(rows[number], column[number], values[number]):
            found[d].extend(amounts[~np.isnan(amounts)])
    return [each.values for each in found]


def by_column(
    rows: npt.NDArray[np.int64], column: npt.NDArray[Any], values: npt.NDArray[np.float64]
) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    """The rows, rising, and values of each column; of several values in a row the last counts."""
    order = np.argsort(column, kind="stable")
    rows, column, values = rows[order], column[order], values[order]
    last = np.append((rows[1:] != rows[:-1]) | (column[1:] != column[:-1]), True)[: len(rows)]
    rows, column, values = rows[last], column[last], values[last]
    present, starts = np.unique(column, return_index=True)
    ends = [*starts[1:].tolist(), len(rows)]
    for d, start, end in zip(present.tolist(), starts.tolist(), ends, strict=False):
        yield d, rows[start:end], values[start:end]


def distinct(
    rows: npt.NDArray[np.int64], ids: npt.NDArray[Any], n_ids: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The distinct pairs of row and id, sorted."""
    if not len(rows):
        return rows, rows
    pairs = rows * n_ids + ids
    pairs.sort()
    pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
    rows = pairs // n_ids
    return rows, pairs - rows * n_ids
