"""The rows that keys of sources have got: found once for each key, then gathered for tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_not
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.features.batch import Batch
from spacy_treecrf.features.document import ROW_OF, DocumentColumn
from spacy_treecrf.features.layout import SourceTable
from spacy_treecrf.features.quick_words import QuickWords, quick_words
from spacy_treecrf.features.source import Source

if TYPE_CHECKING:
    from spacy_treecrf.features.kernels.key_table import KeyTable

MAX_CACHED_ROWS = 2**15
MAX_CACHED_BYTES = 2**25
MANY_ANSWERS = 4096  # to which sources are empty
FEW_TOKENS = 256  # of a batch that all sources are gathered for at once


class CachedSource:
    """A source, the rows that its keys have got, and the ids in these rows.

    version: Changes whenever arrays may lie elsewhere than before.
    """

    def __init__(self, source: Source, table: SourceTable) -> None:
        self.source = source
        self.table = table
        self.max_rows = min(MAX_CACHED_ROWS, MAX_CACHED_BYTES // table.row_bytes)
        self.version = 0
        self._keys: KeyTable | None = None
        self._listed_keys: npt.NDArray[np.uint64] | None = None
        self._asked = False  # whether rows can be written quickly
        self._quick: QuickWords | None = None
        self._runs = [np.ascontiguousarray(runs, np.int64) for runs in table.runs]

    def write(
        self, batch: Batch, feature_ids: npt.NDArray[np.int32], numeric: npt.NDArray[np.uint8]
    ) -> None:
        """Fill in the slots that belong to this source."""
        if self.source.is_empty(batch):
            return  # the slots hold ABSENT
        self.table.gather(self._rows(batch), batch.offsets, feature_ids, numeric)

    def forget(self, most: int) -> None:
        """Remove all rows if there are more than `most`."""
        if not self.source.cached or (self._keys is not None and len(self._keys) > most):
            self._keys = self._listed_keys = None
            self.table.clear()
            self.version += 1

    def add(self, batch: Batch) -> None:
        """Find the rows of keys that have none."""
        self._rows(batch)

    def listed(self) -> list[int]:
        """Where everything lies, in the order of `kernels.small_batches`, until a row is added."""
        keys, table = self._known_keys(), self.table
        self._listed_keys = keys.keys
        id_runs, bin_runs = self._runs
        return [
            _address(keys.keys),
            _address(keys.rows),
            len(keys.keys),
            _address(table.feature_ids),
            table.feature_ids.shape[1],
            _address(table.bins),
            table.bins.shape[1],
            _address(id_runs),
            id_runs.shape[1],
            _address(bin_runs),
            bin_runs.shape[1],
        ]

    def _known_keys(self) -> KeyTable:
        if self._keys is None:
            from spacy_treecrf.features.kernels.key_table import KeyTable

            self._keys = KeyTable(first_row=1)
        return self._keys

    def _quick_words(self, batch: Batch) -> QuickWords | None:
        """What writes a few new words, made when first needed; None: rows take other steps."""
        if not self._asked:
            self._asked, self._quick = True, quick_words(self.source, self.table, batch.vocab)
        return self._quick

    def _rows(self, batch: Batch) -> npt.NDArray[np.int32]:
        source = self.source
        if not source.cached:
            positions = np.arange(batch.n_tokens)
            found = source.numbered(batch, positions, self.table.known)
            self.table.add(1, batch.n_tokens, found)
            return np.arange(1, batch.n_tokens + 1, dtype=np.int32)
        self.forget(self.max_rows)
        keys = self._known_keys()
        rows, new = keys.rows_of(source.keys(batch))
        if len(new):
            table = self.table
            before = self._listed_keys, table.feature_ids, table.bins
            first = keys.next_row - len(new)
            quick = self._quick_words(batch) if batch.few else None
            if quick is not None:
                table.make_room(keys.next_row)
                quick.write(batch, new, first)
            else:
                table.add(first, len(new), source.numbered(batch, new, table.known))
            if any(map(is_not, before, (keys.keys, table.feature_ids, table.bins))):
                self.version += 1
        return rows


class FewTokens:
    """All sources, listed for a kernel that writes the slots of few tokens by one call."""

    def __init__(self, sources: Sequence[CachedSource]) -> None:
        self._cached = [source for source in sources if source.source.cached]
        self._others = [source for source in sources if not source.source.cached]
        self._documents = _DocumentRows(self._cached)
        own = self._documents.own
        self._single = [(s, c.source) for s, c in enumerate(self._cached) if s not in own]
        self._active: dict[tuple[Any, ...], tuple[list[int], npt.NDArray[np.int64]]] = {}
        self._listed = np.empty((0, 0), np.int64)
        self._versions = [-1] * len(self._cached)  # of what is listed
        self._encode: Callable[..., int] | None = None  # the kernel; loading it loads numba

    def write(
        self, batch: Batch, feature_ids: npt.NDArray[np.int32], numeric: npt.NDArray[np.uint8]
    ) -> None:
        """Fill in the slots of all sources."""
        for other in self._others:
            other.write(batch, feature_ids, numeric)
        if self._encode is None:
            from spacy_treecrf.features.kernels.small_batches import N_LISTED, encode_small

            self._encode = encode_small
            self._listed = np.zeros((max(1, len(self._cached)), N_LISTED), np.int64)
        n = len(self._cached)
        keys = np.empty((n, batch.n_tokens), np.uint64)
        said = [self._documents.write(batch, keys)]
        for s, source in self._single:
            is_empty = source.is_empty(batch)
            said.append(is_empty)
            if not is_empty:
                keys[s] = source.keys(batch)
        active, which = self._active.get(tuple(said)) or self._find_active(batch, tuple(said))
        unknown = np.empty(n, np.int64)
        rows = np.empty((n, batch.n_tokens), np.int32)
        while True:
            for s in active:
                if self._cached[s].version != self._versions[s]:
                    self._list(s)
            arguments = which, keys, batch.offsets, rows, unknown, feature_ids, numeric
            if not self._encode(self._listed, *arguments):
                return
            n_unknown = unknown.tolist()
            for s in active:
                if n_unknown[s]:
                    self._cached[s].add(batch)

    def _find_active(
        self, batch: Batch, said: tuple[Any, ...]
    ) -> tuple[list[int], npt.NDArray[np.int64]]:
        """The sources that are not empty, kept by what they said of it: that repeats itself."""
        if len(self._active) >= MANY_ANSWERS:
            self._active.clear()
        active = [s for s, own in enumerate(self._cached) if not own.source.is_empty(batch)]
        self._active[said] = found = active, np.array(active, np.int64)
        return found

    def _list(self, s: int) -> None:
        """List a source anew."""
        own = self._cached[s]
        self._listed[s] = own.listed()
        self._versions[s] = own.version


class _DocumentRows:
    """The sources of document columns, whose keys are found together.

    own: Their places among all sources.
    """

    def __init__(self, sources: Sequence[CachedSource]) -> None:
        found = {s: own.source for s, own in enumerate(sources)}
        columns = {s: own for s, own in found.items() if isinstance(own, DocumentColumn)}
        self._words = next((column.words for column in columns.values()), None)
        columns = {s: column for s, column in columns.items() if column.words is self._words}
        self.own = list(columns)
        self._at = _places(self.own)
        self._rows = _places([ROW_OF[column.kind] for column in columns.values()])
        self._columns = columns

    def write(self, batch: Batch, keys: npt.NDArray[np.uint64]) -> Any:
        """Write their rows of keys; returns what decides which of them are empty."""
        if self._words is None:
            return None
        few = self._words.few(batch)
        if few is not None:
            keys[self._at] = few.table[self._rows]
            return few.bits
        for s, column in self._columns.items():
            keys[s] = column.keys(batch)
        return tuple(column.is_empty(batch) for column in self._columns.values())


def _places(numbers: list[int]) -> slice | npt.NDArray[np.int64]:
    """Rows by their numbers: a slice, which is quicker, if they follow each other."""
    run = slice(numbers[0], numbers[0] + len(numbers)) if numbers else slice(0)
    return run if numbers == [*range(run.start or 0, run.stop)] else np.array(numbers, np.int64)


def _address(array: npt.NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
