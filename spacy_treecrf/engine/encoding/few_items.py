"""Few feature dicts encoded without kernels, for the first calls after an installation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spacy_treecrf.engine.encoding.entry_tables import BINS, first_bin, put_in_bins
from spacy_treecrf.engine.encoding.feature_dicts import scan
from spacy_treecrf.engine.sequences import ABSENT, MISSING_BIN

if TYPE_CHECKING:
    from spacy_treecrf.engine.encoding.columns import Columns, EncodedSequences


def encode_few(columns: Columns, X: Any) -> EncodedSequences:
    """What `Columns.encode` returns, as wide as needed; nothing stands in for missing values."""
    events = scan(X, columns.item_ids.by_way, "X")
    put_in_bins(events, columns.nothing, columns.bin_edges)
    places, n_keys = columns.places, len(columns.slot_keys)
    n_features, n_columns = len(places.slot_of), len(places.missing_slot)
    bins = first_bin(columns.nothing, 0)
    own_slots = np.full((events.n_rows, n_keys), ABSENT, np.int32)
    numeric = np.full((events.n_rows, len(columns.numeric_names)), MISSING_BIN, np.uint8)
    shared: list[list[int]] = []
    for row in range(events.n_rows):
        in_shared = set()
        for i in events.ids[events.ends[row] : events.ends[row + 1]].tolist():
            if 0 <= i < n_features:
                if places.slot_of[i] < n_keys:
                    own_slots[row, places.slot_of[i]] = i
                else:
                    in_shared.add(i)
            elif n_features <= i < n_features + n_columns:
                slot = places.missing_slot[i - n_features]
                if slot >= 0 and own_slots[row, slot] == ABSENT:
                    own_slots[row, slot] = places.missing_ids[slot]
            elif i >= bins:
                numeric[row, (i - bins) // BINS] = (i - bins) % BINS
        shared.append(sorted(in_shared))
    widest = max(map(len, shared), default=0)
    rows = [own + [ABSENT] * (widest - len(own)) for own in shared]
    in_shared_slots = np.array(rows, np.int32).reshape(events.n_rows, widest)
    return events.offsets, np.concatenate([own_slots, in_shared_slots], axis=1), numeric
