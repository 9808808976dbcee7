"""Features by id and numeric columns by bin: learned from feature dicts, then used to encode them.

A feature lives in one place: in the slot (column of `codes`) of its key if the training data show
it only as the string value of that key, otherwise in the shared slots behind the keys' slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.binning import MAX_BINS, bin_means, quantile_edges
from spacy_treecrf.engine.feature_dicts import (
    Events,
    Ids,
    as_string_values,
    known_ids,
    named,
    new_ids,
    scan,
)
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.sequences import ABSENT, MISSING, MISSING_BIN

PAST_ALL_SLOTS = 2**31 - 1
SHARED = PAST_ALL_SLOTS  # home of a feature that is in no key's slot
MAX_BIN_VALUE = 1e6  # standardised values of n rows are within sqrt(n)

Encoded = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint8]]


@dataclass(frozen=True)
class Columns:
    """What training learned of the columns: features by id, and the bins of numeric columns."""

    feature_names: list[str]
    counts: npt.NDArray[np.int64]  # shape: (n_features,), training rows, falling
    column_of: npt.NDArray[np.int32]  # shape: (n_features,), logical column
    slot_range: npt.NDArray[np.int32]  # shape: (n_features, 2), slots [first, past_last)
    slot_keys: list[str]  # string key of each slot before the shared ones
    n_shared_slots: int  # most shared features in one training row
    column_names: list[str]
    numeric_names: list[str]
    bin_edges: list[npt.NDArray[np.float64]]  # bin = 1 + searchsorted(edges, value, side="left")
    bin_values: npt.NDArray[np.float64]  # shape: (n_numeric, 256), mean of the bin, standardised

    def encode(self, X: Iterable[Iterable[Any]], name: str = "X") -> Encoded:
        """Offsets, codes and numeric bins of X; what training did not see is absent.

        `codes` is wider than in training where a row has more shared features than any had there.
        Of two features for one slot of a row, which no training row has, the last one is kept.
        Errors call X by the name.
        """
        return self._place(scan(X, self._ids, name))

    def to_state(self) -> dict[str, Any]:
        """The same as strings, ints, lists and arrays only."""
        state = {field.name: getattr(self, field.name) for field in dataclass_fields(self)}
        lengths = [len(edges) for edges in self.bin_edges]
        state["bin_edges"] = np.concatenate([np.empty(0), *self.bin_edges])
        state["bin_edge_offsets"] = np.cumsum([0, *lengths], dtype=np.int64)
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Columns:
        """Columns from `to_state`, every field checked."""
        return _checked(state)

    def __getstate__(self) -> dict[str, Any]:
        # without the lookup tables: they are derived, and hold functions that cannot be pickled
        return {field.name: getattr(self, field.name) for field in dataclass_fields(self)}

    @cached_property
    def _ids(self) -> Ids:
        slots = self.slot_range[:, 0].tolist()
        return known_ids(self.feature_names, slots, self.slot_keys, self.numeric_names)

    def _place(self, events: Events) -> Encoded:
        """The events of `_ids`, put where they belong in codes and numeric."""
        n_features, n_numeric = len(self.feature_names), len(self.numeric_names)
        n_keys = len(self.slot_keys)
        first_missing = n_features + n_numeric
        codes = np.full((events.n_rows, n_keys + self.n_shared_slots), ABSENT, dtype=np.int32)
        numeric = np.full((events.n_rows, n_numeric), MISSING_BIN, dtype=np.uint8)
        for rows, ids, values in events.blocks():
            missing = (ids >= first_missing) & (ids < first_missing + n_keys)
            codes[rows[missing], ids[missing] - first_missing] = MISSING

            number = (ids >= n_features) & (ids < first_missing)
            for d, at, amounts in _by_column(
                rows[number], ids[number] - n_features, values[number]
            ):
                bins = 1 + np.searchsorted(self.bin_edges[d], amounts, side="left")
                numeric[at, d] = np.where(np.isnan(amounts), MISSING_BIN, bins)

            feature = ids < n_features
            rows, ids = rows[feature], ids[feature]
            slots = self.slot_range[ids, 0]
            own = slots < n_keys
            codes[rows[own], slots[own]] = ids[own]
            at, shared = _distinct(rows[~own], ids[~own], n_features)
            if len(at):
                place = np.arange(len(at))
                new_row = np.append(True, at[1:] != at[:-1])
                slot = n_keys + place - np.maximum.accumulate(np.where(new_row, place, 0))
                lacking = int(slot.max()) + 1 - codes.shape[1]
                if lacking > 0:
                    codes = np.pad(codes, ((0, 0), (0, lacking)), constant_values=ABSENT)
                codes[at, slot] = shared
        return events.offsets, codes, numeric


def fit_columns(
    X: Iterable[Iterable[Any]], *, min_count: int = 1, max_bins: int = MAX_BINS
) -> tuple[Columns, npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Learn the columns of X and encode it; features of fewer than `min_count` rows are dropped."""
    if min_count < 1:
        raise ValueError(f"treecrf: min_count is {min_count}; it must be 1 or more")
    if not 2 <= max_bins <= MAX_BINS:
        raise ValueError(f"treecrf: max_bins is {max_bins}; it must be from 2 to {MAX_BINS}")
    next_id = count().__next__
    seen = new_ids(next_id)
    events = scan(X, seen, "X")
    if len(events.offsets) == 1:
        raise ValueError("treecrf: X holds no sequences; training needs at least one")
    if len(empty := np.flatnonzero(np.diff(events.offsets) == 0)):
        raise ValueError(
            f"treecrf: X[{empty[0]}] is an empty sequence; remove it (and its labels) for training"
        )
    n_seen = next_id()

    # a key is numeric as soon as one of its values is not 1; ids rise by first appearance
    numeric = np.unique(~events.ids[events.ids < 0])
    first_seen, home = _homes(seen, numeric, n_seen)
    counts, displaced = _tally(events, first_seen, home, len(seen.strings))
    if len(displaced):  # two values of one key in a row, by way of nested dicts
        home[displaced] = SHARED
        counts, _ = _tally(events, first_seen, home, len(seen.strings))

    order = np.argsort(-counts, kind="stable")
    order = order[: np.count_nonzero(counts >= min_count)]
    new_id = np.full(n_seen, ABSENT, dtype=np.int64)
    new_id[order] = np.arange(len(order))
    used_slots, slot_of = np.unique(home[order], return_inverse=True)  # SHARED sorts last
    n_keys = int(np.count_nonzero(used_slots != SHARED))
    past_slots = np.where(slot_of < n_keys, slot_of + 1, PAST_ALL_SLOTS)
    keys = list(seen.strings)
    feature_names, column_of, column_names = _describe(seen, numeric, new_id)
    number_names = {number: key for key, number in seen.numbers.items()}
    bin_edges, bin_values = _bins(events, numeric, max_bins, n_seen)
    columns = Columns(
        feature_names=feature_names,
        counts=counts[order],
        column_of=column_of,
        slot_range=np.stack([slot_of, past_slots], axis=1).astype(np.int32),
        slot_keys=[keys[slot] for slot in used_slots[:n_keys].tolist()],
        n_shared_slots=0,
        column_names=column_names,
        numeric_names=[number_names[number] for number in numeric.tolist()],
        bin_edges=bin_edges,
        bin_values=bin_values,
    )

    # from ids in order of appearance to those of Columns._ids
    nothing = len(order) + len(numeric) + n_keys
    renamed = new_id[first_seen]
    renamed[numeric] = len(order) + np.arange(len(numeric))
    for slot, key in enumerate(columns.slot_keys):
        if key in seen.missing:
            renamed[seen.missing[key]] = len(order) + len(numeric) + slot
    renamed[renamed == ABSENT] = nothing
    events.rename(renamed.astype(np.int32))
    offsets, codes, numeric_bins = columns._place(events)
    return replace(columns, n_shared_slots=codes.shape[1] - n_keys), offsets, codes, numeric_bins


