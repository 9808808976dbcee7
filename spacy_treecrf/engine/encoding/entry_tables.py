"""Ids of the entries of feature dicts under learned columns.

Most are found by a kernel (`dict_reading`), or by the codes of values (`item_codes`). For the
others each key has a table, which gives every text, flag, number and None of the key one id.
Whatever has several ids or none, as lists and nested dicts, is left to `feature_dicts.scan`.

Ids are those of features, then one for each missing column, then `nothing`, then 256 for each
numeric column, one for a bin. While rows are scanned, a number has the id of its column instead:
those follow `nothing` one by one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate, chain
from math import isinf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.encoding.binning import N_BINS
from spacy_treecrf.engine.encoding.feature_dicts import (
    NUMBERS,
    Events,
    Ids,
    as_string_values,
    iterate,
    plain,
    scan,
)
from spacy_treecrf.engine.encoding.item_codes import (
    ASK,
    NO_SLOT,
    NOTHING,
    ItemCodes,
    Shape,
    item_codes,
)
from spacy_treecrf.engine.encoding.missing_methods import MISSING_VALUE

if TYPE_CHECKING:  # kernels load numba
    from spacy_treecrf.engine.encoding.dict_reading import DictReader

BINS = N_BINS  # ids for each numeric column
BLOCK_EVENTS = 1 << 20  # given their bins at once: bounds the temporary arrays
# Keys without a slot whose tables are kept. Where there are more, those that are asked for first
# are mostly the frequent ones.
KEPT_KEYS = 2**14
DICT_ONLY = {dict}
BLOCK_ITEMS = 1024  # read together

Values = dict[Any, int]


@dataclass(frozen=True)
class EntryIds:
    """The id of everything that an item can say.

    tables: By key, then by value. by_way: The same by the way it is said, for `scan`. item_codes:
    The same for items that are flat dicts. nothing: Of what no column knows, beside NOTHING.
    """

    tables: dict[str, Values]
    item_codes: ItemCodes
    by_way: Ids
    nothing: int
    bin_edges: list[npt.NDArray[np.float64]]

    def read(self, X: Iterable[Iterable[Any]], name: str) -> Events:
        """Read every item of X once, numbers as bins; errors call X by the name."""
        found = _Found([np.empty(0, np.int32)], [np.empty(0, np.int64)])
        pending: list[list[Any]] = []  # sequences that are read together
        # What a generator yields, it may change before it yields the next.
        together_rows = BLOCK_ITEMS if isinstance(X, list | tuple) else 0
        n_rows = 0
        lengths: list[int] = []
        try:
            for s, sequence in enumerate(iterate(X, name, name)):
                if type(sequence) is not list:
                    sequence = list(iterate(sequence, f"{name}[{s}]", name))
                lengths.append(len(sequence))
                pending.append(sequence)
                n_rows += len(sequence)
                if n_rows >= together_rows:
                    together, pending, n_rows = pending, [], 0
                    self._read_together(together, name, len(lengths), found)
        except BaseException:
            self._read_together(pending, name, len(lengths), found)  # an earlier error comes first
            raise
        self._read_together(pending, name, len(lengths), found)
        ends = np.zeros(sum(lengths) + 1, np.int64)
        np.cumsum(np.concatenate(found.widths), out=ends[1:])
        return Events(
            offsets=np.array(list(accumulate(lengths, initial=0)), np.int64),
            ends=ends,
            ids=np.concatenate(found.ids),
            values=np.empty(0),
        )

    def _read_together(
        self, sequences: list[list[Any]], name: str, n_sequences: int, found: _Found
    ) -> None:
        """Read the last of n_sequences, all at once, or one by one where a dict is unusual."""
        try:
            self._add_items(list(chain.from_iterable(sequences)), found)
        except Exception:
            for s, sequence in enumerate(sequences, n_sequences - len(sequences)):
                try:
                    self._add_items(sequence, found)
                except Exception:  # wrong or just unusual: the scan knows
                    events = scan([sequence], self.by_way, name, first_sequence=s)
                    put_in_bins(events, self.nothing, self.bin_edges)
                    found.ids.append(events.ids)
                    found.widths.append(np.diff(events.ends))

    def _add_items(self, items: list[Any], found: _Found) -> None:
        ends, ids = self.find(items)
        found.ids.append(ids)
        found.widths.append(np.diff(ends))

    def find(self, items: list[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """How many entries there are before each item, and at last of all, and their ids.

        Raises some exception where an item is no flat dict.
        """
        if not DICT_ONLY.issuperset(map(type, items)):
            raise TypeError
        found = None if self._reader is None else self._reader.read(items)
        ends, ids, n_asked = self._find_by_codes(items) if found is None else found
        if n_asked:
            self._ask(items, ends, ids)
        return ends, ids

    @cached
    def _reader(self) -> DictReader | None:
        # Here, because spaCy loads this module for any pipeline, and kernels load numba.
        from spacy_treecrf.engine.encoding.dict_reading import dict_reader

        return dict_reader(self.item_codes)

    def _find_by_codes(
        self, items: list[Any]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], int]:
        """What the reader returns, for dicts of any shapes and where there is no reader."""
        from spacy_treecrf.engine.encoding.resolving import resolve

        coded = self.item_codes.coded(items)
        ids = np.empty(len(coded.codes), np.int32)
        return coded.ends, ids, resolve(coded, self.item_codes.text_ids, ids)

    def _ask(
        self, items: list[Any], ends: npt.NDArray[np.int64], ids: npt.NDArray[np.int32]
    ) -> None:
        """Look up what has no code. ids: Of all entries of the items, ASK where it has none."""
        asked = np.flatnonzero(ids == ASK)
        rows = np.searchsorted(ends, asked, side="right") - 1
        last, entries = -1, []
        for at, row, first in zip(asked.tolist(), rows.tolist(), ends[rows].tolist(), strict=True):
            if row != last:
                last, entries = row, list(items[row].items())
            key, value = entries[at - first]
            ids[at] = self.tables[key][value]


class _Found(NamedTuple):
    """What was read so far, piece by piece: ids, and how many each row has."""

    ids: list[npt.NDArray[np.int32]]
    widths: list[npt.NDArray[np.int64]]


def put_in_bins(events: Events, nothing: int, bin_edges: list[npt.NDArray[np.float64]]) -> None:
    """Give every number of scanned events the id of its bin, in place."""
    used = 0
    for first in range(0, len(events.ids), BLOCK_EVENTS):
        ids = events.ids[first : first + BLOCK_EVENTS]
        given = ids < NOTHING
        n_given = int(np.count_nonzero(given))
        column = np.where(given, ~ids, ids) - (nothing + 1)
        amounts = np.ones(len(ids))
        amounts[given] = events.values[used : used + n_given]
        used += n_given
        ids[given] = NOTHING  # training may have dropped the column
        for d in np.unique(column[column >= 0]).tolist():
            own = column == d
            bins = 1 + np.searchsorted(bin_edges[d], amounts[own], side="left")
            ids[own] = first_bin(nothing, d) + np.where(np.isnan(amounts[own]), 0, bins)


def nothing_id(n_features: int, n_columns: int) -> int:
    """The id of what no column knows. It is not 0, because ~0 would be NOTHING."""
    return n_features + n_columns + 1


def first_bin(nothing: int, column: int) -> int:
    """The id of the bin of missing numbers of a numeric column."""
    return nothing + 1 + BINS * column


def entry_ids(
    feature_names: list[str],
    slots: list[int],
    slot_keys: list[str],
    column_names: list[str],
    numeric_names: list[str],
    bin_edges: list[npt.NDArray[np.float64]],
    indicator: bool = False,
) -> EntryIds:
    """The ids under learned columns.

    A feature whose slot is that of a key is the string value of this key.
    indicator: A missing value is the string value MISSING_VALUE of its key.
    """
    n_features = len(feature_names)
    nothing = nothing_id(n_features, len(column_names))
    tables = _Tables(
        {key: n_features + c for c, key in enumerate(column_names)},
        {
            name: (first_bin(nothing, d), bin_edges[d].tolist())
            for d, name in enumerate(numeric_names)
        },
        indicator,
    )
    tables.name_features(feature_names, slots, slot_keys)
    names = _Named("", tables.by_name)
    numbers = {name: nothing + 1 + d for d, name in enumerate(numeric_names)}
    by_way = Ids(
        strings=tables,
        bags=_NamedTables(":", tables.by_name),
        flags=names,
        bare=names,
        numbers=_Named("", tables.by_name, numbers),
        missing=_Named("", tables.missing_id),
        first_number=nothing + 1,
    )
    codes = item_codes(tables.texts, tables.shape)
    return EntryIds(tables, codes, by_way, nothing, bin_edges)


class _Tables(dict[str, Values]):
    """Ids by key and value.

    missing: The ids of missing columns.
    numbers: For each numeric column the id of its first bin, and its edges.
    """

    def __init__(
        self,
        missing: dict[str, int],
        numbers: dict[str, tuple[int, list[float]]],
        indicator: bool,
    ) -> None:
        self.missing = missing
        self.numbers = numbers
        self.indicator = indicator
        self.shared: dict[str, int] = {}  # features by name that are not in the slot of a key
        self.texts: dict[str, Values] = {}  # the tables of keys with slots
        self.slots: dict[str, int] = {}  # in the order of these tables

    def __missing__(self, key: str) -> Values:
        if type(key) is not str:
            return self[plain(key)]
        table = _OtherValues(self, key)
        if self._add_flags(key, table) and len(self) < KEPT_KEYS + len(self.texts):
            self[key] = table
        return table

    def name_features(
        self, feature_names: list[str], slots: list[int], slot_keys: list[str]
    ) -> None:
        """Fill the tables of keys with slots."""
        for key in slot_keys:
            others = _OtherValues(self, key)
            self[key] = others if key in self.numbers else _Texts(others)
        self.texts = dict(self)
        self.slots = {key: slot for slot, key in enumerate(self.texts)}
        for feature, (name, slot) in enumerate(zip(feature_names, slots, strict=True)):
            if slot >= len(slot_keys):
                self.shared[name] = feature
            # Every way to spell a name as key and value: a text that is not in the table of its
            # key is no feature.
            cut = name.find("=")
            while cut >= 0:
                if (table := self.texts.get(name[:cut])) is not None:
                    table[name[cut + 1 :]] = feature
                cut = name.find("=", cut + 1)
        for key, table in self.texts.items():
            self._add_flags(key, table.others if isinstance(table, _Texts) else table)

    def by_name(self, name: str) -> int:
        """The id of the feature of this name."""
        feature = self.shared.get(name)
        if feature is None and self.texts:
            feature = next(as_string_values(name, self.texts), None)
        return NOTHING if feature is None else feature

    def shape(self, keys: tuple[str, ...]) -> Shape:
        """The shape of dicts with these keys."""
        rows = []
        for key in keys:
            numeric = key in self.numbers
            flags = (ASK, ASK) if numeric else (self.by_name(key), NOTHING)
            rows.append((self.slots.get(key, NO_SLOT), *flags, self.missing_id(key)))
        return np.array(rows, np.int32).reshape(len(rows), 4)

    def missing_id(self, key: str) -> int:
        """The id of a missing value of the key."""
        if self.indicator:
            return self.by_name(f"{key}={MISSING_VALUE}")
        return self.missing.get(key, NOTHING)

    def number_id(self, key: str, number: Any) -> int:
        """The id of a finite number other than 0 and 1, or of any of a numeric column."""
        amount = float(number)
        if amount != amount:
            return self.missing_id(key)
        if isinf(amount):
            raise ValueError
        if key not in self.numbers:
            return self.by_name(key) if number else NOTHING
        first, edges = self.numbers[key]
        return first + 1 + bisect_left(edges, amount)

    def _add_flags(self, key: str, table: Values) -> bool:
        """Add the ids of True, False and None to a key's table; returns whether any is known."""
        flag, missing = self.by_name(key), self.missing_id(key)
        table[None] = missing
        numeric = key in self.numbers
        if not numeric:  # True is the same key as 1.0, but not the same feature as that number
            table[True] = flag
            table[False] = NOTHING
        return numeric or flag != NOTHING or missing != NOTHING


