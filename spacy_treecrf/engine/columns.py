"""Features by id and numeric columns by bin: learned from feature dicts, then used to encode them.

A feature lives in one place: in the slot (column of `codes`) of its key if the training data show
it only as the string value of that key, otherwise in the shared slots behind the keys' slots.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.binning import MAX_BINS
from spacy_treecrf.engine.feature_dicts import Events, Ids, known_ids, new_ids, scan
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.missing import (
    ABSENT_METHOD,
    IMPUTATION,
    IN_TREES,
    INDICATOR,
    METHODS,
    MISSING_VALUE,
    ColumnMap,
    marks_of,
)
from spacy_treecrf.engine.sequences import ABSENT, MISSING, MISSING_BIN
from spacy_treecrf.engine.tallying import (
    SHARED,
    bins,
    by_column,
    describe,
    distinct,
    drop_hollow,
    homes,
    known_rows,
    missing_values,
    most_common,
    tally,
)

PAST_ALL_SLOTS = 2**31 - 1
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
    missing: str = ABSENT_METHOD  # how missing values are encoded, one of METHODS
    # Of "imputation": features that stand for missing values, rising, and a bin for each column.
    imputed: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    imputed_bins: npt.NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))

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
        return known_ids(
            self.feature_names,
            self.slot_range[:, 0].tolist(),
            self.slot_keys,
            self.numeric_names,
            self.column_names,
            self.missing == INDICATOR,
        )

    @cached_property
    def map(self) -> ColumnMap:
        """Which column each feature and each slot belongs to."""
        columns = {name: c for c, name in enumerate(self.column_names)}
        slots = np.array([columns.get(key, -1) for key in self.slot_keys], np.int32)
        return ColumnMap(self.column_of, slots, len(self.column_names))

    @cached_property
    def missing_codes(self) -> npt.NDArray[np.int32]:
        """What a missing cell holds in each slot of a key. shape: (n_keys,)"""
        if self.missing not in (IMPUTATION, INDICATOR):
            return np.full(len(self.slot_keys), MISSING, np.int32)
        codes = np.full(len(self.slot_keys), ABSENT, np.int32)
        stand_ins = self.imputed
        if self.missing == INDICATOR:
            names = {f"{key}={MISSING_VALUE}" for key in self.slot_keys}
            found = [f for f, name in enumerate(self.feature_names) if name in names]
            stand_ins = np.array(found, np.int32)
        slots = self.slot_range[stand_ins, 0]
        own = slots < len(codes)
        codes[slots[own]] = stand_ins[own]
        return codes

    def impute_bins(self, numeric: npt.NDArray[np.uint8]) -> None:
        """Put the median in place of missing numbers, if that is the treatment."""
        if self.missing == IMPUTATION:
            numeric[:] = np.where(numeric == MISSING_BIN, self.imputed_bins, numeric)

    def _place_missing(
        self,
        rows: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
        codes: npt.NDArray[np.int32],
    ) -> list[tuple[npt.NDArray[np.int64], int]]:
        """Fill the own slots of missing columns; returns what goes to shared slots, and of which
        rows. Values of columns that are out of range mean something else."""
        missing = (columns >= 0) & (columns < len(self.column_names))
        if not missing.any():
            return []
        rows, columns = rows[missing], columns[missing]
        slots = self._slot_of_column[columns]
        own = slots >= 0
        codes[rows[own], slots[own]] = self.missing_codes[slots[own]]
        return [
            (rows[columns == column], stand_in)
            for column in np.unique(columns).tolist()
            for stand_in in self._shared_stand_ins(column)
        ]

    @cached_property
    def _slot_of_column(self) -> npt.NDArray[np.int64]:
        """The slot of a column's key, -1 if it has none. shape: (n_columns,)"""
        slot_of = np.full(len(self.column_names) + 1, -1)  # the last one for keys without a column
        slot_of[self.map.slot_column] = np.arange(len(self.slot_keys))
        return slot_of[:-1]

    def _shared_stand_ins(self, column: int) -> list[int]:
        """Ids for the shared slots of a row where this column is missing; n_features + a column
        is its mark."""
        if self.missing in IN_TREES and column not in self.map.slot_column:
            return [len(self.feature_names) + column]
        own = self.slot_range[self.imputed, 0] < len(self.slot_keys)
        here = self.column_of[self.imputed] == column
        return [int(feature) for feature in self.imputed[here & ~own]]

    def _place(self, events: Events) -> Encoded:
        """The events of `_ids`, put where they belong in codes and numeric."""
        n_features, n_numeric = len(self.feature_names), len(self.numeric_names)
        n_keys, n_columns = len(self.slot_keys), len(self.column_names)
        first_missing = n_features + n_numeric
        codes = np.full((events.n_rows, n_keys + self.n_shared_slots), ABSENT, dtype=np.int32)
        numeric = np.full((events.n_rows, n_numeric), MISSING_BIN, dtype=np.uint8)
        for rows, ids, values in events.blocks():
            also = self._place_missing(rows, ids - first_missing, codes)

            number = (ids >= n_features) & (ids < first_missing)
            for d, at, amounts in by_column(rows[number], ids[number] - n_features, values[number]):
                found = 1 + np.searchsorted(self.bin_edges[d], amounts, side="left")
                numeric[at, d] = np.where(np.isnan(amounts), MISSING_BIN, found)

            feature = ids < n_features
            rows, ids = rows[feature], ids[feature]
            slots = self.slot_range[ids, 0]
            own = slots < n_keys
            codes[rows[own], slots[own]] = ids[own]
            rows, ids = rows[~own], ids[~own]
            if also:
                rows = np.concatenate([rows, *(where for where, _ in also)])
                stand_ins = [np.full(len(where), stand_in) for where, stand_in in also]
                ids = np.concatenate([ids, *stand_ins])
            at, shared = distinct(rows, ids, n_features + n_columns)
            if len(at):
                place = np.arange(len(at))
                new_row = np.append(True, at[1:] != at[:-1])
                slot = n_keys + place - np.maximum.accumulate(np.where(new_row, place, 0))
                lacking = int(slot.max()) + 1 - codes.shape[1]
                if lacking > 0:
                    codes = np.pad(codes, ((0, 0), (0, lacking)), constant_values=ABSENT)
                mark = shared >= n_features
                codes[at, slot] = np.where(mark, marks_of(shared - n_features), shared)
        self.impute_bins(numeric)
        return events.offsets, codes, numeric


