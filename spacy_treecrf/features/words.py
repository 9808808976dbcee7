"""A table of facts about word forms that no model has to learn, found once for each form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from spacy_treecrf.features.kernels.key_table import KeyTable


class WordTable:
    """A row of integers for each word form, by the hash of its text."""

    def __init__(self, width: int, dtype: Any) -> None:
        self.width = width
        self._keys: KeyTable | None = None
        self._table: npt.NDArray[Any] = np.empty((0, width), dtype)

    @property
    def table(self) -> npt.NDArray[Any]:
        """The rows found so far. shape: (at least the number of rows, width)"""
        return self._table

    def arrays(self) -> list[npt.NDArray[Any]]:
        """The places of keys and their rows, as `find_place` takes them, and the table of rows.

        There is a key or more.
        """
        assert self._keys is not None
        return [self._keys.keys, self._keys.rows, self._table]

    def __len__(self) -> int:
        return 0 if self._keys is None else len(self._keys)

    def rows(
        self,
        keys: npt.NDArray[np.uint64],
        describe: Callable[[npt.NDArray[np.uint64]], npt.NDArray[Any]],
    ) -> npt.NDArray[np.int32]:
        """The row of each key; `describe` is asked for the rows of keys that are new."""
        if self._keys is None:
            from spacy_treecrf.features.kernels.key_table import KeyTable

            self._keys = KeyTable()
        try:
            rows, new = self._keys.rows_of(keys)
            if len(new):
                first = len(self._keys) - len(new)
                self._table = grown(self._table, len(self._keys))
                self._table[first : len(self._keys)] = describe(keys[new])
        except BaseException:
            self._keys = None  # it may have keys whose rows were never filled
            raise
        return rows


def grown(table: npt.NDArray[Any], n_rows: int) -> npt.NDArray[Any]:
    """The table with room for n_rows rows, at least doubled if it must grow at all."""
    if n_rows <= len(table):
        return table
    larger = np.empty((max(n_rows, 2 * len(table), 256), table.shape[1]), table.dtype)
    larger[: len(table)] = table
    return larger
