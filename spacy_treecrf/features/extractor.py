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

from spacy_treecrf.engine.encoding.binning import MAX_BINS
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.limits import QUICK_AFTER
from spacy_treecrf.engine.sequences import ABSENT
from spacy_treecrf.features.batch import Batch
from spacy_treecrf.features.cached_source import FEW_TOKENS, CachedSource, FewTokens
from spacy_treecrf.features.layout import SourceTable, foreign, lacking, tables_of
from spacy_treecrf.features.source import Entities, Source
from spacy_treecrf.storage.state_reader import StateReader

if TYPE_CHECKING:
    from spacy_treecrf.features.fitting import ColumnLimits
    from spacy_treecrf.features.tallying import PartReading

EncodedRows = tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]

# Words that caches keep beyond a memory zone, so that the common ones are found out once.
KEPT_WORDS = 2**14
NOTHING = -1  # words kept: all caches begin anew


# Tables that a config asks for, and that a model keeps.
STORED_TABLES = ("gazetteers", "clusters", "vectors")


class FeatureExtractor(Protocol):
    """What a pipe asks of its features.

    The order of calls is check, learn, fit once, then encode; after `from_state`, only encode.
    """

    reads_annotations: bool  # whether it reads annotation of other pipes, which differs by epoch

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
        """The columns that the training data have, with their ids.

        missing: How missing values are treated, see `engine.encoding.missing_methods`.
        """
        ...

    def encode(
        self,
        docs: Sequence[Doc],
        offsets: npt.NDArray[np.int64],
        columns: Columns,
        *,
        training: bool = False,
    ) -> EncodedRows:
        """Feature ids (n_tokens, n_slots) and bins (n_tokens, n_numeric) of docs.

        training: Whether the docs are those of `learn`: none of them sees what it alone has taught.
        """
        ...

    def forget(self) -> None:
        """Drop what is kept of words that were seen, at the end of a memory zone of spaCy."""

    def to_state(self) -> dict[str, Any]:
        """The state of what was loaded and learned: texts, numbers, lists and arrays."""
        ...

    def from_state(self, state: dict[str, Any]) -> None:
        """Take over a state that `to_state` made; every field is checked."""


