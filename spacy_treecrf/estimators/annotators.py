"""Annotators by name: who has labelled which sequence, and how each one confuses labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.annotators import as_evidence
from spacy_treecrf.engine.sequences import Sequences

Confusions = dict[Any, dict[Any, dict[Any, float]]]  # by annotator, true and given label


def given_by(
    annotators: Sequence[Any], names: Sequence[Any], data: Sequences, n_labels: int
) -> Sequences:
    """The data with its labels as what annotators say, one of the names for each sequence."""
    if len(annotators) != data.n_sequences:
        raise ValueError(
            f"treecrf: annotators names {len(annotators)}, y has {data.n_sequences} sequences; "
            "name one for each"
        )
    if data.soft is not None:
        raise ValueError(
            "treecrf: y holds soft labels and annotators are named; give plain labels with "
            "annotators: their weights are learned"
        )
    numbers = {name: i for i, name in enumerate(names)}
    return as_evidence(data, np.array([numbers[name] for name in annotators]), n_labels)


def named_confusions(
    confusions: npt.NDArray[np.float64], names: Sequence[Any], labels: Sequence[Any]
) -> Confusions:
    """Learned confusions (n_annotators, n_labels, n_labels) by names and labels."""
    return {
        name: {
            true: dict(zip(labels, row, strict=True))
            for true, row in zip(labels, of_annotator.tolist(), strict=True)
        }
        for name, of_annotator in zip(names, confusions, strict=True)
    }
