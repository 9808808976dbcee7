"""Feature dicts, as python-crfsuite takes them, turned into feature ids and quantile bins.

An attribute is its name, as in CRFsuite: {"a": "b"}, {"a=b": True} and ["a=b"] are one feature
(as python-crfsuite's manual has it; its code joins key and value with ":").
A feature lives in one place: in the slot (column of `codes`) of its key if the training data show
it only as the string value of that key, otherwise in the shared slots behind the keys' slots.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from functools import cached_property
from itertools import count
from math import isinf
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.sequences import ABSENT, MISSING, MISSING_BIN

PAST_ALL_SLOTS = 2**31 - 1
MAX_BINS = 255
SHARED = PAST_ALL_SLOTS  # home of a feature that is in no key's slot
BLOCK_ROWS = 16384  # rows placed at once: bounds the temporary arrays
BARE_COLUMN = ""  # logical column of items that are lists of strings

NUMBERS = (int, float, np.integer, np.floating)
VALUES = "a value is a str, bool, number, None, list of str, or a dict of these"
ITEMS = "an item is a dict of features or a list of strings"
SEQUENCES = "X is a list of sequences, a sequence is a list of items, " + ITEMS

Encoded = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint8]]


@dataclass(frozen=True)
class Columns:
    """What training learned of the columns: features by id, and the bins of numeric columns."""

    feature_names: list[str]
    counts: npt.NDArray[np.int64]  # shape: (n_features,), training rows, falling
    column_of: npt.NDArray[np.int32]  # shape: (n_features,), logical column
    slot_range: npt.NDArray[np.int32]  # shape: (n_features, 2), slots [first, past_last)
    slot_keys: list[str]  # string key of each slot before the shared ones
    n_shared_slots: int  # most shared features in one training row
    column_names: list[str]
    numeric_names: list[str]
    bin_edges: list[npt.NDArray[np.float64]]  # bin = 1 + searchsorted(edges, value, side="left")
    bin_values: npt.NDArray[np.float64]  # shape: (n_numeric, 256), mean of the bin, standardised

    def encode(self, X: Iterable[Iterable[Any]]) -> Encoded:
        """Offsets, codes and numeric bins of X; what training did not see is absent.

        `codes` is wider than in training where a row has more shared features than any had there.
        Of two features for one slot of a row, which no training row has, the last one is kept.
        """
        return self._place(_scan(X, self._ids))

    def to_state(self) -> dict[str, Any]:
        """The same as strings, ints, lists and arrays only."""
        state = {field.name: getattr(self, field.name) for field in dataclass_fields(self)}
        lengths = [len(edges) for edges in self.bin_edges]
        state["bin_edges"] = np.concatenate([np.empty(0), *self.bin_edges])
        state["bin_edge_offsets"] = np.cumsum([0, *lengths], dtype=np.int64)
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Columns:
        """Columns from `to_state`, every field checked."""
        return _checked(state)

    def __getstate__(self) -> dict[str, Any]:
        # without the lookup tables: they are derived, and hold functions that cannot be pickled
        return {field.name: getattr(self, field.name) for field in dataclass_fields(self)}

    @cached_property
    def _ids(self) -> _Ids:
        """Tables giving features, then numeric columns, then missing slots their events."""
        n_features, n_numeric = len(self.feature_names), len(self.numeric_names)
        nothing = n_features + n_numeric + len(self.slot_keys)
        own: list[dict[str, int]] = [{} for _ in self.slot_keys]
        shared: dict[str, int] = {}
        for feature, (name, slot) in enumerate(
            zip(self.feature_names, self.slot_range[:, 0].tolist(), strict=True)
        ):
            if slot < len(own):
                own[slot][name[len(self.slot_keys[slot]) + 1 :]] = feature
            else:
                shared[name] = feature

        def by_name(name: str) -> int:
            feature = shared.get(name)
            if feature is None and own:
                feature = next(_as_string_values(name, strings), None)
            return nothing if feature is None else feature

        strings = _KnownTables("=", by_name)
        for key, table in zip(self.slot_keys, own, strict=True):
            strings[key] = _KnownIds(table, f"{key}=", by_name)
        names = _KnownIds(shared, "", by_name)
        numbers = {name: n_features + d for d, name in enumerate(self.numeric_names)}
        missing = {key: n_features + n_numeric + s for s, key in enumerate(self.slot_keys)}
        return _Ids(
            strings=strings,
            bags=_KnownTables(":", by_name),
            flags=names,
            bare=names,
            numbers=_KnownIds(shared | numbers, "", by_name) if numbers else names,
            missing=_KnownIds(missing, "", lambda _: nothing),
            first_number=n_features,
        )

    def _place(self, events: _Events) -> Encoded:
        """The events of `_ids`, put where they belong in codes and numeric."""
        n_features, n_numeric = len(self.feature_names), len(self.numeric_names)
        n_keys = len(self.slot_keys)
        first_missing = n_features + n_numeric
        codes = np.full((events.n_rows, n_keys + self.n_shared_slots), ABSENT, dtype=np.int32)
        numeric = np.full((events.n_rows, n_numeric), MISSING_BIN, dtype=np.uint8)
        for rows, ids, values in events.blocks():
            missing = (ids >= first_missing) & (ids < first_missing + n_keys)
            codes[rows[missing], ids[missing] - first_missing] = MISSING

            number = (ids >= n_features) & (ids < first_missing)
            for d, at, amounts in _by_column(
                rows[number], ids[number] - n_features, values[number]
            ):
                bins = 1 + np.searchsorted(self.bin_edges[d], amounts, side="left")
                numeric[at, d] = np.where(np.isnan(amounts), MISSING_BIN, bins)

            feature = ids < n_features
            rows, ids = rows[feature], ids[feature]
            slots = self.slot_range[ids, 0]
            own = slots < n_keys
            codes[rows[own], slots[own]] = ids[own]
            at, shared = _distinct(rows[~own], ids[~own], n_features)
            if len(at):
                place = np.arange(len(at))
                new_row = np.append(True, at[1:] != at[:-1])
                slot = n_keys + place - np.maximum.accumulate(np.where(new_row, place, 0))
                lacking = int(slot.max()) + 1 - codes.shape[1]
                if lacking > 0:
                    codes = np.pad(codes, ((0, 0), (0, lacking)), constant_values=ABSENT)
                codes[at, slot] = shared
        return events.offsets, codes, numeric


def fit_columns(
    X: Iterable[Iterable[Any]], *, min_count: int = 1, max_bins: int = MAX_BINS
) -> tuple[Columns, npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Learn the columns of X and encode it; features of fewer than `min_count` rows are dropped."""
    if min_count < 1:
        raise ValueError(f"treecrf: min_count is {min_count}; it must be 1 or more")
    if not 2 <= max_bins <= MAX_BINS:
        raise ValueError(f"treecrf: max_bins is {max_bins}; it must be from 2 to {MAX_BINS}")
    next_id = count().__next__
    seen = _Ids(
        strings=_NewTables(next_id),
        bags=_NewTables(next_id),
        flags=_NewIds(next_id),
        bare=_NewIds(next_id),
        numbers=_NewIds(next_id),
        missing=_NewIds(next_id),
        first_number=0,
    )
    events = _scan(X, seen)
    if len(events.offsets) == 1:
        raise ValueError("treecrf: X holds no sequences; training needs at least one")
    if len(empty := np.flatnonzero(np.diff(events.offsets) == 0)):
        raise ValueError(
            f"treecrf: X[{empty[0]}] is an empty sequence; remove it (and its labels) for training"
        )
    n_seen = next_id()

    # a key is numeric as soon as one of its values is not 1; ids rise by first appearance
    numeric = np.unique(~events.ids[events.ids < 0])
    first_seen, home = _homes(seen, numeric, n_seen)
    counts, displaced = _tally(events, first_seen, home, len(seen.strings))
    if len(displaced):  # two values of one key in a row, by way of nested dicts
        home[displaced] = SHARED
        counts, _ = _tally(events, first_seen, home, len(seen.strings))

    order = np.argsort(-counts, kind="stable")
    order = order[: np.count_nonzero(counts >= min_count)]
    new_id = np.full(n_seen, ABSENT, dtype=np.int64)
    new_id[order] = np.arange(len(order))
    used_slots, slot_of = np.unique(home[order], return_inverse=True)  # SHARED sorts last
    n_keys = int(np.count_nonzero(used_slots != SHARED))
    past_slots = np.where(slot_of < n_keys, slot_of + 1, PAST_ALL_SLOTS)
    keys = list(seen.strings)
    feature_names, column_of, column_names = _describe(seen, numeric, new_id)
    number_names = {number: key for key, number in seen.numbers.items()}
    bin_edges, bin_values = _bins(events, numeric, max_bins, n_seen)
    columns = Columns(
        feature_names=feature_names,
        counts=counts[order],
        column_of=column_of,
        slot_range=np.stack([slot_of, past_slots], axis=1).astype(np.int32),
        slot_keys=[keys[slot] for slot in used_slots[:n_keys].tolist()],
        n_shared_slots=0,
        column_names=column_names,
        numeric_names=[number_names[number] for number in numeric.tolist()],
        bin_edges=bin_edges,
        bin_values=bin_values,
    )

    # from ids in order of appearance to those of Columns._ids
    nothing = len(order) + len(numeric) + n_keys
    renamed = new_id[first_seen]
    renamed[numeric] = len(order) + np.arange(len(numeric))
    for slot, key in enumerate(columns.slot_keys):
        if key in seen.missing:
            renamed[seen.missing[key]] = len(order) + len(numeric) + slot
    renamed[renamed == ABSENT] = nothing
    events.rename(renamed.astype(np.int32))
    offsets, codes, numeric_bins = columns._place(events)
    return replace(columns, n_shared_slots=codes.shape[1] - n_keys), offsets, codes, numeric_bins


