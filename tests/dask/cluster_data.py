"""Small data sets for trainings on a cluster, and how they are cut into parts."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import dask

from spacy_treecrf.estimators import SequenceEstimator
from spacy_treecrf.storage import container

Labelled = tuple[list[list[dict[str, Any]]], list[list[str | None]]]


def make_data(n_sequences: int, seed: int = 0, unknown: float = 0.0) -> Labelled:
    """Sequences with texts, lists, numbers and missing values, whose labels depend on them."""
    rng = random.Random(seed)
    X, y = [], []
    for _ in range(n_sequences):
        items, labels, before = [], [], 0
        for _ in range(rng.randint(1, 30)):
            word = rng.randint(0, 300)
            noisy = rng.random() < 0.2
            before = rng.randint(0, 4) if noisy else (word * 7 + before) % 5
            number = None if word % 17 == 0 else word * 0.37 + rng.random()
            item = {"w": f"w{word}", "s": f"s{word % 13}", "x": number}
            item["bag"] = [f"a{word % 5}", f"b{word % 3}"]
            items.append(item)
            labels.append(None if rng.random() < unknown else f"L{before}")
        X.append(items)
        y.append(labels)
    return X, y


def cut(data: Labelled, *cuts: int) -> list[Any]:
    """Delayed parts of the data, cut before these sequences."""
    X, y = data
    bounds = pairwise([0, *cuts, len(X)])
    return [dask.delayed((X[a:b], y[a:b])) for a, b in bounds]


def stored(estimator: SequenceEstimator) -> bytes:
    """The model as bytes."""
    return container.dump(estimator.model_.to_state())
