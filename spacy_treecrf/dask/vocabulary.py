"""What parts of the data have seen, merged: the same ids as if one reader had read all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.dask.parts import Labelled, naming
from spacy_treecrf.engine.encoding.feature_dicts import Events, Ids, new_ids
from spacy_treecrf.engine.encoding.stored_events import scan_into
from spacy_treecrf.engine.row_storage import RowStorage
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL

# How an item says something: the fields of `Ids`, in this order.
_TABLES = ("strings", "bags")
_NAMES = ("flags", "bare", "numbers", "missing")


class Seen(NamedTuple):
    """Everything that was seen, in its order of appearance."""

    names: list[tuple[int, str]]  # the ways and keys
    name_of: npt.NDArray[np.int32]  # shape: (n,)
    values: list[str]  # n of them; flags and numbers have none


class PartSummary(NamedTuple):
    """What the driver learns of a part that was read."""

    labels: list[Any]  # the distinct labels, in their order of appearance
    n_rows: int
    n_sequences: int


@dataclass
class PartRows:
    """The rows of a part, or of some of its sequences, as events."""

    events: Events
    labels: npt.NDArray[np.int32]  # shape: (n_rows,), -1 where not annotated

    @property
    def n_sequences(self) -> int:
        return len(self.events.offsets) - 1

    def some(self, first: int, last: int) -> PartRows:
        """The sequences from first to last - 1."""
        rows = slice(int(self.events.offsets[first]), int(self.events.offsets[last]))
        return PartRows(self.events.part(first, last), self.labels[rows])


def read_rows(
    data: Labelled, name: str, indicator: bool, storage: RowStorage
) -> tuple[PartRows, Seen, PartSummary]:
    """Read a part by ids of its own."""
    X, y = data
    next_id = count().__next__
    seen = new_ids(next_id, indicator)
    with naming(name):
        events = scan_into(storage, X, seen, "X")
    ids: dict[Any, int] = {}
    flat = [
        UNKNOWN_LABEL if label is None else ids.setdefault(_plain(label), len(ids))
        for labels in y
        for label in labels
    ]
    rows = PartRows(events, np.array(flat, np.int32))
    summary = PartSummary(list(ids), events.n_rows, rows.n_sequences)
    return rows, _in_order(seen, next_id()), summary


def _plain(label: Any) -> str | int:
    return str(label) if isinstance(label, str) else int(label)


def _in_order(ids: Ids, n: int) -> Seen:
    """Everything that has one of n ids, in their order."""
    names: list[tuple[int, str]] = []
    name_of, values = np.zeros(n, np.int32), [""] * n
    for way, field in enumerate(_TABLES):
        for key, table in getattr(ids, field).items():
            for value, i in table.items():
                name_of[i], values[i] = len(names), value
            names.append((way, key))
    for way, field in enumerate(_NAMES, len(_TABLES)):
        for key, i in getattr(ids, field).items():
            name_of[i] = len(names)
            names.append((way, key))
    return Seen(names, name_of, values)


class Vocabulary:
    """Everything that was seen, with the ids of one reader of all parts."""

    def __init__(self, indicator: bool) -> None:
        self._next_id = count().__next__
        self.ids = new_ids(self._next_id, indicator)
        self.n_seen = 0

    @property
    def seen(self) -> Seen:
        return _in_order(self.ids, self.n_seen)

    def merge(self, seen: Seen) -> npt.NDArray[np.int32]:
        """Take up what comes next; returns the ids that it has here, in its order."""
        tables: list[dict[str, int]] = []
        keys: list[str | None] = []  # of names, which are their tables' keys themselves
        for way, key in seen.names:
            if way < len(_TABLES):
                tables.append(getattr(self.ids, _TABLES[way])[key])
                keys.append(None)
            else:
                tables.append(getattr(self.ids, _NAMES[way - len(_TABLES)]))
                keys.append(key)
        found = [
            tables[name][value if keys[name] is None else keys[name]]
            for name, value in zip(seen.name_of.tolist(), seen.values, strict=True)
        ]
        ids = np.array(found, np.int32)
        self.n_seen = max(self.n_seen, int(ids.max(initial=-1)) + 1)
        return ids


def join_rows(parts: Sequence[PartRows]) -> PartRows:
    """The rows of all parts, in this order; their events hold no numbers any more."""
    if len(parts) == 1:
        return parts[0]
    lengths = [np.diff(part.events.offsets) for part in parts]
    widths = [np.diff(part.events.ends) for part in parts]
    events = Events(
        offsets=np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64),
        ends=np.concatenate([[0], np.cumsum(np.concatenate(widths))]).astype(np.int64),
        ids=np.concatenate([part.events.ids for part in parts]),
        values=np.empty(0),
    )
    return PartRows(events, np.concatenate([part.labels for part in parts]))
