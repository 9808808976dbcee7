"""Fitting of columns: the features that the training data have, and the bins of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.binning import (
    MAX_BINS,
    bin_means,
    median_bin,
    quantile_edges,
)
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.missing_methods import IMPUTATION, INDICATOR, MISSING_VALUE
from spacy_treecrf.features.batch import Batch
from spacy_treecrf.features.layout import EDGE, slot_name
from spacy_treecrf.features.source import Reading, Source
from spacy_treecrf.features.tallying import (
    NumberTally,
    PartReading,
    PartTally,
    TextTally,
    read_source,
    sample_step,
)


@dataclass(frozen=True)
class ColumnLimits:
    """Limits of the columns to fit; see `Extractor.fit`."""

    min_count: int
    max_bins: int
    missing: str
    outside_is_missing: bool


@dataclass
class Slot:
    """The values of a base column at an offset, and how many tokens have each."""

    name: str
    values: list[str]
    counts: npt.NDArray[np.int64]
    n_known: int  # tokens whose value is not missing

    def most_common(self) -> str | None:
        """The value that a missing one most probably is; None where most tokens have no value."""
        top = int(self.counts.argmax())
        absent = self.n_known - int(self.counts.sum())
        return self.values[top] if self.counts[top] >= absent else None


@dataclass
class NumericSlot:
    name: str
    edges: npt.NDArray[np.float64]
    bin_values: npt.NDArray[np.float64]  # shape: (MAX_BINS + 1,)
    median: int  # the bin of the median


def fit_doc_columns(
    batch: Batch,
    sources: Sequence[Source],
    bins_of: dict[str, int],
    limits: ColumnLimits,
    *,
    prepare: bool = True,
) -> Columns:
    """The columns of all values that at least `min_count` tokens have.

    bins_of: By the name of a source, a lower limit than `max_bins`. prepare: Whether sources learn
    from the tokens first; not those of a model that has learned with them.
    """
    if prepare:
        for source in sources:
            source.prepare(batch)
    part = PartReading(batch, sources, batch.doc_offsets[:-1])
    numbers: list[dict[str, NumberTally]] = []
    for which, found in enumerate(part.tally.sources):
        numbers.append({})
        for name in found.numbers:
            before = np.cumsum([0, *found.known[name]])
            step = sample_step(int(before[-1]))
            tally = part.numbers(which, name, before[:-1], step)
            assert tally is not None
            numbers[-1][name] = tally
    return columns_of(part.tally, numbers, sources, bins_of, limits)


def columns_of(
    found: PartTally,
    numbers: Sequence[dict[str, NumberTally]],
    sources: Sequence[Source],
    bins_of: dict[str, int],
    limits: ColumnLimits,
) -> Columns:
    """The columns of training docs that were counted. numbers: of each source, by base column"""
    slots: list[Slot] = []
    numeric: list[NumericSlot] = []
    marked: set[int] = set()  # offsets at which some column shows the edge of the sequence
    for source, tally, of_source in zip(sources, found.sources, numbers, strict=True):
        most = min(bins_of.get(source.name, limits.max_bins), limits.max_bins)
        columns = (*tally.texts, *tally.numbers)
        windows = {name: source.window_of(name) or () for name in columns}
        bins = {name: _bins(of_source[name], most) for name in tally.numbers}
        for offset in sorted({offset for window in windows.values() for offset in window}):
            for name, texts in tally.texts.items():
                if offset not in windows[name]:
                    continue
                slot = _slot(name, offset, texts, found, limits)
                if not limits.outside_is_missing and offset not in marked:
                    marked.add(offset)
                    _mark(slot, EDGE, found.outside[offset])
                slots.append(slot)
            for name, binned in bins.items():
                if offset in windows[name] and binned is not None:
                    numeric.append(NumericSlot(slot_name(name, offset), *binned))
    return _columns(slots, numeric, limits)


def read_all(batch: Batch, source: Source) -> tuple[npt.NDArray[np.int64], Reading]:
    """A reading of the distinct keys, in order of appearance, and the row of each token in it."""
    rows, _, reading = read_source(batch, source)
    return rows, reading


def _slot(name: str, offset: int, texts: TextTally, found: PartTally, limits: ColumnLimits) -> Slot:
    as_value = limits.missing == INDICATOR
    n_missing, n_outside = texts.missing.get(offset, 0), found.outside[offset]
    n_known = found.n_tokens - (0 if as_value else n_missing)
    slot = Slot(slot_name(name, offset), list(texts.values), texts.counts[offset], n_known)
    if as_value and texts.missing:
        _mark(slot, MISSING_VALUE, n_missing)
    if limits.outside_is_missing:
        slot.n_known -= n_outside
        if as_value:
            _mark(slot, MISSING_VALUE, n_outside)
    return slot


def _mark(slot: Slot, value: str, n: int) -> None:
    """Give a value to n positions that have none."""
    if value in slot.values:
        slot.counts[slot.values.index(value)] += n
    else:
        slot.values.append(value)
        slot.counts = np.append(slot.counts, n)


def _bins(
    numbers: NumberTally, max_bins: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], int] | None:
    """Edges, standardised bin means and median of a base column, the same at all offsets."""
    if not len(numbers.counted.distinct):
        return None
    edges = quantile_edges(numbers.sample, max_bins)
    bin_values = np.zeros(MAX_BINS + 1)
    bin_values[1 : len(edges) + 2] = bin_means(numbers.counted, edges)
    return edges, bin_values, median_bin(numbers.counted, edges)


def _columns(slots: list[Slot], numeric: list[NumericSlot], limits: ColumnLimits) -> Columns:
    min_count = limits.min_count
    slots = [slot for slot in slots if (slot.counts >= min_count).any()]
    counts = np.concatenate([np.empty(0, np.int64), *(slot.counts for slot in slots)])
    slot_of = np.repeat(np.arange(len(slots)), [len(slot.values) for slot in slots])
    order = np.argsort(-counts, kind="stable")
    order = order[: np.count_nonzero(counts >= min_count)]
    names = [f"{slot.name}={value}" for slot in slots for value in slot.values]
    kept = slot_of[order].astype(np.int32)
    feature_names = [names[i] for i in order.tolist()]
    imputed: list[int] = []
    medians: list[int] = []
    if limits.missing == IMPUTATION:
        usual = {f"{slot.name}={slot.most_common()}" for slot in slots if slot.most_common()}
        imputed = [feature for feature, name in enumerate(feature_names) if name in usual]
        medians = [slot.median for slot in numeric]
    return Columns(
        feature_names=feature_names,
        counts=counts[order],
        column_of=kept,
        slot_range=np.stack([kept, kept + 1], axis=1).astype(np.int32),
        slot_keys=[slot.name for slot in slots],
        n_shared_slots=0,
        column_names=[slot.name for slot in slots],
        numeric_names=[slot.name for slot in numeric],
        bin_edges=[slot.edges for slot in numeric],
        bin_values=np.array([s.bin_values for s in numeric]).reshape(-1, MAX_BINS + 1),
        missing=limits.missing,
        imputed=np.array(imputed, np.int32),
        imputed_bins=np.array(medians, np.uint8),
    )
