"""What some of the training docs say about columns; what parts say is merged to what all say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.binning import CountedValues, count_values, merge_counts
from spacy_treecrf.features.batch import Batch
from spacy_treecrf.features.source import Reading, Source, Texts
from spacy_treecrf.features.vectors import MAX_SAMPLE

Int64s = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

OUTSIDE = -1
ABSENT_TEXT = -1
MISSING_TEXT = -2


@dataclass
class TextTally:
    """A base column of texts: how many tokens have each value, and at how many it is missing."""

    values: list[str]  # in order of appearance
    first: Int64s  # the token where each of them appears first, among all training tokens
    counts: dict[int, Int64s]  # by offset
    missing: dict[int, int]  # by offset; empty: no value is missing


@dataclass
class NumberTally:
    """A base column of numbers: all that tokens have, and those that quantiles are taken from."""

    counted: CountedValues
    sample: CountedValues


@dataclass
class SourceTally:
    """The base columns of a source. first: the token from which on a column is there."""

    texts: dict[str, TextTally] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    numbers: list[str] = field(default_factory=list)
    known: dict[str, Int64s] = field(default_factory=dict)  # numbers that each doc has


@dataclass
class PartTally:
    """All sources. outside: by offset, the tokens that have no neighbour there."""

    n_tokens: int
    outside: dict[int, int]
    sources: list[SourceTally]


class PartReading:
    """Some training docs, read for all sources: their texts are counted, their numbers kept.

    starts: Of each doc, the place of its first token among all training tokens; docs must be in
        this order.
    """

    def __init__(self, batch: Batch, sources: Sequence[Source], starts: Int64s) -> None:
        self._doc_of = np.repeat(np.arange(len(batch.docs)), np.diff(batch.doc_offsets))
        self._places = np.arange(batch.n_tokens) + (starts - batch.doc_offsets[:-1])[self._doc_of]
        self._shifts: dict[int, Int64s] = {}
        self._numbers: list[dict[str, Doubles]] = []  # of each token, by source and column
        self.tally = PartTally(batch.n_tokens, {}, [])
        for source in sources:
            self._read(batch, source)

    def numbers(
        self, source: int, name: str, known_before: Int64s, step: int
    ) -> NumberTally | None:
        """The numbers of a column; None: these docs have none.

        known_before: of each doc, how many numbers come before its own in all training docs.
        step: that between numbers of the sample.
        """
        values = self._numbers[source].get(name)
        if values is None:
            return None
        at = np.flatnonzero(~np.isnan(values))
        docs = self._doc_of[at]
        within = np.arange(len(at)) - np.searchsorted(docs, docs, side="left")
        chosen = at[(known_before[docs] + within) % step == 0]
        return NumberTally(count_values(values[at]), count_values(values[chosen]))

    def _read(self, batch: Batch, source: Source) -> None:
        rows, seen, reading = read_source(batch, source)
        columns = (*reading.texts, *reading.numbers)
        windows = {name: source.window_of(name) or () for name in columns}
        found = SourceTally()
        firsts = self._places[seen]
        texts = {
            name: _numbered(values, reading.missing.get(name), firsts)
            for name, values in reading.texts.items()
        }
        found.texts = {name: tally for name, (_, tally) in texts.items()}
        for name, (_, tally) in texts.items():
            found.first[name] = 0 if source.cached else int(tally.first.min(initial=2**62))
        for offset in sorted({offset for window in windows.values() for offset in window}):
            per_row = self._tokens_of_rows(batch, rows, len(seen), offset)
            for name, (value_of, tally) in texts.items():
                if offset in windows[name]:
                    _count(tally, offset, value_of, per_row)
        self._numbers.append({})
        for name, numbers in reading.numbers.items():
            values = self._numbers[-1][name] = numbers[rows]
            known = np.flatnonzero(~np.isnan(values))
            found.numbers.append(name)
            found.known[name] = np.bincount(self._doc_of[known], minlength=len(batch.docs))
            first = int(self._places[known].min(initial=2**62))
            found.first[name] = 0 if source.cached else first
        self.tally.sources.append(found)

    def _tokens_of_rows(self, batch: Batch, rows: Int64s, n_rows: int, offset: int) -> Int64s:
        """How many tokens have each row of a reading at an offset."""
        if offset not in self._shifts:
            shift = self._shifts[offset] = _shifted(batch.offsets, offset)
            self.tally.outside[offset] = int((shift == OUTSIDE).sum())
        shift = self._shifts[offset]
        return np.bincount(rows[shift[shift != OUTSIDE]], minlength=n_rows)


def read_source(batch: Batch, source: Source) -> tuple[Int64s, Int64s, Reading]:
    """A reading of the distinct keys, in order of appearance.

    Returns the row of each token in it, the token of each row, and the reading.
    """
    from spacy_treecrf.features.kernels.key_table import KeyTable

    if not batch.n_tokens:
        return np.empty(0, np.int64), np.empty(0, np.int64), Reading()
    if not source.cached:
        rows = np.arange(batch.n_tokens)
        return rows, rows, source.read(batch, rows)
    found, new = KeyTable().rows_of(source.keys(batch))
    return found.astype(np.int64), new.astype(np.int64), source.read(batch, new)


def merged(parts: Sequence[PartTally]) -> PartTally:
    """The tally of all parts: the same as if they had been counted together."""
    if len(parts) == 1:
        return parts[0]
    outside: dict[int, int] = {}
    for part in parts:
        for offset, n in part.outside.items():
            outside[offset] = outside.get(offset, 0) + n
    filled = [part for part in parts if part.n_tokens] or parts[:1]
    by_source = zip(*(part.sources for part in filled), strict=True)
    sources = [_merged_source(found) for found in by_source]
    return PartTally(sum(part.n_tokens for part in parts), outside, sources)


def _merged_source(parts: Sequence[SourceTally]) -> SourceTally:
    first: dict[str, int] = {}
    for part in parts:
        for name, place in part.first.items():
            first[name] = min(place, first.get(name, place))
    texts = list(dict.fromkeys(name for part in parts for name in part.texts))
    numbers = list(dict.fromkeys(name for part in parts for name in part.numbers))
    return SourceTally(
        {
            name: _merged_texts([part.texts[name] for part in parts if name in part.texts])
            for name in sorted(texts, key=first.__getitem__)  # which keeps the order of equals
        },
        first,
        sorted(numbers, key=first.__getitem__),
    )


def _merged_texts(parts: Sequence[TextTally]) -> TextTally:
    first: dict[str, int] = {}
    for part in parts:
        for value, place in zip(part.values, part.first.tolist(), strict=True):
            first[value] = min(place, first.get(value, place))
    values = sorted(first, key=first.__getitem__)
    ids = {value: i for i, value in enumerate(values)}
    total = TextTally(values, np.array([first[value] for value in values], np.int64), {}, {})
    for part in parts:
        own = np.array([ids[value] for value in part.values], np.int64)
        for offset, counts in part.counts.items():
            there = total.counts.setdefault(offset, np.zeros(len(values), np.int64))
            there[own] += counts
        for offset, n in part.missing.items():
            total.missing[offset] = total.missing.get(offset, 0) + n
    return total


def sample_step(n_known: int) -> int:
    """The step between numbers of the sample, if there are so many."""
    return max(1, -(-n_known // MAX_SAMPLE))


def merged_numbers(parts: Sequence[NumberTally]) -> NumberTally:
    """The numbers of all parts."""
    return NumberTally(
        merge_counts([part.counted for part in parts]), merge_counts([p.sample for p in parts])
    )


def _shifted(offsets: Int64s, by: int) -> Int64s:
    """The neighbour of each token at an offset, or OUTSIDE where its sequence has none."""
    lengths = np.diff(offsets)
    neighbour = np.arange(offsets[-1]) + by
    inside = (neighbour >= np.repeat(offsets[:-1], lengths)) & (
        neighbour < np.repeat(offsets[1:], lengths)
    )
    return np.where(inside, neighbour, OUTSIDE)


def _numbered(
    texts: Texts, missing: npt.NDArray[np.bool_] | None, firsts: Int64s
) -> tuple[Int64s, TextTally]:
    """Numbers of the texts by first appearance, and a tally with nothing counted yet.

    None stands for ABSENT_TEXT, or for MISSING_TEXT where `missing` says so. firsts: the tokens
    that the texts are of.
    """
    ids: dict[str, int] = {}
    found = [ABSENT_TEXT if t is None else ids.setdefault(t, len(ids)) for t in texts]
    numbers = np.array(found, np.int64)
    tally = TextTally(list(ids), np.empty(0, np.int64), {}, {})
    seen, at = np.unique(numbers, return_index=True)
    tally.first = firsts[at[seen >= 0]]
    if missing is not None and missing.any():
        numbers[missing & (numbers == ABSENT_TEXT)] = MISSING_TEXT
    return numbers, tally


def _count(tally: TextTally, offset: int, value_of: Int64s, per_row: Int64s) -> None:
    has = value_of >= 0
    counts = np.bincount(value_of[has], per_row[has], minlength=len(tally.values))
    tally.counts[offset] = counts.astype(np.int64)
    missing = value_of == MISSING_TEXT
    if missing.any():
        tally.missing[offset] = int(per_row[missing].sum())
