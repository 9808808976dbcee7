"""Docs in, arrays of feature ids and bins out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_treecrf.engine.binning import MAX_BINS
from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.features.batch import Batch
from spacy_treecrf.features.layout import SourceTable, tables_of
from spacy_treecrf.features.source import Entities, Source

if TYPE_CHECKING:
    from spacy_treecrf.engine.keys import KeyTable

Encoded = tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]

MAX_CACHED_ROWS = 2**20
MAX_CACHED_BYTES = 2**27


class FeatureExtractor(Protocol):
    """What a pipe asks of its features. Order of calls: check, learn, fit once; then encode.

    After `from_state`, only `encode`.
    """

    reads_annotations: bool  # set by other pipes, thus different from epoch to epoch

    def check(self, vocab: Vocab) -> None:
        """Load tables that the config asks for; a ValueError says what is missing."""

    def learn(self, docs: Sequence[Doc], entities: Entities | None) -> None:
        """Learn from annotation: (start, end, label) of the entities of each training doc."""

    def fit(
        self,
        docs: Sequence[Doc],
        offsets: npt.NDArray[np.int64],
        *,
        min_count: int,
        max_bins: int,
        missing: str = "absent",
        training: bool = True,
    ) -> Columns:
        """The features of the training data.

        missing: How missing values are treated, see `engine.missing`.
        """
        ...

    def encode(
        self,
        docs: Sequence[Doc],
        offsets: npt.NDArray[np.int64],
        columns: Columns,
        *,
        training: bool = False,
    ) -> Encoded:
        """Feature ids (n_tokens, n_slots) and bins (n_tokens, n_numeric) of docs.

        training: The docs are those of `learn`; they do not see what they alone have taught.
        """
        ...

    def to_state(self) -> dict[str, Any]:
        """What was loaded and learned: texts, numbers, lists and arrays."""
        ...

    def from_state(self, state: dict[str, Any]) -> None:
        """Take over such a state, every field checked."""


class Extractor:
    """Features of several sources, side by side.

    What a key means is worked out once and kept as a row of ids, as long as vocab, columns and
    everything learned stay the same.

    bins_of: by the name of a source, a lower limit for the bins of its numeric columns.
    outside_is_missing: a position outside of the sequence has missing values, not the edge's.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        bins_of: dict[str, int] | None = None,
        outside_is_missing: bool = False,
    ) -> None:
        self.sources = list(sources)
        self.bins_of = bins_of or {}
        self.outside_is_missing = outside_is_missing
        self.reads_annotations = any(source.reads_annotations for source in self.sources)
        self._attrs = sorted({attr for source in self.sources for attr in source.attrs})
        self._cache: _Cache | None = None
        self._lock = _Lock()

    def check(self, vocab: Vocab) -> None:
        for source in self.sources:
            source.check(vocab)

    def learn(self, docs: Sequence[Doc], entities: Entities | None) -> None:
        with self._lock.held():
            self._cache = None
            for source in self.sources:
                source.learn(docs, entities)

    def fit(
        self,
        docs: Sequence[Doc],
        offsets: npt.NDArray[np.int64],
        *,
        min_count: int,
        max_bins: int,
        missing: str = "absent",
        training: bool = True,
    ) -> Columns:
        from spacy_treecrf.features.fitting import Limits, fit_columns

        if min_count < 1:
            raise ValueError(f"treecrf: min_count is {min_count}; it must be 1 or more")
        if not 2 <= max_bins <= MAX_BINS:
            raise ValueError(f"treecrf: max_bins is {max_bins}; it must be from 2 to {MAX_BINS}")
        with self._lock.held():
            self._cache = None
            batch = Batch(docs, offsets, self._attrs, training)
            if docs:
                self.check(batch.vocab)
            limits = Limits(min_count, max_bins, missing, self.outside_is_missing)
            return fit_columns(batch, self.sources, self.bins_of, limits)

    def encode(
        self,
        docs: Sequence[Doc],
        offsets: npt.NDArray[np.int64],
        columns: Columns,
        *,
        training: bool = False,
    ) -> Encoded:
        batch = Batch(docs, offsets, self._attrs, training)
        codes = np.empty((batch.n_tokens, len(columns.slot_keys)), np.int32)
        numeric = np.empty((batch.n_tokens, len(columns.numeric_names)), np.uint8)
        if not batch.n_tokens:
            return codes, numeric
        with self._lock.held():
            try:
                cache = self._cache_of(batch.vocab, columns)
                for cached in cache.sources:
                    cached.write(batch, codes, numeric)
            except BaseException:
                self._cache = None  # it may have keys without rows
                raise
        columns.impute_bins(numeric)
        return codes, numeric

    def to_state(self) -> dict[str, Any]:
        states = {source.name: source.to_state() for source in self.sources}
        return {name: state for name, state in states.items() if state}

    def from_state(self, state: dict[str, Any]) -> None:
        fields = Fields(state, path="features")
        sources = deepcopy(self.sources)  # so that a state that is refused changes nothing
        for source in sources:
            if source.to_state():  # it has one at all
                source.from_state(fields.fields(source.name))
        fields.done()
        with self._lock.held():
            self.sources, self._cache = sources, None

    def _cache_of(self, vocab: Vocab, columns: Columns) -> _Cache:
        stamps = [source.stamp(vocab) for source in self.sources]
        cache = self._cache
        if (
            cache is None
            or cache.vocab is not vocab
            or cache.columns is not columns
            or cache.stamps != stamps
        ):
            tables = tables_of(columns, self.sources, self.outside_is_missing)
            cache = self._cache = _Cache(vocab, columns, stamps, self.sources, tables)
        return cache


