"""Ids of the entries of feature dicts, from the codes of their values and the shapes of dicts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.item_codes import (
    ASK,
    FIRST_TEXT,
    NO_SLOT,
    NONE,
    NOTHING,
    ONE,
    UNKNOWN_TEXT,
    ZERO,
    CodedItems,
    TextIds,
)
from spacy_treecrf.engine.kernel import kernel, step


@kernel
def resolve(items: CodedItems, texts: TextIds, ids: npt.NDArray[np.int32]) -> int:
    """Write the id of each entry, or ASK; returns how many are to be asked for."""
    n_asked = 0
    for row in range(len(items.shape_of)):
        shape = items.shape_of[row] - items.ends[row]
        for event in range(items.ends[row], items.ends[row + 1]):
            ids[event] = _id_of(items.codes[event], items.shapes, shape + event, texts)
            n_asked += ids[event] == ASK
    return n_asked


@step
def _id_of(code: int, shapes: npt.NDArray[np.int32], at: int, texts: TextIds) -> np.int64:
    """Return the id of a value under the key whose row in `shapes` is given, or ASK."""
    slot = shapes[at, 0]
    if code >= FIRST_TEXT and slot != NO_SLOT:
        for p in range(texts.first[code], texts.first[code + 1]):
            if texts.slot[p] == slot:
                return np.int64(texts.feature[p])
        return np.int64(NOTHING)
    if code == ONE:
        return np.int64(shapes[at, 1])
    if code == ZERO:
        return np.int64(shapes[at, 2])
    if code == NONE:
        return np.int64(shapes[at, 3])
    if code == UNKNOWN_TEXT and slot != NO_SLOT:
        return np.int64(NOTHING)
    return np.int64(ASK)