class Extractor:
    """Features of several sources, side by side.

    The ids that a key stands for are found once and kept as a row of a table, as long as vocab,
    columns and everything learned stay the same.

    bins_of: By the name of a source, a lower limit for the bins of its numeric columns.
    outside_is_missing: Whether positions outside of a sequence have missing values instead of the
        value of the edge.
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
        self._n_calls = 0
        self._lock = _Lock()

    def __getstate__(self) -> dict[str, Any]:
        """What a copy gets: no cache, which has addresses in the memory of this one."""
        return {**self.__dict__, "_cache": None, "_n_calls": 0}

    def check(self, vocab: Vocab) -> None:
        for source in self.sources:
            source.check(vocab)

    def learn(self, docs: Sequence[Doc], entities: Entities | None) -> None:
        self.learn_lessons([self.lesson(docs, entities)])

    def lesson(self, docs: Sequence[Doc], entities: Entities | None) -> list[Any]:
        """What the annotation of some training docs teaches each source."""
        return [source.lesson(docs, entities) for source in self.sources]

    def learn_lessons(self, lessons: Sequence[list[Any]]) -> None:
        """Learn from the lessons of all training docs, in their order."""
        with self._lock.held():
            self._cache = None
            for source, *of_source in zip(self.sources, *lessons, strict=True):
                source.learn(of_source)

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
        from spacy_treecrf.features.fitting import fit_doc_columns

        limits = self.limits(min_count, max_bins, missing)
        with self._lock.held():
            self._cache = None
            batch = Batch(docs, offsets, self._attrs, training)
            if docs:
                self.check(batch.vocab)
            return fit_doc_columns(batch, self.sources, self.bins_of, limits)

    def grow(
        self,
        docs: Sequence[Doc],
        offsets: npt.NDArray[np.int64],
        columns: Columns,
        *,
        min_count: int,
        max_bins: int,
    ) -> Columns:
        """The columns with the values of further training docs that they do not know.

        Returns the columns themselves if there are none.
        """
        from spacy_treecrf.engine.encoding.grown_columns import grown_columns
        from spacy_treecrf.features.fitting import fit_doc_columns

        with self._lock.held():
            batch = Batch(docs, offsets, self._attrs, True)
            limits = self.limits(min_count, max_bins, columns.missing)
            found = fit_doc_columns(batch, self.sources, self.bins_of, limits, prepare=False)
            return grown_columns(columns, found)

    def limits(self, min_count: int, max_bins: int, missing: str) -> ColumnLimits:
        """Limits of the columns to fit, checked."""
        from spacy_treecrf.features.fitting import ColumnLimits

        if min_count < 1:
            raise ValueError(f"treecrf: min_count is {min_count}; it must be 1 or more")
        if not 2 <= max_bins <= MAX_BINS:
            raise ValueError(f"treecrf: max_bins is {max_bins}; it must be from 2 to {MAX_BINS}")
        return ColumnLimits(min_count, max_bins, missing, self.outside_is_missing)

    def read_part(
        self, docs: Sequence[Doc], offsets: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]
    ) -> PartReading:
        """Read some of the training docs, to fit columns on all of them; see `PartReading`."""
        from spacy_treecrf.features.tallying import PartReading

        with self._lock.held():
            self._cache = None
            batch = Batch(docs, offsets, self._attrs, training=True)
            if docs:
                self.check(batch.vocab)
            for source in self.sources:
                source.prepare(batch)
            return PartReading(batch, self.sources, starts)

    def prepare(self, doc: Doc) -> None:
        """Learn what the vocab says, which any doc has."""
        batch = Batch([doc], np.array([0, len(doc)], np.int64), self._attrs, training=True)
        for source in self.sources:
            source.prepare(batch)

    def encode(
        self,
        docs: Sequence[Doc],
        offsets: npt.NDArray[np.int64],
        columns: Columns,
        *,
        training: bool = False,
    ) -> EncodedRows:
        batch = Batch(docs, offsets, self._attrs, training)
        feature_ids = np.empty((batch.n_tokens, len(columns.slot_keys)), np.int32)
        feature_ids.fill(ABSENT)
        numeric = np.empty((batch.n_tokens, len(columns.numeric_names)), np.uint8)
        if not batch.n_tokens:
            return feature_ids, numeric
        with self._lock.held():
            cache = self._cache_of(batch.vocab, columns)
            cache.whole = False
            self._n_calls += 1
            batch.few = batch.n_tokens <= FEW_TOKENS and self._n_calls > QUICK_AFTER
            if batch.few:
                cache.few.write(batch, feature_ids, numeric)
            else:
                for cached in cache.sources:
                    cached.write(batch, feature_ids, numeric)
            cache.whole = True
        columns.impute_bins(numeric)
        return feature_ids, numeric

    def forget(self) -> None:
        with self._lock.held():
            for source in self.sources:
                source.forget(KEPT_WORDS)
            for cached in self._cache.sources if self._cache else ():
                cached.forget(KEPT_WORDS)

    def to_state(self) -> dict[str, Any]:
        states = {source.name: source.to_state() for source in self.sources}
        return {name: state for name, state in states.items() if state}

    def from_state(self, state: dict[str, Any]) -> None:
        self._refuse_other_tables(state)
        reader = StateReader(state, path="features")
        sources = deepcopy(self.sources)  # a state that is refused must change nothing
        for source in sources:
            if source.to_state():  # only these have stored a state
                source.from_state(reader.nested(source.name))
        reader.done()
        with self._lock.held():
            self.sources, self._cache = sources, None

    def _refuse_other_tables(self, state: dict[str, Any]) -> None:
        """Refuse the state of a model that has other tables than the config asks for."""
        known, made = _tables_in(state), _tables_in(self.to_state())
        for name in STORED_TABLES:
            if name in known - made:
                raise foreign(name)
            if name in made - known:
                raise lacking(name)

    def _cache_of(self, vocab: Vocab, columns: Columns) -> _Cache:
        stamps = [source.stamp(vocab) for source in self.sources]
        cache = self._cache
        if (
            cache is None
            or not cache.whole
            or cache.vocab is not vocab
            or cache.columns is not columns
            or cache.stamps != stamps
        ):
            if cache is not None and not cache.whole:
                for source in self.sources:
                    source.forget(NOTHING)  # which may have been left in the midst as well
            tables = tables_of(columns, self.sources, self.outside_is_missing)
            cache = self._cache = _Cache(vocab, columns, stamps, self.sources, tables)
        return cache


def _tables_in(state: dict[str, Any]) -> set[str]:
    """The names of the tables in the state of features, and of those in these."""
    own = (table for table in state.values() if isinstance(table, dict))
    return {*state}.union(*({name for name in table if type(name) is str} for table in own))


class _Lock:
    """A lock for one thread at a time: servers call a pipe from many, which share its caches.

    Copies of it, and forked processes, have a lock of their own.
    """

    def __init__(self) -> None:
        self._of_process: dict[int, Any] = {}

    def held(self) -> AbstractContextManager[Any]:
        lock: AbstractContextManager[Any] = self._of_process.setdefault(os.getpid(), RLock())
        return lock

    def __reduce__(self) -> tuple[type[_Lock], tuple[()]]:
        return _Lock, ()


class _Cache:
    """The cached rows of all sources, for one vocab and one model.

    It is not whole while rows are added: what an exception or a fork leaves behind in the midst of
    that may have keys whose rows were never filled, and is not used again.
    """

    def __init__(
        self,
        vocab: Vocab,
        columns: Columns,
        stamps: list[Any],
        sources: Sequence[Source],
        tables: Sequence[SourceTable],
    ) -> None:
        self.whole = True
        self.vocab = vocab
        self.columns = columns
        self.stamps = stamps
        self.sources = [
            CachedSource(source, table)
            for source, table in zip(sources, tables, strict=True)
            if table.row_bytes
        ]
        self.few = FewTokens(self.sources)
