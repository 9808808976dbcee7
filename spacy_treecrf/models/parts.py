"""Parts that several kinds of models have, and their stored form."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.constraints import Masks, constrain, observed_transitions
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.linear import LinearWeights
from spacy_treecrf.engine.sequences import Sequences

MASK_NAMES = ("start", "trans", "end")
MAX_WEIGHT = 1e6


def new_masks(constraints: str, labels: list[str], order: int, data: Sequences) -> Masks:
    """Hard constraints of a kind; `data` tells which transitions occur."""
    seen: dict[str, Any] = {}
    if constraints == "observed":
        start, trans, end = observed_transitions(data.labels, data.offsets, len(labels))
        seen = {"observed_start": start, "observed_trans": trans, "observed_end": end}
    return constrain(constraints, labels, order=order, **seen)


def wider_masks(masks: Masks, constraints: str, labels: list[str], order: int) -> Masks:
    """Those of a model that got further labels."""
    if constraints != "observed":
        return constrain(constraints, labels, order=order)
    n_new = len(labels) - len(masks[0])  # nothing is known of how the new labels follow
    start, trans, end = (np.pad(mask, (0, n_new)) for mask in masks)
    return start, trans, end


def masks_state(masks: Masks) -> dict[str, npt.NDArray[np.bool_]]:
    return {name: np.isfinite(mask) for name, mask in zip(MASK_NAMES, masks, strict=True)}


def read_masks(fields: Fields, n_labels: int) -> Masks:
    shapes = ((n_labels,), (n_labels, n_labels), (n_labels,))
    start, trans, end = (
        np.where(fields.array(name, np.bool_, shape), 0.0, -np.inf).astype(np.float32)
        for name, shape in zip(MASK_NAMES, shapes, strict=True)
    )
    return start, trans, end


def sparse_state(weights: LinearWeights) -> dict[str, Any]:
    """Only the weights that are not zero."""
    where = np.flatnonzero(weights.categorical)
    return {
        "where": where.astype(np.int64),
        "value": weights.categorical.ravel()[where],
        "numeric": weights.numeric,
    }


def read_sparse(fields: Fields, n_features: int, n_numeric: int, n_labels: int) -> LinearWeights:
    where = fields.array("where", np.int64, (None,), low=0, high=max(0, n_features * n_labels - 1))
    low, high = -MAX_WEIGHT, MAX_WEIGHT
    value = fields.array("value", np.float32, (len(where),), low=low, high=high)
    numeric = fields.array("numeric", np.float32, (n_numeric, n_labels), low=low, high=high)
    if len(where) > n_features * n_labels or np.any(np.diff(where) <= 0):
        fields.fail("where", "rising positions", "others")
    categorical = np.zeros(n_features * n_labels, np.float32)
    categorical[where] = value
    return LinearWeights(categorical.reshape(n_features, n_labels), numeric)
