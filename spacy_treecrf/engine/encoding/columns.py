"""Features by id and numeric columns by bin: learned from feature dicts, then used to encode them.

A feature lives in one place: in the slot (column of `feature_ids`) of its key if the training data
show it only as the string value of that key, otherwise in the shared slots behind the keys' slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.encoding.binning import MAX_BINS
from spacy_treecrf.engine.encoding.entry_tables import (
    EntryIds,
    entry_ids,
    first_bin,
    nothing_id,
    put_in_bins,
)
from spacy_treecrf.engine.encoding.feature_dicts import Events, narrow_ranges
from spacy_treecrf.engine.encoding.missing_methods import (
    ABSENT_METHOD,
    IMPUTATION,
    IN_TREES,
    INDICATOR,
    METHODS,
    MISSING_VALUE,
    ColumnMap,
)
from spacy_treecrf.engine.encoding.stored_events import scan_into
from spacy_treecrf.engine.row_storage import IN_MEMORY, RowStorage
from spacy_treecrf.engine.sequences import ABSENT, BLOCK_ROWS, MISSING, MISSING_BIN, cut_rows
from spacy_treecrf.engine.wide_rows import LARGE, is_loose, rows_behind, suitable_width
from spacy_treecrf.storage.state_reader import StateReader, describe_value

if TYPE_CHECKING:
    from spacy_treecrf.engine.encoding.placing import Places

PAST_ALL_SLOTS = 2**31 - 1
# A table of rows has a cell for each key of texts or numbers, and trees that decide about missing
# values have another. They may take this, or so many times what the rows hold.
MAX_TABLE_BYTES = 2**30
HOLLOW = 64
FEW_CELLS = 2**12  # as many empty ones do no harm
BLOCK_BYTES = 2**28  # of the table of rows that are encoded at once for prediction
MAX_BIN_VALUE = 1e6  # standardised values of n rows are within sqrt(n)

EncodedSequences = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint8]]


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
    # For "imputation": features that stand for missing values, rising, and a bin for each column.
    imputed: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    imputed_bins: npt.NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))

    def encode(
        self, X: Iterable[Iterable[Any]], name: str = "X", storage: RowStorage = IN_MEMORY
    ) -> EncodedSequences:
        """Offsets, feature ids and numeric bins of X; what training did not see is absent.

        `feature_ids` is wider than in training where a row has more shared features than any had.
        Of two features for one slot of a row, which no training row has, the last one is kept.
        Errors call X by the name.
        """
        events = self.read(X, name, storage)
        return self.place(events, self._shared_slots(events), name, storage=storage)[0]

    def read(
        self, X: Iterable[Iterable[Any]], name: str = "X", storage: RowStorage = IN_MEMORY
    ) -> Events:
        """The events of X, by the ids of these columns."""
        if not storage.spills:
            return self.item_ids.read(X, name)
        events = scan_into(storage, X, self.item_ids.by_way, name)
        put_in_bins(events, self.nothing, self.bin_edges)
        return events

    def encode_blocks(
        self, X: Iterable[Iterable[Any]], name: str = "X"
    ) -> Iterator[EncodedSequences]:
        """What `encode` returns, block by block: a wide row widens only the rows of its block."""
        events = self.item_ids.read(X, name)
        for first, last in narrow_ranges(events, len(self.slot_keys), BLOCK_BYTES // 4):
            part = events.part(first, last)
            n_shared_slots = self.n_shared_slots
            if n_shared_slots * part.n_rows > FEW_CELLS:
                n_shared_slots = min(n_shared_slots, int(np.diff(part.ends).max(initial=0)))
            yield self.place(part, n_shared_slots, name, first)[0]

    def to_state(self) -> dict[str, Any]:
        """The columns as strings, ints, lists and arrays only."""
        state = {field.name: getattr(self, field.name) for field in dataclass_fields(self)}
        lengths = [len(edges) for edges in self.bin_edges]
        state["bin_edges"] = np.concatenate([np.empty(0), *self.bin_edges])
        state["bin_edge_offsets"] = np.cumsum([0, *lengths], dtype=np.int64)
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Columns:
        """Columns from what `to_state` returned; every field is checked."""
        return _checked(state)

    def __getstate__(self) -> dict[str, Any]:
        # without the lookup tables: they are derived, and hold functions that cannot be pickled
        return {field.name: getattr(self, field.name) for field in dataclass_fields(self)}

    @property
    def nothing(self) -> int:
        """The id, in events, of what the columns do not know."""
        return nothing_id(len(self.feature_names), len(self.column_names))

    @cached
    def item_ids(self) -> EntryIds:
        """The id of everything that an item can say."""
        return entry_ids(
            self.feature_names,
            self.slot_range[:, 0].tolist(),
            self.slot_keys,
            self.column_names,
            self.numeric_names,
            self.bin_edges,
            self.missing == INDICATOR,
        )

    @cached
    def map(self) -> ColumnMap:
        """Which column each feature and each slot belongs to."""
        columns = {name: c for c, name in enumerate(self.column_names)}
        slots = np.array([columns.get(key, -1) for key in self.slot_keys], np.int32)
        return ColumnMap(self.column_of, slots, len(self.column_names))

    @cached
    def missing_ids(self) -> npt.NDArray[np.int32]:
        """What a missing cell holds in each slot of a key. shape: (n_keys,)"""
        if self.missing not in (IMPUTATION, INDICATOR):
            return np.full(len(self.slot_keys), MISSING, np.int32)
        feature_ids = np.full(len(self.slot_keys), ABSENT, np.int32)
        stand_ins = self.imputed
        if self.missing == INDICATOR:
            names = {f"{key}={MISSING_VALUE}" for key in self.slot_keys}
            found = [f for f, name in enumerate(self.feature_names) if name in names]
            stand_ins = np.array(found, np.int32)
        slots = self.slot_range[stand_ins, 0]
        own = slots < len(feature_ids)
        feature_ids[slots[own]] = stand_ins[own]
        return feature_ids

    def impute_bins(self, numeric: npt.NDArray[np.uint8]) -> None:
        """Put the median in place of missing numbers, if that is the treatment."""
        if self.missing == IMPUTATION:
            for rows in cut_rows(len(numeric), BLOCK_ROWS):
                some = numeric[rows]
                some[:] = np.where(some == MISSING_BIN, self.imputed_bins, some)

    @cached
    def places(self) -> Places:
        """Where ids belong."""
        from spacy_treecrf.engine.encoding.placing import Places

        slots = {key: slot for slot, key in enumerate(self.slot_keys)}
        stand_ins = [self._shared_stand_ins(column) for column in range(len(self.column_names))]
        return Places(
            slot_of=np.ascontiguousarray(self.slot_range[:, 0]),
            missing_slot=np.array([slots.get(name, -1) for name in self.column_names], np.int32),
            missing_ids=self.missing_ids,
            stand_first=np.cumsum([0, *map(len, stand_ins)], dtype=np.int32),
            stand_ins=np.array([i for some in stand_ins for i in some], np.int32),
        )

    def _shared_stand_ins(self, column: int) -> list[int]:
        """Ids for the shared slots of a row where this column is missing.

        The id n_features + column is the mark of a missing column.
        """
        if self.missing in IN_TREES and column not in self.map.slot_column:
            return [len(self.feature_names) + column]
        own = self.slot_range[self.imputed, 0] < len(self.slot_keys)
        here = self.column_of[self.imputed] == column
        return [int(feature) for feature in self.imputed[here & ~own]]

    def _shared_slots(self, events: Events) -> int:
        """As many shared slots as training rows had, or fewer where that would be a large table."""
        if events.n_rows * (len(self.slot_keys) + self.n_shared_slots) <= LARGE:
            return self.n_shared_slots
        return min(self.n_shared_slots, int(np.diff(events.ends).max(initial=0)))

    def _narrow_width(self, events: Events) -> tuple[int, int] | None:
        """How many shared slots rows get if a few go on in further rows, and how many of those.

        None: all fit. Trees that decide about missing values have a table of rows and columns
        anyway.
        """
        n_keys = len(self.slot_keys)
        if self.missing in IN_TREES or not is_loose(events.ends, n_keys):
            return None
        from spacy_treecrf.engine.encoding.placing import count_shared, room_for_shared

        widths = np.empty(events.n_rows, np.int64)
        shared = room_for_shared(events.ends, self.places)
        count_shared(events.ends, events.ids, self.places, shared, widths)
        width = suitable_width(widths, n_keys)
        if width == widths.max():
            return None
        return width, rows_behind(widths, width, n_keys + width)

    def place(
        self,
        events: Events,
        n_shared_slots: int,
        name: str,
        first_sequence: int = 0,
        storage: RowStorage = IN_MEMORY,
    ) -> tuple[EncodedSequences, int]:
        """Offsets, feature ids and numeric bins from events whose ids are those of `item_ids`.

        Returns also how many shared features the widest row has, or n_shared_slots if that is more.
        n_shared_slots: how many rows have at least, unless a few are much wider than most. Errors
        call what was read by the name, and number its sequences from the first one.
        """
        # Here, because spaCy loads this module for any pipeline, and kernels load numba.
        from spacy_treecrf.engine.encoding.placing import place_events, room_for_shared

        first, shared = first_bin(self.nothing, 0), room_for_shared(events.ends, self.places)
        widest, n_behind = n_shared_slots, 0
        if (narrow := self._narrow_width(events)) is not None:
            n_shared_slots, n_behind = narrow
        while True:
            n_slots = len(self.slot_keys) + n_shared_slots
            self._refuse_hollow(events, n_slots, name, first_sequence)
            numeric = storage.empty((events.n_rows, len(self.numeric_names)), np.uint8)
            feature_ids = storage.empty((events.n_rows + n_behind, n_slots), np.int32)
            needed = place_events(
                events.ends, events.ids, self.places, shared, first, feature_ids, numeric
            )
            if needed <= n_shared_slots or n_behind:
                break
            n_shared_slots = needed
        self.impute_bins(numeric)
        return (events.offsets, feature_ids, numeric), max(widest, needed)

    def _refuse_hollow(self, events: Events, n_slots: int, name: str, first_sequence: int) -> None:
        """Refuse rows whose tables would be huge and nearly empty, before they are made."""
        n_numeric = len(self.numeric_names)
        n_columns = n_slots + n_numeric
        n_bytes = 4 * n_slots + n_numeric
        remedy = "give numbers of rare keys as texts, which cost nothing elsewhere"
        if self.missing in IN_TREES:
            n_columns += len(self.column_names) + n_numeric
            n_bytes += len(self.column_names) + n_numeric
            remedy = "give such rows fewer, or choose another way to treat missing values"
        n_bytes *= events.n_rows
        most = max(MAX_TABLE_BYTES, HOLLOW * 4 * len(events.ids))
        if n_bytes <= most:
            return
        row = int(np.diff(events.ends).argmax())
        s = int(np.searchsorted(events.offsets, row, side="right")) - 1
        t = row - int(events.offsets[s])
        raise ValueError(
            f"treecrf: {name} would take a table of {events.n_rows} rows and {n_columns} columns, "
            f"{n_numeric} of them of numbers, {n_bytes / 2**30:.1f} GB that are nearly empty, "
            f"beyond the limit of {most / 2**30:.1f} GB; {name}[{first_sequence + s}][{t}] has "
            f"the most features, {int(events.ends[row + 1] - events.ends[row])}: {remedy}"
        )


def _checked(state: Any) -> Columns:
    """Columns from a state that nobody vouches for."""
    fields = StateReader(state, path="columns")
    feature_names = fields.strings("feature_names", unique=True)
    slot_keys = fields.strings("slot_keys", unique=True)
    column_names = fields.strings("column_names", unique=True)
    numeric_names = fields.strings("numeric_names", unique=True)
    n_features, n_numeric = len(feature_names), len(numeric_names)

    counts = fields.array("counts", np.int64, (n_features,), low=1)
    if (counts[1:] > counts[:-1]).any():
        fields.fail("counts", "falling values", "a rise")
    column_of = fields.array("column_of", np.int32, (n_features,), 0, len(column_names) - 1)
    slot_range, n_shared = _checked_slots(fields, feature_names, slot_keys)
    missing = fields.string("missing", METHODS)
    n_marks = len(column_names) if missing in IN_TREES else 0
    most_shared = n_shared + n_marks
    n_shared_slots = fields.integer("n_shared_slots", min(n_shared, 1), most_shared)
    n_imputed = None if missing == IMPUTATION else 0
    imputed = fields.array("imputed", np.int32, (n_imputed,), 0, max(0, n_features - 1))
    if len(imputed) > n_features or (imputed[1:] <= imputed[:-1]).any():
        fields.fail("imputed", "rising features", "others")
    bin_edges, bin_values = _checked_bins(fields, n_numeric)
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


def _checked_slots(
    fields: StateReader, feature_names: list[str], slot_keys: list[str]
) -> tuple[npt.NDArray[np.int32], int]:
    """Slots of each feature, and how many features are in the shared ones."""
    n_keys = len(slot_keys)
    shape = (len(feature_names), 2)
    slot_range = fields.array("slot_range", np.int32, shape, 0, PAST_ALL_SLOTS)
    n_shared = 0
    for name, (first, past) in zip(feature_names, slot_range.tolist(), strict=True):
        if (first, past) == (n_keys, PAST_ALL_SLOTS):
            n_shared += 1
        elif first >= n_keys or past != first + 1 or not name.startswith(slot_keys[first] + "="):
            expected = f"the slot of a key of {name!r} or the shared slots"
            fields.fail("slot_range", expected, f"[{first}, {past}]")
    used = np.bincount(np.minimum(slot_range[:, 0], n_keys), minlength=n_keys)[:n_keys]
    if not used.all():
        unused = slot_keys[int(used.argmin())]
        fields.fail("slot_keys", "keys of features", f"{describe_value(unused)}, which has none")
    return slot_range, n_shared


def _checked_bins(
    fields: StateReader, n_numeric: int
) -> tuple[list[npt.NDArray[np.float64]], npt.NDArray[np.float64]]:
    """Edges and values of the bins of numeric columns."""
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
    return bin_edges, bin_values
