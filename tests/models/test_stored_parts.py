"""Weights that are stored once for all features that have the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.boosting.linear import LinearWeights
from spacy_treecrf.models.stored_parts import read_weights, shared_state, sparse_state
from spacy_treecrf.storage.state_reader import StateReader

N_LABELS, N_NUMERIC = 3, 2


def weights_of(seed: int, n_features: int, n_rows: int) -> LinearWeights:
    """So many features with rows of weights among a few, many of them 0."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (n_rows, N_LABELS)).astype(np.float32)
    numeric = rng.normal(size=(N_NUMERIC, N_LABELS)).astype(np.float32)
    return LinearWeights(rows[rng.integers(n_rows, size=n_features)], numeric)


def read(state: dict[str, Any], n_features: int) -> LinearWeights:
    reader = StateReader(state, path="linear")
    weights = read_weights(reader, n_features, N_NUMERIC, N_LABELS)
    reader.done()
    return weights


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), n_features=st.integers(0, 30), n_rows=st.integers(1, 9))
def test_shared_weights_come_back_bit_for_bit(seed: int, n_features: int, n_rows: int) -> None:
    weights = weights_of(seed, n_features, n_rows)
    state = shared_state(weights)
    for again in (read(state, n_features), read(sparse_state(weights), n_features)):
        np.testing.assert_array_equal(again.categorical, weights.categorical)
        np.testing.assert_array_equal(again.numeric, weights.numeric)
    assert len(state["value"]) <= N_LABELS * n_rows


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("row_of", np.zeros(19, np.int32)),
        ("row_of", np.full(20, 20, np.int32)),
        ("row_of", np.full(20, -1, np.int32)),
        ("row_of", np.zeros(20, np.int32)),
        ("where", np.arange(3)[::-1].copy()),
        ("where", np.array([0, 1, 10**6])),
        ("value", np.array([np.nan, 1, 1], np.float32)),
        ("value", np.ones(2, np.float32)),
    ],
)
def test_damaged_fields_are_refused(name: str, damaged: np.ndarray[Any, Any]) -> None:
    state = shared_state(weights_of(4, 20, 5))
    with pytest.raises(ValueError, match=r"^treecrf: .*'linear\.(row_of|where|value)'"):
        read(state | {name: damaged}, 20)


def test_weights_that_would_take_far_more_memory_than_they_can_need_are_refused() -> None:
    n = 2**25
    state = {
        "row_of": np.zeros(n, np.int32),
        "where": np.zeros(0, np.int64),
        "value": np.zeros(0, np.float32),
        "numeric": np.zeros((N_NUMERIC, N_LABELS), np.float32),
    }
    with pytest.raises(ValueError, match="MB at most"):
        read(state, n)
