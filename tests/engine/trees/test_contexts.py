"""Contexts: the labels before a row."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.engine.trees.contexts import count_lags, list_contexts


@pytest.mark.parametrize("order", range(5))
def test_lags_count_the_labels_before_a_row(order):
    lags = count_lags(np.array([0, 6, 7, 9]), order)
    assert lags.tolist() == [min(t, order) for t in (0, 1, 2, 3, 4, 5, 0, 0, 1)]
    assert lags.dtype == np.uint8


@pytest.mark.parametrize(("n_labels", "order"), [(1, 2), (2, 3), (3, 2), (4, 0)])
def test_contexts_list_the_labels_before_a_row(n_labels, order):
    contexts = list_contexts(n_labels, order)
    assert contexts.first.tolist() == [sum(n_labels**i for i in range(m)) for m in range(order + 2)]
    for m in range(order + 1):
        for c in range(n_labels**m):
            labels = contexts.labels[contexts.first[m] + c].tolist()
            assert labels[m:] == [n_labels] * (order - m)
            assert sum(y * n_labels**lag for lag, y in enumerate(labels[:m])) == c
