"""Which features there are in the training data, by falling count, and how numbers are binned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.binning import MAX_BINS, bin_means, quantile_edges
from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.features.batch import Batch
from spacy_treecrf.features.layout import EDGE, slot_name
from spacy_treecrf.features.source import Reading, Source, Texts
from spacy_treecrf.features.vectors import MAX_SAMPLE

OUTSIDE = -1


@dataclass
class Slot:
    """The values of a base column at an offset, and in how many tokens they are."""

    name: str
    values: list[str]
    counts: npt.NDArray[np.int64]


@dataclass
class NumericSlot:
    name: str
    edges: npt.NDArray[np.float64]
    bin_values: npt.NDArray[np.float64]  # shape: (MAX_BINS + 1,)


def fit_columns(
    batch: Batch, sources: Sequence[Source], bins_of: dict[str, int], min_count: int, max_bins: int
) -> Columns:
    """Columns of all values that at least `min_count` tokens have.

    bins_of: by the name of a source, a lower limit than max_bins.
    """
    slots: list[Slot] = []
    numeric: list[NumericSlot] = []
    marked: set[int] = set()  # offsets at which some column shows the edge of the sequence
    shifts: dict[int, npt.NDArray[np.int64]] = {}
    for source in sources:
        source.prepare(batch)
        rows, reading = read_all(batch, source)
        most = min(bins_of.get(source.name, max_bins), max_bins)
        windows = {
            name: source.window_of(name) or () for name in (*reading.texts, *reading.numbers)
        }
        texts = {name: _numbered(texts) for name, texts in reading.texts.items()}
        bins = {name: _bins(numbers, rows, most) for name, numbers in reading.numbers.items()}
        for offset in sorted({offset for window in windows.values() for offset in window}):
            if offset not in shifts:
                shifts[offset] = _shifted(batch.offsets, offset)
            shift = shifts[offset]
            at = np.where(shift == OUTSIDE, OUTSIDE, rows[shift]) if len(rows) else rows
            per_row = np.bincount(at + 1)  # of the edge, then of the rows
            for name, (value_of, values) in texts.items():
                if offset in windows[name]:
                    slot = _count(slot_name(name, offset), value_of, values, per_row)
                    if offset not in marked:
                        marked.add(offset)
                        _mark_edge(slot, int(per_row[0]) if len(per_row) else 0)
                    slots.append(slot)
            for name, found in bins.items():
                if offset in windows[name] and found is not None:
                    numeric.append(NumericSlot(slot_name(name, offset), *found))
    return _columns(slots, numeric, min_count)


def read_all(batch: Batch, source: Source) -> tuple[npt.NDArray[np.int64], Reading]:
    """The row of each token in the reading of the distinct keys, in order of appearance."""
    from spacy_treecrf.engine.keys import KeyTable

    if not batch.n_tokens:
        return np.empty(0, np.int64), Reading()
    if not source.cached:
        rows = np.arange(batch.n_tokens)
        return rows, source.read(batch, rows)
    found, new = KeyTable().rows_of(source.keys(batch))
    return found.astype(np.int64), source.read(batch, new)


def _shifted(offsets: npt.NDArray[np.int64], by: int) -> npt.NDArray[np.int64]:
    """The neighbour of each token, or OUTSIDE of its sequence."""
    lengths = np.diff(offsets)
    neighbour = np.arange(offsets[-1]) + by
    inside = (neighbour >= np.repeat(offsets[:-1], lengths)) & (
        neighbour < np.repeat(offsets[1:], lengths)
    )
    return np.where(inside, neighbour, OUTSIDE)


def _numbered(texts: Texts) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Numbers of the texts by first appearance, -1 for None; and the distinct texts."""
    ids: dict[str, int] = {}
    numbers = [-1 if text is None else ids.setdefault(text, len(ids)) for text in texts]
    return np.array(numbers, np.int64), list(ids)


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
    return Slot(name, list(values), counts)


def _mark_edge(slot: Slot, n_edges: int) -> None:
    if EDGE in slot.values:
        slot.counts[slot.values.index(EDGE)] += n_edges
    else:
        slot.values.append(EDGE)
        slot.counts = np.append(slot.counts, n_edges)


def _bins(
    numbers: npt.NDArray[np.float64], rows: npt.NDArray[np.int64], max_bins: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
    """Edges and standardised bin means of a base column, the same at all offsets."""
    values = numbers[rows]
    values = values[~np.isnan(values)]
    if not len(values):
        return None
    edges = quantile_edges(values[:: -(-len(values) // MAX_SAMPLE)], max_bins)
    bin_values = np.zeros(MAX_BINS + 1)
    bin_values[1 : len(edges) + 2] = bin_means(values, edges)
    return edges, bin_values


def _columns(slots: list[Slot], numeric: list[NumericSlot], min_count: int) -> Columns:
    slots = [slot for slot in slots if (slot.counts >= min_count).any()]
    counts = np.concatenate([np.empty(0, np.int64), *(slot.counts for slot in slots)])
    slot_of = np.repeat(np.arange(len(slots)), [len(slot.values) for slot in slots])
    order = np.argsort(-counts, kind="stable")
    order = order[: np.count_nonzero(counts >= min_count)]
    names = [f"{slot.name}={value}" for slot in slots for value in slot.values]
    kept = slot_of[order].astype(np.int32)
    return Columns(
        feature_names=[names[i] for i in order.tolist()],
        counts=counts[order],
        column_of=kept,
        slot_range=np.stack([kept, kept + 1], axis=1).astype(np.int32),
        slot_keys=[slot.name for slot in slots],
        n_shared_slots=0,
        column_names=[slot.name for slot in slots],
        numeric_names=[slot.name for slot in numeric],
        bin_edges=[slot.edges for slot in numeric],
        bin_values=np.array([s.bin_values for s in numeric]).reshape(-1, MAX_BINS + 1),
    )
