"""Where arrays with an entry for each row live: in memory, or in files that are mapped into it.

The system may write pages of a mapped file back and take their memory for something else, which it
cannot do with other arrays. Whatever has the size of the rows times labels or columns is made by a
`RowStorage`, so that a training can have more of it than there is memory. Values are the same
wherever they are.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)
Shape = int | tuple[int, ...]

# Smaller arrays stay in memory: a file costs an open handle, and whole pages.
LEAST_BYTES = 1 << 18
BLOCK_BYTES = 1 << 24  # what is copied at once


class RowStorage:
    """Arrays in memory, or in files of a folder.

    A file has no name there (or loses it as soon as it is made), and ends with its array: nothing
    is left in the folder, however the process ends. Where systems cannot do that, as Windows, the
    file is removed when its array is, or when the process ends.

    folder: None keeps arrays in memory. least_bytes: The size of arrays that get a file.
    """

    def __init__(self, folder: str | None = None, least_bytes: int = LEAST_BYTES) -> None:
        self.folder = folder
        self.least_bytes = least_bytes

    def check(self) -> RowStorage:
        """The storage itself, if there is its folder."""
        if self.folder is not None and not os.path.isdir(self.folder):
            raise ValueError(
                f"treecrf: there is no folder {self.folder!r} to spill to; make it, or name another"
            )
        return self

    @property
    def spills(self) -> bool:
        """Whether large arrays are in files."""
        return self.folder is not None

    def empty(self, shape: Shape, dtype: type[Scalar]) -> npt.NDArray[Scalar]:
        """An array whose values are to be set."""
        return self._mapped(shape, dtype) if self._in_file(shape, dtype) else np.empty(shape, dtype)

    def zeros(self, shape: Shape, dtype: type[Scalar]) -> npt.NDArray[Scalar]:
        """An array of zeros."""
        return self._mapped(shape, dtype) if self._in_file(shape, dtype) else np.zeros(shape, dtype)

    def keep(self, array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """The array itself, or a copy in a file."""
        if not self._in_file(array.shape, array.dtype):
            return array
        kept = self._mapped(array.shape, array.dtype)
        for rows in _blocks(array):
            kept[rows] = array[rows]
        return kept

    def select(
        self, array: npt.NDArray[Scalar], mask: npt.NDArray[np.bool_]
    ) -> npt.NDArray[Scalar]:
        """A copy of the rows for which the mask holds. shape: (n_chosen, ...)"""
        if not self._in_file(array.shape, array.dtype):
            return array[mask]
        kept = self._mapped((int(np.count_nonzero(mask)), *array.shape[1:]), array.dtype)
        first = 0
        for rows in _blocks(array):
            some = array[rows][mask[rows]]
            kept[first : first + len(some)] = some
            first += len(some)
        return kept

    def joined(self, parts: Sequence[npt.NDArray[Scalar]]) -> npt.NDArray[Scalar]:
        """The rows of all parts, in this order."""
        shape = (sum(map(len, parts)), *parts[0].shape[1:])
        return np.concatenate(parts, out=self.empty(shape, parts[0].dtype.type))

    def transposed(self, table: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """A copy of a table, columns first. shape: (n_columns, n_rows)"""
        if not self._in_file(table.shape, table.dtype):
            return np.ascontiguousarray(table.T)
        kept = self._mapped(table.shape[::-1], table.dtype)
        for rows in _blocks(table):
            kept[:, rows] = table[rows].T
        return kept

    def repeated(self, array: npt.NDArray[Scalar], n: int) -> npt.NDArray[Scalar]:
        """A copy in which the second axis, of length 1, has length n. shape: (n_rows, n, ...)"""
        kept = self.empty((len(array), n, *array.shape[2:]), array.dtype.type)
        for rows in _blocks(kept):
            kept[rows] = array[rows]
        return kept

    def _in_file(self, shape: Shape, dtype: npt.DTypeLike) -> bool:
        return self.spills and _n_bytes(shape, dtype) >= max(self.least_bytes, 1)

    def _mapped(self, shape: Shape, dtype: Any) -> npt.NDArray[Any]:
        """An array of zeros in a file of its own."""
        import tempfile  # here: it takes a while to load, and most trainings spill nothing

        n_bytes = max(1, _n_bytes(shape, dtype))
        try:
            with tempfile.TemporaryFile(dir=self.folder, prefix="treecrf-") as file:
                # A write to a page that the disk has no room for would kill the process.
                if hasattr(os, "posix_fallocate"):  # not on macOS and Windows
                    os.posix_fallocate(file.fileno(), 0, n_bytes)
                else:
                    file.truncate(n_bytes)
                mapped = mmap.mmap(file.fileno(), n_bytes)
        except OSError as error:
            raise ValueError(
                f"treecrf: cannot spill {n_bytes / 2**20:.0f} MB to {self.folder!r}: "
                f"{error.strerror or error}; make room there, or name another folder"
            ) from error
        return np.ndarray(shape, dtype, buffer=mapped)


IN_MEMORY = RowStorage()


class GrowingArray:
    """An array of one dimension that grows at its end."""

    def __init__(self, storage: RowStorage, dtype: type[np.generic]) -> None:
        self._storage = storage
        self._room = np.empty(0, dtype)
        self._n = 0

    def extend(self, values: npt.NDArray[Any]) -> None:
        needed = self._n + len(values)
        if needed > len(self._room):
            room = self._storage.empty(max(needed, 2 * len(self._room)), self._room.dtype.type)
            old, new = self.values, room[: self._n]
            for part in _blocks(old):
                new[part] = old[part]
            self._room = room
        self._room[self._n : needed] = values
        self._n = needed

    @property
    def values(self) -> npt.NDArray[Any]:
        """What the array holds, as a view."""
        return self._room[: self._n]


def _n_bytes(shape: Shape, dtype: npt.DTypeLike) -> int:
    n = shape if isinstance(shape, int) else math.prod(shape)
    return int(n) * np.dtype(dtype).itemsize


def _blocks(array: npt.NDArray[Any]) -> list[slice]:
    """Ranges of rows of about BLOCK_BYTES."""
    n = max(1, BLOCK_BYTES // max(1, array[:1].nbytes))
    return [slice(first, first + n) for first in range(0, len(array), n)]
