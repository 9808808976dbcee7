"""The slot in feature_ids or numeric that each base column of a source has at each offset."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.missing_methods import ABSENT_METHOD
from spacy_treecrf.engine.sequences import ABSENT, MISSING_BIN
from spacy_treecrf.features.source import KnownValues, NumberedValues, Source, VectorRows
from spacy_treecrf.features.words import grown

if TYPE_CHECKING:  # numba is loaded when a pipe learns or predicts, not before
    from spacy_treecrf.features.kernels.bins import BinnedColumns
    from spacy_treecrf.features.kernels.text_values import TextColumns

EDGE = "<edge>"  # value of a position outside of the sequence
_REMEDY = "use spacy.load, or the config that the model was trained with, or train again"
_SLOT_NAME = re.compile(r"(.+)\[(-?\d+)\]", re.DOTALL)


def slot_name(column: str, offset: int) -> str:
    return f"{column}[{offset}]"


class Runs:
    """Runs of slots that take neighbouring cells of a row, all at one offset."""

    def __init__(self) -> None:
        self._runs: list[list[int]] = []  # offset, first cell, past the last cell, first slot
        self.width = 0

    def add(self, offset: int, slot: int) -> int:
        """Add a cell for a slot; a run grows while slots and offsets go on."""
        cell = self.width
        self.width += 1
        if self._runs:
            last = self._runs[-1]
            if last[0] == offset and last[3] + last[2] - last[1] == slot:
                last[2] += 1
                return cell
        self._runs.append([offset, cell, cell + 1, slot])
        return cell

    def arrays(self) -> tuple[npt.NDArray[np.int64], ...]:
        table = np.array(self._runs, np.int64).reshape(-1, 4)
        return tuple(np.ascontiguousarray(table[:, i]) for i in range(4))


@dataclass
class TextColumn:
    """The feature ids of a base column, by value and by cell (offset)."""

    cells: list[int] = field(default_factory=list)
    # value -> index from 1; 0 is unknown
    index: dict[str | None, int] = field(default_factory=dict)
    found: list[tuple[int, int, int]] = field(default_factory=list)  # value, which cell, id
    # shape: (n_values + 1, n_cells)
    ids: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 0), np.int32))

    def freeze(self) -> None:
        self.ids = np.full((len(self.index) + 1, len(self.cells)), ABSENT, np.int32)
        if self.found:
            value, which, feature = np.array(self.found, np.int64).T
            self.ids[value, which] = feature
        self.found = []


@cache
def _writers() -> tuple[Callable[..., None], ...]:
    """Kernels that write rows; numba is loaded with them."""
    from spacy_treecrf.features.kernels.bins import write_bins, write_vector_bins
    from spacy_treecrf.features.kernels.text_values import write_ids

    return write_ids, write_bins, write_vector_bins


class SourceTable:
    """Rows of feature ids and bins, one for each key of a source; row 0 is that of the edge."""

    def __init__(self) -> None:
        self.code_runs = Runs()
        self.bin_runs = Runs()
        self.missing_ids: list[int] = []  # the id that stands for a missing value, by cell
        self.outside_is_missing = False
        self.texts: dict[str, TextColumn] = {}
        self.numbers: dict[str, tuple[list[int], npt.NDArray[np.float64]]] = {}  # cells, edges
        self.feature_ids: npt.NDArray[np.int32] = np.empty((0, 0), np.int32)
        self.bins: npt.NDArray[np.uint8] = np.empty((0, 0), np.uint8)
        self.runs: tuple[tuple[npt.NDArray[np.int64], ...], ...] = ()

    @property
    def row_bytes(self) -> int:
        return 4 * self.code_runs.width + self.bin_runs.width

    def freeze(self) -> None:
        """Make the table ready for rows: no column or value can be added after it."""
        for column in self.texts.values():
            column.freeze()
        self.runs = self.code_runs.arrays(), self.bin_runs.arrays()
        self.clear()

    def clear(self) -> None:
        """Remove all rows but that of the edge."""
        self.feature_ids = np.full((1, self.code_runs.width), ABSENT, np.int32)
        self.bins = np.full((1, self.bin_runs.width), MISSING_BIN, np.uint8)
        if self.outside_is_missing:
            self.feature_ids[0] = self.missing_ids
            return
        for column in self.texts.values():
            self.feature_ids[0, column.cells] = column.ids[column.index.get(EDGE, 0)]

    @cached
    def known(self) -> KnownValues:
        """The values that have ids, and the columns of numbers."""
        return KnownValues({name: c.index for name, c in self.texts.items()}, list(self.numbers))

    def make_room(self, n_rows: int) -> None:
        """Make room for so many rows in all."""
        if n_rows > len(self.feature_ids):
            self.feature_ids = grown(self.feature_ids, n_rows)
            self.bins = grown(self.bins, n_rows)

    def add(self, first: int, n_rows: int, found: NumberedValues) -> None:
        """Fill rows from `first` on with what was found."""
        self.make_room(first + n_rows)
        write_ids, write_bins, write_vector_bins = _writers()
        if self.texts:
            feature_ids = self.feature_ids[first : first + n_rows]
            write_ids(found.values, self.text_columns, feature_ids)
            for name in found.missing.keys() & self.texts.keys():
                at = np.array(self.texts[name].cells)
                where = np.flatnonzero(found.missing[name])
                feature_ids[where[:, None], at] = np.array(self.missing_ids)[at]
        if self.numbers:
            bins = self.bins[first : first + n_rows]
            if isinstance(found.numbers, VectorRows):
                write_vector_bins(*found.numbers, self.binned_columns, bins)
            else:
                write_bins(found.numbers, self.binned_columns, bins)

    @cached
    def text_columns(self) -> TextColumns:
        """The text columns as kernels see them."""
        from spacy_treecrf.features.kernels.text_values import TextColumns

        columns = list(self.texts.values())
        flat = TextColumns(
            ids=np.concatenate([column.ids.ravel() for column in columns]),
            id_first=np.cumsum([0, *(column.ids.size for column in columns)], dtype=np.int64),
            cells=np.concatenate([column.cells for column in columns]).astype(np.int64),
            cell_first=np.cumsum([0, *(len(c.cells) for c in columns)], dtype=np.int64),
        )
        for column, start in zip(columns, flat.id_first.tolist(), strict=False):
            own = flat.ids[start : start + column.ids.size]
            column.ids = own.reshape(column.ids.shape)  # so that they are stored once
        return flat

    @cached
    def binned_columns(self) -> BinnedColumns:
        """The numeric columns as kernels see them."""
        from spacy_treecrf.features.kernels.bins import BinnedColumns

        cells, edges = zip(*self.numbers.values(), strict=True) if self.numbers else ((), ())
        return BinnedColumns(
            edges=np.concatenate([np.empty(0), *edges]),
            edge_first=np.cumsum([0, *map(len, edges)], dtype=np.int64),
            cells=np.array([cell for own in cells for cell in own], np.int64),
            cell_first=np.cumsum([0, *map(len, cells)], dtype=np.int64),
        )

    def gather(
        self,
        rows: npt.NDArray[np.int32],
        offsets: npt.NDArray[np.int64],
        feature_ids: npt.NDArray[np.int32],
        numeric: npt.NDArray[np.uint8],
    ) -> None:
        """Write the slots of this source for tokens whose rows are given."""
        from spacy_treecrf.features.kernels.windows import gather

        code_runs, bin_runs = self.runs
        if self.feature_ids.shape[1]:
            gather(rows, offsets, self.feature_ids, *code_runs, feature_ids)
        if self.bins.shape[1]:
            gather(rows, offsets, self.bins, *bin_runs, numeric)


def tables_of(
    columns: Columns, sources: Sequence[Source], outside_is_missing: bool = False
) -> list[SourceTable]:
    """Empty tables for the sources, with the ids that `columns` gives."""
    tables = [SourceTable() for _ in sources]
    missing_ids = columns.missing_ids
    if columns.missing == ABSENT_METHOD:
        missing_ids = np.full_like(missing_ids, ABSENT)
    # for each slot: its column, its cell, and the length of its name
    homes: list[tuple[TextColumn, int, int]] = []
    for slot, key in enumerate(columns.slot_keys):
        s, name, offset = _place(key, sources)
        column = tables[s].texts.setdefault(name, TextColumn())
        homes.append((column, len(column.cells), len(key) + 1))
        column.cells.append(tables[s].code_runs.add(offset, slot))
        tables[s].missing_ids.append(int(missing_ids[slot]))
    slots = columns.slot_range[:, 0].tolist()
    for feature, (name, slot) in enumerate(zip(columns.feature_names, slots, strict=True)):
        if slot >= len(homes):
            raise foreign(name)
        column, which, cut = homes[slot]
        value = column.index.setdefault(name[cut:], len(column.index) + 1)
        column.found.append((value, which, feature))
    for slot, (key, edges) in enumerate(zip(columns.numeric_names, columns.bin_edges, strict=True)):
        s, name, offset = _place(key, sources)
        cells, _ = tables[s].numbers.setdefault(name, ([], edges))
        cells.append(tables[s].bin_runs.add(offset, slot))
    for table in tables:
        table.outside_is_missing = outside_is_missing
        table.freeze()
    return tables


def _place(key: str, sources: Sequence[Source]) -> tuple[int, str, int]:
    """The source, the base column and the offset of a slot."""
    if match := _SLOT_NAME.fullmatch(key):
        name, offset = match[1], int(match[2])
        for s, source in enumerate(sources):
            if offset in (source.window_of(name) or ()):
                return s, name, offset
    raise foreign(key)


def foreign(name: str) -> ValueError:
    """The error about features of a model that a pipe with another config does not make."""
    return ValueError(
        f"treecrf: the model knows features {name!r}, which the features block of the config does "
        f"not make; {_REMEDY}"
    )


def lacking(name: str) -> ValueError:
    """The error about features of a config that a model knows nothing of."""
    return ValueError(
        f"treecrf: the features block of the config makes features {name!r}, which the model does "
        f"not know; {_REMEDY}"
    )