def _named(seen: _Ids, numeric: npt.NDArray[np.int32]) -> Iterator[tuple[int, str, str]]:
    """Id, logical column and name of the indicators that are not string values of a key."""
    for key, table in seen.bags.items():
        for item, i in table.items():
            yield i, key, f"{key}:{item}"
    for name, i in seen.flags.items():
        yield i, name, name
    columns = set(numeric.tolist())
    for name, i in seen.numbers.items():
        if i not in columns:
            yield i, name, name
    for name, i in seen.bare.items():
        yield i, BARE_COLUMN, name


def _as_string_values(name: str, strings: dict[str, Any]) -> Iterator[int]:
    """Ids of every key and value in the tables that spell the name "key=value"."""
    cut = name.find("=")
    while cut >= 0:
        table = strings.get(name[:cut])
        found = None if table is None else table.get(name[cut + 1 :])
        if found is not None:
            yield found
        cut = name.find("=", cut + 1)


def _homes(
    seen: _Ids, numeric: npt.NDArray[np.int32], n_seen: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each id, the first id of the same name; and its slot, SHARED, or -1 for no indicator."""
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
                ids = set(_as_string_values(name, seen.strings))
                if len(ids) > 1:
                    one_name[name] = ids
    names: dict[str, int] = {}
    for i, _, name in _named(seen, numeric):
        first = names.setdefault(name, i)
        ids = {i, first, *_as_string_values(name, seen.strings)} if seen.strings else {i, first}
        if len(ids) > 1:
            one_name.setdefault(name, set()).update(ids)
    for ids in one_name.values():
        first_seen[list(ids)] = min(ids)
        home[min(ids)] = SHARED
    return first_seen, home


def _tally(
    events: _Events,
    first_seen: npt.NDArray[np.int64],
    home: npt.NDArray[np.int64],
    n_keys: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows holding each id, and the ids that another one drove out of their slot in some row."""
    n_seen = len(home)
    counts = np.zeros(n_seen, dtype=np.int64)
    displaced = []
    for rows, ids, _ in events.blocks():
        names = first_seen[ids]
        slots = home[names]
        shared = slots == SHARED
        _, in_shared = _distinct(rows[shared], names[shared], n_seen)
        counts += np.bincount(in_shared, minlength=n_seen)
        own = (slots >= 0) & ~shared
        in_own = names[own]
        cells = (rows[own] % BLOCK_ROWS) * n_keys + slots[own]
        holder = np.full(int(cells.max(initial=-1)) + 1, ABSENT)
        holder[cells] = in_own
        displaced.append(np.unique(in_own[holder[cells] != in_own]))
        counts += np.bincount(holder[holder != ABSENT], minlength=n_seen)
    return counts, np.unique(np.concatenate(displaced))


def _describe(
    seen: _Ids, numeric: npt.NDArray[np.int32], new_id: npt.NDArray[np.int64]
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
    for i, column, name in _named(seen, numeric):
        if (feature := kept[i]) != ABSENT:
            names[feature] = name
            column_of[feature] = columns.setdefault(column, len(columns))
    return names, column_of, list(columns)


def _bins(
    events: _Events, numeric: npt.NDArray[np.int32], max_bins: int, n_seen: int
) -> tuple[list[npt.NDArray[np.float64]], npt.NDArray[np.float64]]:
    """Edges of each numeric column, and the standardised mean of each of its bins."""
    bin_edges: list[npt.NDArray[np.float64]] = []
    bin_values = np.zeros((len(numeric), MAX_BINS + 1))
    if not len(numeric):
        return bin_edges, bin_values
    column_of = np.full(n_seen, -1)
    column_of[numeric] = np.arange(len(numeric))
    parts: list[list[npt.NDArray[np.float64]]] = [[] for _ in numeric]
    for rows, ids, values in events.blocks():
        column = column_of[ids]
        number = column >= 0
        for d, _, amounts in _by_column(rows[number], column[number], values[number]):
            parts[d].append(amounts[~np.isnan(amounts)])
    for d, part in enumerate(parts):
        amounts = np.concatenate(part)
        edges = _edges(amounts, max_bins)
        bin_edges.append(edges)
        if len(amounts):
            # standardising undoes the scale, which keeps sums of huge values finite
            scaled = amounts / (np.abs(amounts).max() or 1.0)
            standardised = (scaled - scaled.mean()) / (scaled.std() or 1.0)
            bins = np.searchsorted(edges, amounts, side="left")
            sums = np.bincount(bins, weights=standardised)
            bin_values[d, 1 : len(sums) + 1] = sums / np.bincount(bins)  # no bin is empty
    return bin_edges, bin_values


def _edges(values: npt.NDArray[np.float64], max_bins: int) -> npt.NDArray[np.float64]:
    """At most max_bins - 1 cuts midway between distinct values: all of them, or at quantiles."""
    distinct, repeats = np.unique(values, return_counts=True)
    if len(distinct) < 2:
        return np.empty(0)
    cuts = np.arange(len(distinct) - 1)
    if len(distinct) > max_bins:
        targets = len(values) * np.arange(1, max_bins) / max_bins
        at_quantiles = np.unique(np.searchsorted(np.cumsum(repeats), targets, side="left"))
        cuts = at_quantiles[at_quantiles < len(distinct) - 1]
    low, high = distinct[cuts], distinct[cuts + 1]
    middle = low / 2 + high / 2
    # rounding must not carry a cut past the values it separates: value <= edge is below
    return np.where((low <= middle) & (middle < high), middle, low)


def _by_column(
    rows: npt.NDArray[np.int64], column: npt.NDArray[Any], values: npt.NDArray[np.float64]
) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    """Column by column its rows, rising, and their values; the last one given in a row counts."""
    order = np.argsort(column, kind="stable")
    rows, column, values = rows[order], column[order], values[order]
    last = np.append((rows[1:] != rows[:-1]) | (column[1:] != column[:-1]), True)[: len(rows)]
    rows, column, values = rows[last], column[last], values[last]
    present, starts = np.unique(column, return_index=True)
    ends = [*starts[1:].tolist(), len(rows)]
    for d, start, end in zip(present.tolist(), starts.tolist(), ends, strict=False):
        yield d, rows[start:end], values[start:end]


def _distinct(
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


class _Refused(Exception):
    """Something in an item that cannot be read; `_scan` adds the place."""

    def __init__(self, kind: type[Exception], where: str, problem: str) -> None:
        super().__init__(problem)
        self.kind, self.where, self.problem = kind, where, problem


def _plain(name: object) -> str:
    """The str itself of a subclass such as np.str_."""
    if not isinstance(name, str):
        problem = f"has the key {name!r} of type {type(name).__name__}; keys must be str"
        raise _Refused(TypeError, "", problem)
    return str.__str__(name)


class _NewIds(dict[str, int]):
    """Ids by name, a new one for each new name."""

    def __init__(self, next_id: Callable[[], int]) -> None:
        self.next_id = next_id

    def __missing__(self, name: str) -> int:
        if type(name) is not str:
            return self[_plain(name)]
        self[name] = new = self.next_id()
        return new


class _NewTables(dict[str, dict[str, int]]):
    """Ids by key and value, new ones as they appear."""

    def __init__(self, next_id: Callable[[], int]) -> None:
        self.next_id = next_id

    def __missing__(self, key: str) -> dict[str, int]:
        if type(key) is not str:
            return self[_plain(key)]
        self[key] = new = _NewIds(self.next_id)
        return new


class _KnownIds(dict[str, int]):
    """Ids by name; others are asked for by their full name, and nothing is added."""

    def __init__(self, known: dict[str, int], prefix: str, by_name: Callable[[str], int]) -> None:
        super().__init__(known)
        self.prefix, self.by_name = prefix, by_name

    def __missing__(self, name: str) -> int:
        return self.by_name(self.prefix + _plain(name))


class _KnownTables(dict[str, dict[str, int]]):
    """Ids by key and value; others are asked for by their full name, and nothing is added."""

    def __init__(self, separator: str, by_name: Callable[[str], int]) -> None:
        self.separator, self.by_name = separator, by_name

    def __missing__(self, key: str) -> dict[str, int]:
        return _KnownIds({}, _plain(key) + self.separator, self.by_name)


@dataclass(frozen=True)
class _Ids:
    """The id of everything an item can say, by the way it is said."""

    strings: dict[str, dict[str, int]]  # {key: value}
    bags: dict[str, dict[str, int]]  # {key: [item]}
    flags: dict[str, int]  # {name: True}
    bare: dict[str, int]  # [name]
    numbers: dict[str, int]  # {name: 2.5}
    missing: dict[str, int]  # {key: None}
    first_number: int  # a number for an id below this one is an indicator's: nonzero or absent


@dataclass(frozen=True)
class _Events:
    """The ids of all rows in the order read; ~id is a number other than 1, next in `values`."""

    offsets: npt.NDArray[np.int64]  # shape: (n_sequences + 1,), rows
    ends: npt.NDArray[np.int64]  # shape: (n_rows + 1,), the events before each row
    ids: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]

    @property
    def n_rows(self) -> int:
        return len(self.ends) - 1

    def blocks(
        self,
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float64]]]:
        """Row, id and value of every event, some rows at a time."""
        used = 0
        for first in range(0, self.n_rows, BLOCK_ROWS):
            ends = self.ends[first : first + BLOCK_ROWS + 1]
            rows = np.repeat(np.arange(first, first + len(ends) - 1), np.diff(ends))
            signed = self.ids[ends[0] : ends[-1]]
            given = signed < 0
            n_given = int(np.count_nonzero(given))
            values = np.ones(len(signed))
            values[given] = self.values[used : used + n_given]
            used += n_given
            yield rows, np.where(given, ~signed, signed), values

    def rename(self, new: npt.NDArray[np.int32]) -> None:
        """Give every event its new id, in place."""
        for first in range(0, len(self.ids), 1 << 20):
            part = self.ids[first : first + (1 << 20)]
            given = part < 0
            part[:] = new[np.where(given, ~part, part)]
            part[given] = ~part[given]


