"""Hard constraints of a model: made for its labels, and stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from spacy_treecrf.engine.constraints import Masks, constrain, observed_transitions
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.sequences import Sequences

MASK_NAMES = ("start", "trans", "end")


def masks_of(kind: str, labels: list[str], order: int, data: Sequences | None) -> Masks:
    """The masks of a kind of constraint; `data` tells which transitions occur, None: nothing."""
    seen: dict[str, Any] = {}
    if kind == "observed" and data is not None:
        start, trans, end = observed_transitions(data.labels, data.offsets, len(labels))
        seen = {"observed_start": start, "observed_trans": trans, "observed_end": end}
    elif kind == "observed":
        kind = "none"
    return constrain(kind, labels, order=order, **seen)


def mask_state(masks: Masks) -> dict[str, Any]:
    return {name: np.isfinite(mask) for name, mask in zip(MASK_NAMES, masks, strict=True)}


def read_masks(reader: Fields, n_labels: int) -> Masks:
    shapes = ((n_labels,), (n_labels, n_labels), (n_labels,))
    start, trans, end = (
        np.where(reader.array(name, np.bool_, shape), 0.0, -np.inf).astype(np.float32)
        for name, shape in zip(MASK_NAMES, shapes, strict=True)
    )
    return start, trans, end