def _homes(
    seen: Ids, numeric: npt.NDArray[np.int32], n_seen: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each id, the first id of the same name; and its slot, SHARED, or -1 for no indicator."""
    first_seen = np.arange(n_seen)
    home = np.full(n_seen, SHARED, dtype=np.int64)
    home[numeric] = -1
    home[list(seen.missing.values())] = -1
    one_name: dict[str, set[int]] = {}
    for slot, (key, table) in enumerate(seen.strings.items()):
        home[list(table.values())] = slot
        if "=" in key:  # of two spellings of a name, the longer key has the "=" of the shorter
            for value in table:
                name = f"{key}={value}"
                ids = set(as_string_values(name, seen.strings))
                if len(ids) > 1:
                    one_name[name] = ids
    names: dict[str, int] = {}
    for i, _, name in named(seen, numeric):
        first = names.setdefault(name, i)
        ids = {i, first, *as_string_values(name, seen.strings)} if seen.strings else {i, first}
        if len(ids) > 1:
            one_name.setdefault(name, set()).update(ids)
    for ids in one_name.values():
        first_seen[list(ids)] = min(ids)
        home[min(ids)] = SHARED
    return first_seen, home


def _tally(
    events: Events,
    first_seen: npt.NDArray[np.int64],
    home: npt.NDArray[np.int64],
    n_keys: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows holding each id, and the ids that another one drove out of their slot in some row."""
    n_seen = len(home)
    counts = np.zeros(n_seen, dtype=np.int64)
    displaced = []
    for rows, ids, _ in events.blocks():
        names = first_seen[ids]
        slots = home[names]
        shared = slots == SHARED
        _, in_shared = _distinct(rows[shared], names[shared], n_seen)
        counts += np.bincount(in_shared, minlength=n_seen)
        own = (slots >= 0) & ~shared
        in_own = names[own]
        cells = (rows[own] - rows[:1]) * n_keys + slots[own]  # of this block
        holder = np.full(int(cells.max(initial=-1)) + 1, ABSENT)
        holder[cells] = in_own
        displaced.append(np.unique(in_own[holder[cells] != in_own]))
        counts += np.bincount(holder[holder != ABSENT], minlength=n_seen)
    return counts, np.unique(np.concatenate(displaced))


def _describe(
    seen: Ids, numeric: npt.NDArray[np.int32], new_id: npt.NDArray[np.int64]
) -> tuple[list[str], npt.NDArray[np.int32], list[str]]:
    """Names and logical columns of the kept features, and the names of those columns."""
    n_features = int(np.count_nonzero(new_id != ABSENT))
    names = [""] * n_features
    column_of = np.empty(n_features, dtype=np.int32)
    columns: dict[str, int] = {}
    kept = new_id.tolist()
    for key, table in seen.strings.items():
        features = []
        for value, i in table.items():
            if (feature := kept[i]) != ABSENT:
                names[feature] = f"{key}={value}"
                features.append(feature)
        if features:
            column_of[features] = columns.setdefault(key, len(columns))
    for i, column, name in named(seen, numeric):
        if (feature := kept[i]) != ABSENT:
            names[feature] = name
            column_of[feature] = columns.setdefault(column, len(columns))
    return names, column_of, list(columns)


def _bins(
    events: Events, numeric: npt.NDArray[np.int32], max_bins: int, n_seen: int
) -> tuple[list[npt.NDArray[np.float64]], npt.NDArray[np.float64]]:
    """Edges of each numeric column, and the standardised mean of each of its bins."""
    bin_edges: list[npt.NDArray[np.float64]] = []
    bin_values = np.zeros((len(numeric), MAX_BINS + 1))
    if not len(numeric):
        return bin_edges, bin_values
    column_of = np.full(n_seen, -1)
    column_of[numeric] = np.arange(len(numeric))
    parts: list[list[npt.NDArray[np.float64]]] = [[] for _ in numeric]
    for rows, ids, values in events.blocks():
        column = column_of[ids]
        number = column >= 0
        for d, _, amounts in _by_column(rows[number], column[number], values[number]):
            parts[d].append(amounts[~np.isnan(amounts)])
    for d, part in enumerate(parts):
        amounts = np.concatenate(part)
        edges = quantile_edges(amounts, max_bins)
        bin_edges.append(edges)
        if len(amounts):
            bin_values[d, 1 : len(edges) + 2] = bin_means(amounts, edges)
    return bin_edges, bin_values


def _by_column(
    rows: npt.NDArray[np.int64], column: npt.NDArray[Any], values: npt.NDArray[np.float64]
) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    """Column by column its rows, rising, and their values; the last one given in a row counts."""
    order = np.argsort(column, kind="stable")
    rows, column, values = rows[order], column[order], values[order]
    last = np.append((rows[1:] != rows[:-1]) | (column[1:] != column[:-1]), True)[: len(rows)]
    rows, column, values = rows[last], column[last], values[last]
    present, starts = np.unique(column, return_index=True)
    ends = [*starts[1:].tolist(), len(rows)]
    for d, start, end in zip(present.tolist(), starts.tolist(), ends, strict=False):
        yield d, rows[start:end], values[start:end]


def _distinct(
    rows: npt.NDArray[np.int64], ids: npt.NDArray[Any], n_ids: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The distinct pairs of row and id, sorted."""
    if not len(rows):
        return rows, rows
    pairs = rows * n_ids + ids
    pairs.sort()
    pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
    rows = pairs // n_ids
    return rows, pairs - rows * n_ids


def _checked(state: Any) -> Columns:
    """Columns from a state that nobody vouches for."""
    fields = Fields(state, path="columns")
    feature_names = fields.strings("feature_names", unique=True)
    slot_keys = fields.strings("slot_keys", unique=True)
    column_names = fields.strings("column_names", unique=True)
    numeric_names = fields.strings("numeric_names", unique=True)
    n_features, n_keys, n_numeric = len(feature_names), len(slot_keys), len(numeric_names)

    counts = fields.array("counts", np.int64, (n_features,), low=1)
    if (counts[1:] > counts[:-1]).any():
        fields.fail("counts", "falling values", "a rise")
    column_of = fields.array("column_of", np.int32, (n_features,), 0, len(column_names) - 1)
    slot_range = fields.array("slot_range", np.int32, (n_features, 2), 0, PAST_ALL_SLOTS)
    n_shared = 0
    for name, (first, past) in zip(feature_names, slot_range.tolist(), strict=True):
        if (first, past) == (n_keys, PAST_ALL_SLOTS):
            n_shared += 1
        elif first >= n_keys or past != first + 1 or not name.startswith(slot_keys[first] + "="):
            expected = f"the slot of a key of {name!r} or the shared slots"
            fields.fail("slot_range", expected, f"[{first}, {past}]")
    n_shared_slots = fields.integer("n_shared_slots", min(n_shared, 1), n_shared)

    edges = fields.array("bin_edges", np.float64, (None,))
    starts = fields.array("bin_edge_offsets", np.int64, (n_numeric + 1,), 0, len(edges))
    sizes = np.diff(starts)
    if starts[0] != 0 or starts[-1] != len(edges) or ((sizes < 0) | (sizes >= MAX_BINS)).any():
        expected = f"steps of 0 to {MAX_BINS - 1} from 0 to {len(edges)}"
        fields.fail("bin_edge_offsets", expected, "others")
    bin_edges = np.split(edges, starts[1:-1]) if n_numeric else []
    if any((cuts[1:] <= cuts[:-1]).any() for cuts in bin_edges):
        fields.fail("bin_edges", "rising values in each column", "others")
    shape = (n_numeric, MAX_BINS + 1)
    bin_values = fields.array("bin_values", np.float64, shape, -MAX_BIN_VALUE, MAX_BIN_VALUE)
    if bin_values[:, MISSING_BIN].any():
        fields.fail("bin_values", "0 for the missing bin", "another value")
    fields.done()
    return Columns(
        feature_names=feature_names,
        counts=counts,
        column_of=column_of,
        slot_range=slot_range,
        slot_keys=slot_keys,
        n_shared_slots=n_shared_slots,
        column_names=column_names,
        numeric_names=numeric_names,
        bin_edges=bin_edges,
        bin_values=bin_values,
    )
