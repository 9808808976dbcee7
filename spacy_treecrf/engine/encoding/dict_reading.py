"""Flat dicts read by one kernel, by way of Python's own functions.

Python's loops take longer to bring the values of dicts together than a kernel to read them where
they are. The keys of a dict are its shape (see `item_codes`). A kernel knows shapes by the
addresses of their keys, and asks for one that it does not know.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.item_codes import (
    ASK,
    FIRST_TEXT,
    NO_SLOT,
    NONE,
    ONE,
    OTHER,
    ZERO,
    ItemCodes,
    Shape,
)
from spacy_treecrf.engine.encoding.text_records import (
    TextRecords,
    id_of_text,
    place_of_text,
    text_records,
)
from spacy_treecrf.engine.intrinsics import prefetch_cell
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.python_calls import (
    AS_DOUBLE,
    AS_UTF8,
    CLEAR_ERROR,
    COMPARE_TEXTS,
    FALSE,
    FLOAT,
    GET_ITEM,
    INT,
    INT_0,
    INT_1,
    NEXT_ENTRY,
    NONE_OBJECT,
    STR,
    TRUE,
    TYPE_AT,
    WORD_BYTES,
    addresses,
    call,
    call_for_double,
    load_word,
)

MAX_KNOWN = 64  # shapes; where there are more, they are forgotten
MAX_NEW = 16  # shapes that one list of dicts may add
MAX_PAUSE = 64  # lists that are not read after some that had new shapes
CHANGED = -1  # instead of a row: a dict has another length than it had

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]


class KnownShapes(NamedTuple):
    """Shapes, one behind the other."""

    first: Ints  # shape: (n_shapes + 1,)
    keys: Ints  # addresses
    shapes: Shape


class _Entries(NamedTuple):
    """Room for the entries of one dict.

    The first three are addresses. length: Of a text, in bytes, or ~code of another value.
    """

    keys: Ints
    values: Ints
    letters: Ints
    length: Ints
    place: npt.NDArray[np.uint64]


class DictReader:
    """Reads flat dicts under learned columns.

    What it keeps are shapes, and how long it pauses after lists that had new ones: where features
    are keys, each dict has a shape of its own, and it is better not to try. Threads may share it.
    Python keeps the UTF-8 of a text that it was asked for, if the text is not ASCII.
    """

    def __init__(self, codes: ItemCodes, calls: Ints) -> None:
        self._codes, self._calls = codes, calls
        texts = [value for value in codes.codes if type(value) is str]
        self._texts = text_records(texts, codes.text_ids, FIRST_TEXT)
        self._kept = _Kept()
        self._pause = self._left = 0  # lists that are not read, and how many of them are to come

    def read(self, items: list[dict[str, Any]]) -> tuple[Ints, Ids, int] | None:
        """The entries before each dict, ids of all, or ASK, and how many are to be asked for.

        None in a pause, or where there are too many shapes. Raises some exception where a key is no
        text.
        """
        if self._left > 0:
            self._left -= 1
            return None
        kept = self._kept
        found = self._read(items)
        is_usual = found is not None and self._kept is kept
        self._left = self._pause = 0 if is_usual else min(2 * self._pause + 1, MAX_PAUSE)
        return found

    def _read(self, items: list[dict[str, Any]]) -> tuple[Ints, Ids, int] | None:
        n = len(items)
        ends = np.zeros(n + 1, np.int64)
        np.cumsum(np.fromiter(map(len, items), np.int64, n), out=ends[1:])
        ids = np.empty(int(ends[-1]), np.int32)
        kept, row, n_asked = self._kept, 0, 0
        for _ in range(MAX_NEW + 1):
            row, asked = read_dicts(self._calls, id(items), row, ends, kept.known, self._texts, ids)
            n_asked += asked
            if row == n:
                return ends, ids, n_asked
            if row == CHANGED:
                return None
            keys = tuple(items[row])
            if keys in kept.keys:  # and yet it is not one of them
                return None
            self._kept = kept = kept.with_shape(keys, self._codes.shape(keys))
        return None


class _Kept:
    """Shapes that a reader knows, and their keys, which live as long as their addresses count."""

    def __init__(self, keys: tuple[tuple[str, ...], ...] = (), shapes: tuple[Shape, ...] = ()):
        self.keys, self.shapes = keys, shapes
        self.known = KnownShapes(
            np.cumsum([0, *map(len, keys)], dtype=np.int64),
            np.array([id(key) for own in keys for key in own], np.int64),
            np.concatenate([np.empty((0, 4), np.int32), *shapes]),
        )

    def with_shape(self, keys: tuple[str, ...], shape: Shape) -> _Kept:
        if len(self.keys) >= MAX_KNOWN:
            return _Kept((keys,), (shape,))
        return _Kept((*self.keys, keys), (*self.shapes, shape))


def dict_reader(codes: ItemCodes) -> DictReader | None:
    """A reader, or None where kernels cannot call Python."""
    calls = addresses()
    return None if calls is None else DictReader(codes, calls)


@step
def _take_entries(calls: Ints, item: int, passed: Ints, n: int, entries: _Entries) -> bool:
    """Write keys and values of a dict; returns whether there are n. passed: Scratch of 3 words."""
    passed[0] = 0
    words = np.int64(passed.ctypes.data)
    step_, key, value = words, words + WORD_BYTES, words + 2 * WORD_BYTES
    taken = 0
    while call(calls[NEXT_ENTRY], (item, step_, key, value)) & INT:
        if taken == n:
            return False
        entries.keys[taken] = passed[1]
        entries.values[taken] = passed[2]
        taken += 1
    return taken == n


@step
def _has_keys(calls: Ints, keys: Ints, n: int, known: KnownShapes, first: int) -> bool:
    """Return whether the first n keys are those of the shape whose keys begin at `first`."""
    for i in range(n):
        key, own = keys[i], known.keys[first + i]
        if key != own:
            if np.int64(load_word(key + TYPE_AT)) != calls[STR]:
                return False
            if call(calls[COMPARE_TEXTS], (key, own)) & INT:
                return False
    return True


@step
def _shape_of(calls: Ints, keys: Ints, n: int, known: KnownShapes, last: int) -> int:
    """Return the number of the shape of n keys, which is often the last one's; -1: not known."""
    n_shapes = len(known.first) - 1
    for attempt in range(n_shapes):
        shape = (last + attempt) % n_shapes
        first = known.first[shape]
        if known.first[shape + 1] - first == n and _has_keys(calls, keys, n, known, first):
            return shape
    return -1


