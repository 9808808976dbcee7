"""Parts that several kinds of models have: hard constraints, sparse weights, and their states."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.linear import LinearWeights
from spacy_treecrf.engine.chain.constraints import Bools, Masks, constrain, observed_transitions
from spacy_treecrf.engine.chain.soft_transitions import possible_transitions
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.storage.limits import MAX_WEIGHT as MAX_WEIGHT
from spacy_treecrf.storage.state_reader import StateReader

MASK_NAMES = ("start", "trans", "end")
# Weights are stored sparsely and used densely. They may take this, or so much for each stored one:
# linear rounds give nearly every feature a weight for every class that they learn.
MAX_DENSE_BYTES = 2**28
BYTES_OF_A_WEIGHT = 2**8


def new_masks(constraints: str, labels: list[str], order: int, data: Sequences) -> Masks:
    """The hard constraints of a kind; `data` tells which transitions occur."""
    found = None
    if constraints == "observed":
        if data.soft is None or data.soft.prior is not None:  # annotators have said one label each
            found = observed_transitions(data.best_labels, data.offsets, len(labels))
        else:
            found = possible_transitions(data.soft, data.labels, data.offsets)
    return masks_of(constraints, labels, order, found)


def masks_of(
    constraints: str, labels: list[str], order: int, found: tuple[Bools, Bools, Bools] | None
) -> Masks:
    """The hard constraints of a kind. found: `observed_transitions`, for "observed"."""
    seen: dict[str, Any] = {}
    if found is not None:
        # What no sequence could show (where all have one token, what follows what) is not known.
        start, trans, end = (mask if mask.any() else ~mask for mask in found)
        seen = {"observed_start": start, "observed_trans": trans, "observed_end": end}
    return constrain(constraints, labels, order=order, **seen)


def wider_masks(masks: Masks, constraints: str, labels: list[str], order: int) -> Masks:
    """The hard constraints of a model that got further labels."""
    if constraints != "observed":
        return constrain(constraints, labels, order=order)
    n_new = len(labels) - len(masks[0])  # what may follow the new labels is not known: everything
    start, trans, end = (np.pad(mask, (0, n_new)) for mask in masks)
    return start, trans, end


def masks_state(masks: Masks) -> dict[str, npt.NDArray[np.bool_]]:
    return {name: np.isfinite(mask) for name, mask in zip(MASK_NAMES, masks, strict=True)}


def read_masks(reader: StateReader, n_labels: int) -> Masks:
    shapes = ((n_labels,), (n_labels, n_labels), (n_labels,))
    start, trans, end = (
        np.where(reader.array(name, np.bool_, shape), 0.0, -np.inf).astype(np.float32)
        for name, shape in zip(MASK_NAMES, shapes, strict=True)
    )
    if np.isfinite(start + end).any() and not np.isfinite(trans).any():
        # "observed" of 0.1.0 after training on sequences of one position; see `constrain`.
        trans = np.zeros_like(trans)
    _check_possible(reader, (start, trans, end))
    return start, trans, end


def _check_possible(reader: StateReader, masks: Masks) -> None:
    """Refuse masks that allow no label sequence at all."""
    for name, mask in zip(MASK_NAMES, masks, strict=True):
        if not np.isfinite(mask).any():
            reader.fail(name, "something that is allowed", "nothing")
    start, trans, end = (np.isfinite(mask) for mask in masks)
    reached, new = start, start
    while new.any():
        new = trans[new].any(axis=0) & ~reached
        reached = reached | new
    if not (reached & end).any():
        reader.fail("trans", "a way from a label that may begin to one that may end", "none")


def sparse_state(weights: LinearWeights) -> dict[str, Any]:
    """The state of weights, holding only those that are not zero."""
    where = np.flatnonzero(weights.categorical)
    return {
        "where": where.astype(np.int64),
        "value": weights.categorical.ravel()[where],
        "numeric": weights.numeric,
    }


def shared_state(weights: LinearWeights) -> dict[str, Any]:
    """The state of weights in few bytes: features that always come together have the same ones.

    Different rows of weights are stored once each, label after label.
    """
    if weights.is_zero():
        return sparse_state(weights)
    by_row = np.lexsort(weights.categorical.T)  # features with the same row in their own order
    ordered = weights.categorical[by_row]
    begins = np.ones(len(by_row), np.bool_)
    begins[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
    first = by_row[begins]  # the first feature of each row
    order = np.argsort(first)  # rows in the order of features, which have names alike
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    row_of = np.empty(len(by_row), np.int32)
    row_of[by_row] = place[np.cumsum(begins) - 1]
    by_label = weights.categorical[first[order]].T.ravel()
    where = np.flatnonzero(by_label)
    return {
        "row_of": row_of,
        "where": where.astype(np.int64),
        "value": by_label[where],
        "numeric": weights.numeric,
    }


def read_weights(
    reader: StateReader, n_features: int, n_numeric: int, n_labels: int
) -> LinearWeights:
    """Weights that `sparse_state` or `shared_state` stored."""
    if not reader.has("row_of"):
        return read_sparse(reader, n_features, n_numeric, n_labels)
    row_of = reader.array("row_of", np.int32, (n_features,), low=0, high=max(0, n_features - 1))
    n_rows = int(row_of.max(initial=-1)) + 1
    where = reader.array("where", np.int64, (None,), low=0, high=max(0, n_rows * n_labels - 1))
    low, high = -MAX_WEIGHT, MAX_WEIGHT
    value = reader.array("value", np.float32, (len(where),), low=low, high=high)
    numeric = reader.array("numeric", np.float32, (n_numeric, n_labels), low=low, high=high)
    if np.any(np.diff(where) <= 0) or (len(where) and not n_rows):
        reader.fail("where", "rising positions", "others")
    if not n_rows:
        return LinearWeights(np.zeros((0, n_labels), np.float32), numeric)
    in_row = np.bincount(where % n_rows, minlength=n_rows)
    _refuse_large(reader, n_features, n_labels, int(in_row[row_of].sum()))
    by_label = np.zeros(n_rows * n_labels, np.float32)
    by_label[where] = value
    rows = np.ascontiguousarray(by_label.reshape(n_labels, n_rows).T)
    return LinearWeights(rows[row_of], numeric)


def _refuse_large(reader: StateReader, n_features: int, n_labels: int, n_stored: int) -> None:
    """Refuse weights that would take far more memory than so many of them can need."""
    most = max(MAX_DENSE_BYTES, BYTES_OF_A_WEIGHT * n_stored)
    if 4 * n_features * n_labels > most:
        expected = f"weights that take {most / 2**20:.0f} MB at most"
        reader.fail("where", expected, f"{n_features} features with {n_labels} classes")


def read_sparse(
    reader: StateReader,
    n_features: int,
    n_numeric: int,
    n_labels: int,
    n_learned: int | None = None,
) -> LinearWeights:
    """Weights of all labels; if `n_learned` is given, only the first labels may have some."""
    where = reader.array("where", np.int64, (None,), low=0, high=max(0, n_features * n_labels - 1))
    low, high = -MAX_WEIGHT, MAX_WEIGHT
    value = reader.array("value", np.float32, (len(where),), low=low, high=high)
    numeric = reader.array("numeric", np.float32, (n_numeric, n_labels), low=low, high=high)
    if len(where) > n_features * n_labels or np.any(np.diff(where) <= 0):
        reader.fail("where", "rising positions", "others")
    if not len(where):
        return LinearWeights(LinearWeights.nothing(n_features, 0, n_labels).categorical, numeric)
    n_learned = n_labels if n_learned is None else n_learned
    if np.any(where % n_labels >= n_learned):
        reader.fail("where", f"weights of the {n_learned} classes that are learned", "others")
    _refuse_large(reader, n_features, n_learned, len(where))
    categorical = np.zeros(n_features * n_labels, np.float32)
    categorical[where] = value
    return LinearWeights(categorical.reshape(n_features, n_labels), numeric)