def fit_columns(
    X: Iterable[Iterable[Any]],
    *,
    min_count: int = 1,
    max_bins: int = MAX_BINS,
    missing: str = ABSENT_METHOD,
) -> tuple[Columns, npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Learn the columns of X and encode it; features of fewer than `min_count` rows are dropped."""
    if min_count < 1:
        raise ValueError(f"treecrf: min_count is {min_count}; it must be 1 or more")
    if not 2 <= max_bins <= MAX_BINS:
        raise ValueError(f"treecrf: max_bins is {max_bins}; it must be from 2 to {MAX_BINS}")
    next_id = count().__next__
    seen = new_ids(next_id, indicator=missing == INDICATOR)
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
    hollow = drop_hollow(seen, events)
    numeric = numeric[~np.isin(numeric, hollow)]
    first_seen, home = homes(seen, numeric, n_seen)
    home[hollow] = -1
    if missing == INDICATOR:  # the lowest bin of a numeric column is that of missing numbers
        home[missing_values(seen, numeric)] = -1
    counts, displaced = tally(events, first_seen, home, len(seen.strings))
    if len(displaced):  # two values of one key in a row, by way of nested dicts
        home[displaced] = SHARED
        counts, _ = tally(events, first_seen, home, len(seen.strings))

    order = np.argsort(-counts, kind="stable")
    order = order[: np.count_nonzero(counts >= min_count)]
    new_id = np.full(n_seen, ABSENT, dtype=np.int64)
    new_id[order] = np.arange(len(order))
    used_slots, slot_of = np.unique(home[order], return_inverse=True)  # SHARED sorts last
    n_keys = int(np.count_nonzero(used_slots != SHARED))
    past_slots = np.where(slot_of < n_keys, slot_of + 1, PAST_ALL_SLOTS)
    keys = list(seen.strings)
    feature_names, column_of, column_names = describe(seen, numeric, new_id)
    number_names = {number: key for key, number in seen.numbers.items()}
    bin_edges, bin_values, medians = bins(events, numeric, max_bins, n_seen)
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
        missing=missing,
    )
    if missing == IMPUTATION:
        known = known_rows(events, seen, column_names)[column_of]
        own = (home >= 0) & (home != SHARED)
        valued = np.bincount(home[own], counts[own], minlength=len(keys)).astype(np.int64)
        imputed = most_common(columns.counts, slot_of, known, valued[used_slots[:n_keys]])
        columns = replace(columns, imputed=imputed, imputed_bins=medians)

    # from ids in order of appearance to those of Columns._ids
    nothing = len(order) + len(numeric) + len(column_names)
    renamed = new_id[first_seen]
    renamed[numeric] = len(order) + np.arange(len(numeric))
    for column, key in enumerate(column_names):
        if key in seen.missing:
            renamed[seen.missing[key]] = len(order) + len(numeric) + column
    renamed[renamed == ABSENT] = nothing
    events.rename(renamed.astype(np.int32))
    offsets, codes, numeric_bins = columns._place(events)
    return replace(columns, n_shared_slots=codes.shape[1] - n_keys), offsets, codes, numeric_bins


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
    missing = fields.string("missing", METHODS)
    n_marks = len(column_names) if missing in IN_TREES else 0
    most_shared = n_shared + n_marks
    n_shared_slots = fields.integer("n_shared_slots", min(n_shared, 1), most_shared)
    n_imputed = None if missing == IMPUTATION else 0
    imputed = fields.array("imputed", np.int32, (n_imputed,), 0, max(0, n_features - 1))
    if len(imputed) > n_features or (imputed[1:] <= imputed[:-1]).any():
        fields.fail("imputed", "rising features", "others")

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
    n_medians = n_numeric if missing == IMPUTATION else 0
    imputed_bins = fields.array("imputed_bins", np.uint8, (n_medians,))
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
        missing=missing,
        imputed=imputed,
        imputed_bins=imputed_bins,
    )
