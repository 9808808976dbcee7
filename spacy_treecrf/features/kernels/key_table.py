"""A hash table from 64-bit keys to row numbers, counted up in the order the keys first appear.

Places are probed one after the other, and the table grows before it is more than half full.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel

EMPTY = -1
_FIRST_SIZE = 1024  # a power of two, like every size
_MIX = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: 2**64 divided by the golden ratio


@kernel(inline="always")
def find_place(table: npt.NDArray[np.uint64], rows: npt.NDArray[np.int32], key: np.uint64) -> int:
    """The place of the key in the table, or the empty place where it belongs."""
    mask = np.uint64(len(table) - 1)
    mixed = key * _MIX
    place = (mixed ^ (mixed >> np.uint64(32))) & mask
    while rows[place] != EMPTY and table[place] != key:
        place = (place + np.uint64(1)) & mask
    return np.int64(place)  # type: ignore[return-value]


@kernel
def _rows_of(
    keys: npt.NDArray[np.uint64],
    first: int,
    table: npt.NDArray[np.uint64],
    table_rows: npt.NDArray[np.int32],
    next_row: int,
    most: int,
    rows: npt.NDArray[np.int32],
    new: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Write the rows of keys[first:], adding new ones until row number `most`.

    new: where keys that brought a new row are, written from its start. Returns how many keys are
    done, and the next row.
    """
    n_new = 0
    for i in range(first, len(keys)):
        place = find_place(table, table_rows, keys[i])
        row = table_rows[place]
        if row == EMPTY:
            if next_row >= most:
                return i, next_row
            row = next_row
            table[place] = keys[i]
            table_rows[place] = row
            new[n_new] = i
            n_new += 1
            next_row += 1
        rows[i] = row
    return len(keys), next_row


@kernel
def _copy(
    table: npt.NDArray[np.uint64],
    table_rows: npt.NDArray[np.int32],
    into: npt.NDArray[np.uint64],
    into_rows: npt.NDArray[np.int32],
) -> None:
    """Put all keys of a table into another one."""
    for i in range(len(table)):
        if table_rows[i] != EMPTY:
            place = find_place(into, into_rows, table[i])
            into[place] = table[i]
            into_rows[place] = table_rows[i]


class KeyTable:
    """A table that grows; rows are numbered from `first_row`."""

    def __init__(self, first_row: int = 0) -> None:
        self.first_row = first_row
        self.next_row = first_row
        self.keys = np.zeros(_FIRST_SIZE, np.uint64)
        self.rows = np.full(_FIRST_SIZE, EMPTY, np.int32)

    def __len__(self) -> int:
        return self.next_row - self.first_row

    def rows_of(
        self, keys: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The row of each key, and the positions in `keys` that brought a new row, rising."""
        rows = np.empty(len(keys), np.int32)
        new = np.empty(len(keys), np.int64)
        first_new = self.next_row
        done = 0
        while True:
            most = self.first_row + len(self.keys) // 2  # half full at most
            n_new = self.next_row - first_new
            done, self.next_row = _rows_of(
                keys, done, self.keys, self.rows, self.next_row, most, rows, new[n_new:]
            )
            if done == len(keys):
                return rows, new[: self.next_row - first_new]
            self._grow()

    def _grow(self) -> None:
        keys = np.zeros(4 * len(self.keys), np.uint64)
        rows = np.full(len(keys), EMPTY, np.int32)
        _copy(self.keys, self.rows, keys, rows)
        self.keys, self.rows = keys, rows
