"""Events that do not fit into memory: read in blocks, and kept in the arrays of a storage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from spacy_treecrf.engine.encoding.feature_dicts import BLOCK_ROWS, Events, Ids, iterate, scan
from spacy_treecrf.engine.row_storage import GrowingArray, RowStorage


def scan_into(storage: RowStorage, X: Iterable[Iterable[Any]], ids: Ids, name: str) -> Events:
    """Read every item of X once, as `scan` does; the events are in the storage."""
    if not storage.spills:
        return scan(X, ids, name)
    offsets, ends = GrowingArray(storage, np.int64), GrowingArray(storage, np.int64)
    events, values = GrowingArray(storage, np.int32), GrowingArray(storage, np.float64)
    offsets.extend(np.zeros(1, np.int64))
    ends.extend(np.zeros(1, np.int64))
    sequences = iter(iterate(X, name, name))
    while True:
        n_sequences = len(offsets.values) - 1
        block = scan(_some(sequences), ids, name, first_sequence=n_sequences)
        if len(block.offsets) == 1:
            break
        offsets.extend(block.offsets[1:] + offsets.values[-1])
        ends.extend(block.ends[1:] + ends.values[-1])
        events.extend(block.ids)
        values.extend(block.values)
    return Events(offsets.values, ends.values, events.values, values.values)


def _some(sequences: Iterator[Any]) -> Iterator[Any]:
    """The next sequences, of about BLOCK_ROWS rows."""
    n_rows = 0
    for sequence in sequences:
        yield sequence
        n_rows += len(sequence) if hasattr(sequence, "__len__") else BLOCK_ROWS
        if n_rows >= BLOCK_ROWS:
            return


def kept_events(storage: RowStorage, events: Events) -> Events:
    """The same events in the storage."""
    if not storage.spills:
        return events
    return Events(
        storage.keep(events.offsets),
        storage.keep(events.ends),
        storage.keep(events.ids),
        storage.keep(events.values),
    )
