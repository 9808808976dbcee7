"""Feature dicts, as python-crfsuite takes them, read into events: rows, and the ids they hold.

An attribute is its name, as in CRFsuite: {"a": "b"}, {"a=b": True} and ["a=b"] are one feature
(as python-crfsuite's manual has it; its code joins key and value with ":").
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import isinf
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.missing_methods import MISSING_VALUE

BLOCK_ROWS = 16384  # rows given at once: bounds the temporary arrays
BARE_COLUMN = ""  # logical column of items that are lists of strings

NUMBERS = (int, float, np.integer, np.floating)
VALUES = "a value is a str, bool, number, None, list of str, or a dict of these"
ITEMS = "an item is a dict of features or a list of strings"
SEQUENCES = "is a list of sequences, a sequence is a list of items, " + ITEMS


@dataclass(frozen=True)
class Ids:
    """The id of everything an item can say, by the way it is said."""

    strings: dict[str, dict[str, int]]  # {key: value}
    bags: dict[str, dict[str, int]]  # {key: [item]}
    flags: dict[str, int]  # {name: True}
    bare: dict[str, int]  # [name]
    numbers: dict[str, int]  # {name: 2.5}
    missing: dict[str, int]  # {key: None}, {key: nan}
    first_number: int  # a number for an id below this one is an indicator's: nonzero or absent


def new_ids(next_id: Callable[[], int], indicator: bool = False) -> Ids:
    """Tables that give everything a new id as it appears.

    indicator: a missing value is the string value MISSING_VALUE of its key.
    """
    strings = _NewTables(next_id)
    return Ids(
        strings=strings,
        bags=_NewTables(next_id),
        flags=_NewIds(next_id),
        bare=_NewIds(next_id),
        numbers=_NewIds(next_id),
        missing=_AsValue(strings) if indicator else _NewIds(next_id),
        first_number=0,
    )


def as_string_values(name: str, strings: dict[str, Any]) -> Iterator[int]:
    """Ids of every key and value in the tables that spell the name "key=value"."""
    cut = name.find("=")
    while cut >= 0:
        table = strings.get(name[:cut])
        found = None if table is None else table.get(name[cut + 1 :])
        if found is not None:
            yield found
        cut = name.find("=", cut + 1)


def named(seen: Ids, numeric: npt.NDArray[np.int32]) -> Iterator[tuple[int, str, str]]:
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


@dataclass(frozen=True)
class Events:
    """The ids of all rows in the order read; ~id means a number other than 1, see `values`."""

    offsets: npt.NDArray[np.int64]  # shape: (n_sequences + 1,), rows
    ends: npt.NDArray[np.int64]  # shape: (n_rows + 1,), the events before each row
    ids: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]  # the numbers other than 1, in the order of their ids

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

    def part(self, first: int, last: int) -> Events:
        """The events of the sequences from first to last - 1."""
        if (first, last) == (0, len(self.offsets) - 1):
            return self
        rows = slice(int(self.offsets[first]), int(self.offsets[last]) + 1)
        ends = self.ends[rows]
        begin, end = int(ends[0]), int(ends[-1])
        used = int(np.count_nonzero(self.ids[:begin] < 0))
        n_given = int(np.count_nonzero(self.ids[begin:end] < 0))
        return Events(
            offsets=self.offsets[first : last + 1] - self.offsets[first],
            ends=ends - begin,
            ids=self.ids[begin:end],
            values=self.values[used : used + n_given],
        )

    def rename(self, new: npt.NDArray[np.int32]) -> None:
        """Give every event its new id, in place."""
        for first in range(0, len(self.ids), 1 << 20):
            part = self.ids[first : first + (1 << 20)]
            given = part < 0
            part[:] = new[np.where(given, ~part, part)]
            part[given] = ~part[given]


def narrow_ranges(events: Events, n_keys: int, n_cells: int) -> list[tuple[int, int]]:
    """Ranges of whole sequences whose rows, as wide as the widest of a range, have few cells.

    n_keys: cells that each row has beside those of its events. n_cells: the most in a range, if it
    is of more than one sequence.
    """
    if (len(events.ids) + n_keys) * events.n_rows <= n_cells:  # no row is wider than all events
        return [(0, len(events.offsets) - 1)]
    lengths = np.diff(events.offsets)
    n_sequences = len(lengths)
    widths = np.diff(events.ends)
    if not n_sequences or int(widths.max(initial=0) + n_keys) * events.n_rows <= n_cells:
        return [(0, n_sequences)]
    widest = np.zeros(n_sequences, np.int64)
    np.maximum.at(widest, np.repeat(np.arange(n_sequences), lengths), widths)
    ranges = []
    first = n_rows = width = 0
    for s, (length, own) in enumerate(zip(lengths.tolist(), widest.tolist(), strict=True)):
        if s > first and (n_rows + length) * (max(width, own) + n_keys) > n_cells:
            ranges.append((first, s))
            first, n_rows, width = s, 0, 0
        n_rows, width = n_rows + length, max(width, own)
    return [*ranges, (first, n_sequences)]


def scan(X: Iterable[Iterable[Any]], ids: Ids, name: str, first_sequence: int = 0) -> Events:
    """Read every item of X once; errors call it by the name, and number its sequences."""
    events, values = array("i"), array("d")
    ends, offsets = array("q", [0]), array("q", [0])
    pending: list[int] = []  # of the current sequence: a list takes them faster than an array
    add, tables, bare = pending.append, ids.strings, ids.bare
    read = _entry_reader(ids, add, values.append)
    for s, sequence in enumerate(iterate(X, name, name), first_sequence):
        t, key = 0, None
        try:
            for t, item in enumerate(iterate(sequence, f"{name}[{s}]", name)):  # noqa: B007
                if isinstance(item, dict):
                    for key, value in item.items():
                        if type(value) is str:
                            add(tables[key][value])
                        else:
                            read(key, value)
                elif isinstance(item, (list, tuple, set, frozenset)):
                    for string in _strings_of(item, ""):
                        add(bare[string])
                else:
                    raise _Refused(TypeError, "", f"is of type {type(item).__name__}; {ITEMS}")
                ends.append(len(events) + len(pending))
        except _Refused as refused:
            message = f"treecrf: {name}[{s}][{t}]{refused.where} {refused.problem}"
            raise refused.kind(message) from None
        except OverflowError:
            message = f"treecrf: {name}[{s}][{t}][{key!r}] is too large a number; scale it down"
            raise ValueError(message) from None
        except RecursionError:
            message = f"treecrf: {name}[{s}][{t}] is nested too deep; flatten it"
            raise ValueError(message) from None
        offsets.append(len(ends) - 1)
        events.fromlist(pending)
        pending.clear()
    return Events(
        offsets=np.array(offsets, dtype=np.int64),
        ends=np.array(ends, dtype=np.int64),
        ids=np.frombuffer(events, dtype=np.int32) if events else np.empty(0, dtype=np.int32),
        values=np.array(values, dtype=np.float64),
    )


def _entry_reader(
    ids: Ids, add: Callable[[int], None], add_value: Callable[[float], None]
) -> Callable[[str, object], None]:
    """A function that reads one entry of a dict: a closure, because its variables are fast."""
    strings, bags, flags, missing = ids.strings, ids.bags, ids.flags, ids.missing
    read_number = _number_reader(ids, add, add_value)

    def read(key: str, value: object) -> None:
        """Add the ids of an entry; `key` holds the keys above it too."""
        if not isinstance(key, str):
            plain(key)
        if value is True:
            add(flags[key])
        elif value is False:
            pass
        elif value is None:
            add(missing[key])
        elif isinstance(value, NUMBERS):
            read_number(key, value)
        elif isinstance(value, str):
            add(strings[key][plain(value)])
        elif isinstance(value, np.bool_):
            read(key, bool(value))
        elif isinstance(value, dict):
            for inner, inner_value in value.items():
                if not isinstance(inner, str):
                    plain(inner)
                read(f"{key}:{inner}", inner_value)
        elif isinstance(value, (list, tuple, set, frozenset)):
            bag = bags[key]
            for item in _strings_of(value, f"[{key!r}]"):
                add(bag[item])
        else:
            problem = f"is of type {type(value).__name__}; {VALUES}"
            raise _Refused(TypeError, f"[{key!r}]", problem)

    return read


def _number_reader(
    ids: Ids, add: Callable[[int], None], add_value: Callable[[float], None]
) -> Callable[[str, Any], None]:
    """A function that reads an entry whose value is a number."""
    numbers, missing, first_number = ids.numbers, ids.missing, ids.first_number

    def read_number(key: str, value: Any) -> None:
        i = numbers[key]
        if value == 1:
            add(i)
        elif isinf(value):
            problem = f"is {value}; give a finite number, or None where it is missing"
            raise _Refused(ValueError, f"[{key!r}]", problem)
        elif i >= first_number:
            add_value(float(value))
            add(~i)
            if value != value:
                add(missing[key])
        elif value != value:
            add(missing[key])
        elif value:
            add(i)

    return read_number


def iterate(value: Iterable[Any], where: str, name: str) -> Iterator[Any]:
    """The elements of a list of sequences, or of one; what is no list is refused."""
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, dict, set, frozenset)):
        try:
            return iter(value)
        except TypeError:  # an array without dimensions has the method, and refuses
            pass
    kind = type(value).__name__
    raise TypeError(f"treecrf: {where} is of type {kind}; {name} {SEQUENCES}")


def _strings_of(bag: Iterable[Any], where: str) -> Iterable[str]:
    """The strings of a list, or of a set in sorted order."""
    for item in bag:
        if not isinstance(item, str):
            problem = f"holds {item!r} of type {type(item).__name__}; only str may stand in a list"
            raise _Refused(TypeError, where, problem)
    return sorted(bag) if isinstance(bag, (set, frozenset)) else bag


class _Refused(Exception):
    """Something in an item that cannot be read; `scan` adds the place."""

    def __init__(self, kind: type[Exception], where: str, problem: str) -> None:
        super().__init__(problem)
        self.kind, self.where, self.problem = kind, where, problem


def plain(name: object) -> str:
    """The name as a plain str, also if it is of a subclass such as np.str_."""
    if not isinstance(name, str):
        problem = f"has the key {name!r} of type {type(name).__name__}; keys must be str"
        raise _Refused(TypeError, "", problem)
    return str.__str__(name)


class _NewIds(dict[str, int]):
    """Ids by name; a new name gets a new id."""

    def __init__(self, next_id: Callable[[], int]) -> None:
        self.next_id = next_id

    def __missing__(self, name: str) -> int:
        if type(name) is not str:
            return self[plain(name)]
        self[name] = new = self.next_id()
        return new


class _NewTables(dict[str, dict[str, int]]):
    """Ids by key and value; what is new gets a new id."""

    def __init__(self, next_id: Callable[[], int]) -> None:
        self.next_id = next_id

    def __missing__(self, key: str) -> dict[str, int]:
        if type(key) is not str:
            return self[plain(key)]
        self[key] = new = _NewIds(self.next_id)
        return new


class _AsValue(dict[str, int]):
    """Ids of missing values by key: each is the id of a string value of the key."""

    def __init__(self, strings: dict[str, dict[str, int]]) -> None:
        self.strings = strings

    def __missing__(self, key: str) -> int:
        return self.strings[key][MISSING_VALUE]