class _Lock:
    """One thread at a time: servers call a pipe from many, and they share its caches.

    Copies, and processes that are forked, have a lock of their own.
    """

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        self._lock, self._process = RLock(), os.getpid()

    def held(self) -> AbstractContextManager[Any]:
        if self._process != os.getpid():
            self._renew()
        return self._lock

    def __reduce__(self) -> tuple[type[_Lock], tuple[()]]:
        return _Lock, ()


class _Cache:
    """Rows of all sources for one vocab and one model."""

    def __init__(
        self,
        vocab: Vocab,
        columns: Columns,
        stamps: list[Any],
        sources: Sequence[Source],
        tables: Sequence[SourceTable],
    ) -> None:
        self.vocab = vocab
        self.columns = columns
        self.stamps = stamps
        self.sources = [
            _CachedSource(source, table)
            for source, table in zip(sources, tables, strict=True)
            if table.row_bytes
        ]


class _CachedSource:
    """A source, the rows its keys have got, and the ids in these rows."""

    def __init__(self, source: Source, table: SourceTable) -> None:
        self.source = source
        self.table = table
        self.max_rows = min(MAX_CACHED_ROWS, MAX_CACHED_BYTES // table.row_bytes)
        self._keys: KeyTable | None = None

    def write(
        self, batch: Batch, codes: npt.NDArray[np.int32], numeric: npt.NDArray[np.uint8]
    ) -> None:
        """Fill in the slots of this source."""
        self.table.gather(self._rows(batch), batch.offsets, codes, numeric)

    def _rows(self, batch: Batch) -> npt.NDArray[np.int32]:
        from spacy_treecrf.engine.keys import KeyTable

        source = self.source
        if not source.cached:
            positions = np.arange(batch.n_tokens)
            self.table.add(1, batch.n_tokens, source.read(batch, positions))
            return np.arange(1, batch.n_tokens + 1, dtype=np.int32)
        if self._keys is None or len(self._keys) > self.max_rows:
            self._keys = KeyTable(first_row=1)
            self.table.clear()
        rows, new = self._keys.rows_of(source.keys(batch))
        if len(new):
            first = self._keys.next_row - len(new)
            self.table.add(first, len(new), source.read(batch, new))
        return rows