def _scan(X: Iterable[Iterable[Any]], ids: _Ids) -> _Events:
    """Read every item of X once."""
    events, values = array("i"), array("d")
    ends, offsets = array("q", [0]), array("q", [0])
    pending: list[int] = []  # of the current sequence: a list takes them faster than an array
    add = pending.append
    strings, bags, flags, bare, numbers, missing = (
        ids.strings,
        ids.bags,
        ids.flags,
        ids.bare,
        ids.numbers,
        ids.missing,
    )

    def read(key: str, value: object) -> None:
        """One entry of a dict; `key` holds the keys above it too."""
        if not isinstance(key, str):
            _plain(key)
        if value is True:
            add(flags[key])
        elif value is False:
            pass
        elif value is None:
            add(missing[key])
        elif isinstance(value, NUMBERS):
            i = numbers[key]
            if value == 1:
                add(i)
            elif isinf(value):
                problem = f"is {value}; give a finite number, or None where it is missing"
                raise _Refused(ValueError, f"[{key!r}]", problem)
            elif i >= ids.first_number:
                values.append(float(value))
                add(~i)
            elif value and value == value:
                add(i)
        elif isinstance(value, str):
            add(strings[key][_plain(value)])
        elif isinstance(value, np.bool_):
            read(key, bool(value))
        elif isinstance(value, dict):
            for inner, inner_value in value.items():
                if not isinstance(inner, str):
                    _plain(inner)
                read(f"{key}:{inner}", inner_value)
        elif isinstance(value, (list, tuple, set, frozenset)):
            bag = bags[key]
            for item in _strings_of(value, f"[{key!r}]"):
                add(bag[item])
        else:
            problem = f"is of type {type(value).__name__}; {VALUES}"
            raise _Refused(TypeError, f"[{key!r}]", problem)

    add_string, tables = add, strings  # faster than the variables that `read` closes over
    for s, sequence in enumerate(_iterable(X, "X")):
        t, key = 0, None
        try:
            for t, item in enumerate(_iterable(sequence, f"X[{s}]")):  # noqa: B007
                if isinstance(item, dict):
                    for key, value in item.items():
                        if type(value) is str:
                            add_string(tables[key][value])
                        else:
                            read(key, value)
                elif isinstance(item, (list, tuple, set, frozenset)):
                    for name in _strings_of(item, ""):
                        add(bare[name])
                else:
                    raise _Refused(TypeError, "", f"is of type {type(item).__name__}; {ITEMS}")
                ends.append(len(events) + len(pending))
        except _Refused as refused:
            message = f"treecrf: X[{s}][{t}]{refused.where} {refused.problem}"
            raise refused.kind(message) from None
        except OverflowError:
            message = f"treecrf: X[{s}][{t}][{key!r}] is too large a number; scale it down"
            raise ValueError(message) from None
        offsets.append(len(ends) - 1)
        events.fromlist(pending)
        pending.clear()
    return _Events(
        offsets=np.array(offsets, dtype=np.int64),
        ends=np.array(ends, dtype=np.int64),
        ids=np.frombuffer(events, dtype=np.int32) if events else np.empty(0, dtype=np.int32),
        values=np.array(values, dtype=np.float64),
    )


