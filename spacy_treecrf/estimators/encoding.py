"""Feature dicts and labels become the sequences that models are trained on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from spacy_treecrf.engine.encoding.columns import Columns, EncodedSequences
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.row_storage import RowStorage
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.estimators.checking import (
    FeatureSequences,
    LabelSequences,
    checked,
    label_ids,
    row_weights,
)
from spacy_treecrf.models.model import ModelSettings, SequenceModel


def encode_training(
    X: Iterable[Any], settings: ModelSettings, started: SequenceModel | None, storage: RowStorage
) -> tuple[Columns, EncodedSequences]:
    """X under the columns of a model to go on with, or under columns that are learned from it."""
    if started is not None:
        return started.columns, started.columns.encode(X, storage=storage)
    columns, offsets, feature_ids, numeric = fit_columns(
        X,
        min_count=settings.min_count,
        max_bins=settings.max_bins,
        missing=settings.missing,
        storage=storage,
    )
    return columns, (offsets, feature_ids, numeric)


def encode_held_out(
    X: FeatureSequences,
    y: LabelSequences,
    columns: Columns,
    ids: Mapping[Any, int],
    storage: RowStorage,
    names: tuple[str, str] = ("X_dev", "y_dev"),
) -> Sequences:
    """Held-out data under the columns of a model. names: What the caller calls them, in errors."""
    X, y = checked(X, y, *names)
    offsets, feature_ids, numeric = columns.encode(X, names[0], storage)
    # A label that training never saw cannot be scored: such positions do not count.
    labels = label_ids(y, ids, names[1], unseen=UNKNOWN_LABEL)
    if np.all(labels == UNKNOWN_LABEL):
        raise ValueError(
            f"treecrf: {names[1]} holds no label that the training data have; held-out data must "
            "be annotated with the labels of the training data"
        )
    return Sequences(offsets, feature_ids, numeric, labels, row_weights(offsets, None))
