"""Fitting of columns: the features that the training data have, and the bins of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.binning import (
    MAX_BINS,
    CountedValues,
    bin_means,
    count_values,
    median_bin,
    merge_counts,
    quantile_edges,
)
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.missing_methods import IMPUTATION, INDICATOR, MISSING_VALUE
from spacy_treecrf.features.batch import Batch
from spacy_treecrf.features.layout import EDGE, slot_name
from spacy_treecrf.features.source import Reading, Source, Texts
from spacy_treecrf.features.vectors import MAX_SAMPLE

OUTSIDE = -1
ABSENT_TEXT = -1
MISSING_TEXT = -2


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
    as_value = limits.missing == INDICATOR
    slots: list[Slot] = []
    numeric: list[NumericSlot] = []
    marked: set[int] = set()  # offsets at which some column shows the edge of the sequence
    shifts: dict[int, npt.NDArray[np.int64]] = {}
    for source in sources:
        if prepare:
            source.prepare(batch)
        rows, reading = read_all(batch, source)
        most = min(bins_of.get(source.name, limits.max_bins), limits.max_bins)
        windows = {
            name: source.window_of(name) or () for name in (*reading.texts, *reading.numbers)
        }
        texts = {
            name: _numbered(texts, reading.missing.get(name), as_value)
            for name, texts in reading.texts.items()
        }
        bins = {name: _bins(numbers, rows, most) for name, numbers in reading.numbers.items()}
        for offset in sorted({offset for window in windows.values() for offset in window}):
            if offset not in shifts:
                shifts[offset] = _shifted(batch.offsets, offset)
            shift = shifts[offset]
            at = np.where(shift == OUTSIDE, OUTSIDE, rows[shift]) if len(rows) else rows
            per_row = np.bincount(at + 1)  # tokens at the edge, then tokens of each row
            n_outside = int(per_row[0]) if len(per_row) else 0
            for name, (value_of, values) in texts.items():
                if offset not in windows[name]:
                    continue
                slot = _count(slot_name(name, offset), value_of, values, per_row)
                if limits.outside_is_missing:
                    slot.n_known -= n_outside
                    if as_value:
                        _mark(slot, MISSING_VALUE, n_outside)
                elif offset not in marked:
                    marked.add(offset)
                    _mark(slot, EDGE, n_outside)
                slots.append(slot)
            for name, found in bins.items():
                if offset in windows[name] and found is not None:
                    numeric.append(NumericSlot(slot_name(name, offset), *found))
    return _columns(slots, numeric, limits)


def read_all(batch: Batch, source: Source) -> tuple[npt.NDArray[np.int64], Reading]:
    """A reading of the distinct keys, in order of appearance, and the row of each token in it."""
    from spacy_treecrf.features.kernels.key_table import KeyTable

    if not batch.n_tokens:
        return np.empty(0, np.int64), Reading()
    if not source.cached:
        rows = np.arange(batch.n_tokens)
        return rows, source.read(batch, rows)
    found, new = KeyTable().rows_of(source.keys(batch))
    return found.astype(np.int64), source.read(batch, new)


def _shifted(offsets: npt.NDArray[np.int64], by: int) -> npt.NDArray[np.int64]:
    """The neighbour of each token at an offset, or OUTSIDE where its sequence has none."""
    lengths = np.diff(offsets)
    neighbour = np.arange(offsets[-1]) + by
    inside = (neighbour >= np.repeat(offsets[:-1], lengths)) & (
        neighbour < np.repeat(offsets[1:], lengths)
    )
    return np.where(inside, neighbour, OUTSIDE)


def _numbered(
    texts: Texts, missing: npt.NDArray[np.bool_] | None, as_value: bool
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Numbers of the texts by first appearance, and the distinct texts.

    None stands for ABSENT_TEXT, or for MISSING_TEXT where `missing` says so, unless `as_value`.
    """
    ids: dict[str, int] = {}
    found = [ABSENT_TEXT if t is None else ids.setdefault(t, len(ids)) for t in texts]
    numbers = np.array(found, np.int64)
    if missing is not None and missing.any():
        at = missing & (numbers == ABSENT_TEXT)
        numbers[at] = ids.setdefault(MISSING_VALUE, len(ids)) if as_value else MISSING_TEXT
    return numbers, list(ids)


def _count(
    name: str,
    value_of: npt.NDArray[np.int64],
    values: list[str],
    per_row: npt.NDArray[np.int64],
) -> Slot:
    in_rows = per_row[1:]
    value_of = value_of[: len(in_rows)]
    has = value_of >= 0
    counts = np.bincount(value_of[has], in_rows[has], minlength=len(values)).astype(np.int64)
    n_known = int(per_row.sum() - in_rows[value_of == MISSING_TEXT].sum())
    return Slot(name, list(values), counts, n_known)


def _mark(slot: Slot, value: str, n: int) -> None:
    """Give a value to n positions outside of their sequence."""
    if value in slot.values:
        slot.counts[slot.values.index(value)] += n
    else:
        slot.values.append(value)
        slot.counts = np.append(slot.counts, n)


def _bins(
    numbers: npt.NDArray[np.float64], rows: npt.NDArray[np.int64], max_bins: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], int] | None:
    """Edges, standardised bin means and median of a base column, the same at all offsets."""
    values = numbers[rows]
    values = values[~np.isnan(values)]
    if not len(values):
        return None
    edges = quantile_edges(count_values(values[:: -(-len(values) // MAX_SAMPLE)]), max_bins)
    in_rows = np.bincount(rows, minlength=len(numbers))
    held = (in_rows > 0) & ~np.isnan(numbers)
    counted = merge_counts([CountedValues(numbers[held], in_rows[held])])
    bin_values = np.zeros(MAX_BINS + 1)
    bin_values[1 : len(edges) + 2] = bin_means(counted, edges)
    return edges, bin_values, median_bin(counted, edges)


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