class _Texts(dict[Any, int]):
    """Ids of the texts of a key with a slot; Python is faster where all keys of a dict are str.

    others: The ids of other values.
    """

    __slots__ = ("others",)

    def __init__(self, others: _OtherValues) -> None:
        self.others = others

    def __missing__(self, value: object) -> int:
        return NOTHING if type(value) is str else self.others[value]


class _OtherValues(dict[Any, int]):
    """Ids of the values of another key, or of one that has numbers."""

    __slots__ = ("key", "tables")

    def __init__(self, tables: _Tables, key: str) -> None:
        self.tables, self.key = tables, key

    def __missing__(self, value: object) -> int:
        kind = type(value)
        if kind is float or kind is int:
            return self.tables.number_id(self.key, value)
        if kind is str or isinstance(value, str):
            return self.tables.by_name(f"{self.key}={plain(value)}")
        if kind is bool or kind is np.bool_:
            return self.tables.by_name(self.key) if value else NOTHING
        if isinstance(value, NUMBERS):
            return self.tables.number_id(self.key, value)
        raise TypeError


class _Named(dict[str, int]):
    """Ids by name; unknown names are looked up by their full name, and never added."""

    __slots__ = ("find", "prefix")

    def __init__(
        self, prefix: str, find: Callable[[str], int], known: dict[str, int] | None = None
    ) -> None:
        super().__init__(known or {})
        self.prefix, self.find = prefix, find

    def __missing__(self, name: str) -> int:
        return self.find(self.prefix + plain(name))


class _NamedTables(dict[str, dict[str, int]]):
    """Ids by key and value; unknown ones are looked up by their full name, and never added."""

    def __init__(self, separator: str, find: Callable[[str], int]) -> None:
        self.separator, self.find = separator, find

    def __missing__(self, key: str) -> dict[str, int]:
        return _Named(plain(key) + self.separator, self.find)