@step
def _code_of(calls: Ints, value: int) -> int:
    """Return the code of a value that is no text, or OTHER."""
    if value == calls[TRUE] or value == calls[INT_1]:
        return ONE
    if value == calls[FALSE] or value == calls[INT_0]:
        return ZERO
    if value == calls[NONE_OBJECT]:
        return NONE
    if np.int64(load_word(value + TYPE_AT)) == calls[FLOAT]:
        number = call_for_double(calls[AS_DOUBLE], (value,))
        if number == 1.0:
            return ONE
        if number == 0.0:
            return ZERO
    return OTHER


@step
def _find_letters(calls: Ints, n: int, passed: Ints, known: TextRecords, entries: _Entries) -> None:
    """Write where the letters of n values are, and where the search for these texts begins."""
    for i in range(n):
        value = entries.values[i]
        if np.int64(load_word(value + TYPE_AT)) != calls[STR]:
            entries.length[i] = ~_code_of(calls, value)
            continue
        letters = call(calls[AS_UTF8], (value, np.int64(passed.ctypes.data)))
        if letters:
            entries.letters[i] = letters
            entries.length[i] = passed[0]
            entries.place[i] = place_of_text(letters, passed[0], known)
        else:  # half of a surrogate pair
            call(calls[CLEAR_ERROR], ())
            entries.length[i] = ~OTHER
    for i in range(n):
        if entries.length[i] >= 0:
            prefetch_cell(known.records, known.places[entries.place[i]])


@step
def _id_of(entries: _Entries, i: int, own: npt.NDArray[np.int32], known: TextRecords) -> np.int64:
    """Return the id of an entry, or ASK. own: What the shape says of its key."""
    length = entries.length[i]
    if length >= 0:
        if own[0] == NO_SLOT:
            return np.int64(ASK)
        found: np.int64 = id_of_text(entries.letters[i], length, entries.place[i], own[0], known)
        return found
    return np.int64(ASK) if ~length == OTHER else np.int64(own[~length])


@kernel(nogil=False)
def read_dicts(
    calls: Ints,
    items: int,
    first_row: int,
    ends: Ints,
    known: KnownShapes,
    texts: TextRecords,
    ids: Ids,
) -> tuple[int, int]:
    """Write the ids of entries, or ASK, of the dicts of a list from a row on.

    items: The address of the list. Returns the row of a dict whose shape is not known, or the
    number of all dicts, or CHANGED; and how many entries are to be asked for.
    """
    n_rows = len(ends) - 1
    widest = 0
    for row in range(first_row, n_rows):
        widest = max(widest, ends[row + 1] - ends[row])
    room = np.empty((4, widest), np.int64)
    entries = _Entries(room[0], room[1], room[2], room[3], np.empty(widest, np.uint64))
    passed = np.zeros(3, np.int64)
    n_asked = shape = 0
    for row in range(first_row, n_rows):
        n = ends[row + 1] - ends[row]
        item = call(calls[GET_ITEM], (items, np.int64(row)))
        if item == 0:  # the list has become shorter
            call(calls[CLEAR_ERROR], ())
            return CHANGED, 0
        if not _take_entries(calls, item, passed, n, entries):
            return CHANGED, 0
        shape = _shape_of(calls, entries.keys, n, known, max(shape, 0))
        if shape < 0:
            return row, n_asked
        _find_letters(calls, n, passed, texts, entries)
        for i in range(n):
            found = _id_of(entries, i, known.shapes[known.first[shape] + i], texts)
            ids[ends[row] + i] = found
            n_asked += found == ASK
    return n_rows, n_asked