def _iterable(value: Iterable[Any], where: str) -> Iterable[Any]:
    if isinstance(value, (str, bytes, dict, set, frozenset)) or not isinstance(value, Iterable):
        raise TypeError(f"treecrf: {where} is of type {type(value).__name__}; {SEQUENCES}")
    return value


def _strings_of(bag: Iterable[Any], where: str) -> Iterable[str]:
    """The strings of a list, or of a set in sorted order."""
    for item in bag:
        if not isinstance(item, str):
            problem = f"holds {item!r} of type {type(item).__name__}; only str may stand in a list"
            raise _Refused(TypeError, where, problem)
    return sorted(bag) if isinstance(bag, (set, frozenset)) else bag


def _checked(state: Any) -> Columns:
    """Columns from a state that nobody vouches for."""
    fields = Fields(state, path="columns")
    feature_names = fields.strings("feature_names", unique=True)
    slot_keys = fields.strings("slot_keys", unique=True)
    column_names = fields.strings("column_names", unique=True)
    numeric_names = fields.strings("numeric_names", unique=True)
    n_features, n_keys, n_numeric = len(feature_names), len(slot_keys), len(numeric_names)

    counts = fields.array("counts", np.int64, (n_features,), low=1)
    if (counts[1:] > counts[:-1]).any():
        fields.fail("counts", "falling values", "a rise")
    column_of = fields.array("column_of", np.int32, (n_features,), 0, len(column_names) - 1)
    slot_range = fields.array("slot_range", np.int32, (n_features, 2), 0, PAST_ALL_SLOTS)
    n_shared = 0
    for name, (first, past) in zip(feature_names, slot_range.tolist(), strict=True):
        if (first, past) == (n_keys, PAST_ALL_SLOTS):
            n_shared += 1
        elif first >= n_keys or past != first + 1 or not name.startswith(slot_keys[first] + "="):
            expected = f"the slot of a key of {name!r} or the shared slots"
            fields.fail("slot_range", expected, f"[{first}, {past}]")
    n_shared_slots = fields.integer("n_shared_slots", min(n_shared, 1), n_shared)

    edges = fields.array("bin_edges", np.float64, (None,))
    starts = fields.array("bin_edge_offsets", np.int64, (n_numeric + 1,), 0, len(edges))
    sizes = np.diff(starts)
    if starts[0] != 0 or starts[-1] != len(edges) or ((sizes < 0) | (sizes >= MAX_BINS)).any():
        expected = f"steps of 0 to {MAX_BINS - 1} from 0 to {len(edges)}"
        fields.fail("bin_edge_offsets", expected, "others")
    bin_edges = np.split(edges, starts[1:-1]) if n_numeric else []
    if any((cuts[1:] <= cuts[:-1]).any() for cuts in bin_edges):
        fields.fail("bin_edges", "rising values in each column", "others")
    bin_values = fields.array("bin_values", np.float64, (n_numeric, MAX_BINS + 1))
    if bin_values[:, MISSING_BIN].any():
        fields.fail("bin_values", "0 for the missing bin", "another value")
    fields.done()
    return Columns(
        feature_names=feature_names,
        counts=counts,
        column_of=column_of,
        slot_range=slot_range,
        slot_keys=slot_keys,
        n_shared_slots=n_shared_slots,
        column_names=column_names,
        numeric_names=numeric_names,
        bin_edges=bin_edges,
        bin_values=bin_values,
    )
