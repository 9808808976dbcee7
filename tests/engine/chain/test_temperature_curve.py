"""Temperatures by entropies: against loops and enumeration, and limits."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.temperature_curve import (
    MOST,
    TemperatureCurve,
    label_entropies,
)
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.storage.state_reader import StateReader
from tests.engine.enumeration import enumerate_paths

OFFSETS = np.array([0, 4, 5, 5, 8], np.int64)
CURVE = TemperatureCurve(-0.1, 0.4, -0.2)


def naive_temperature(curve: TemperatureCurve, probabilities: Any) -> float:
    entropy = -sum(p * math.log(p) for p in probabilities if p > 0.0)
    log_t = curve.shift + curve.slope * entropy + curve.bend * entropy**2
    return min(MOST, max(1 / MOST, math.exp(log_t)))


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    order=st.integers(0, 2),
    joint=st.booleans(),
    scale=st.sampled_from([0.0, 1.0, 10.0, 300.0]),
    coefficients=st.tuples(*[st.floats(-2.0, 2.0)] * 3),
)
def test_temperatures_follow_from_all_label_sequences(seed, order, joint, scale, coefficients):
    rng = np.random.default_rng(seed)
    n_labels, n_rows = 3, int(OFFSETS[-1])
    tables = n_labels**order if joint else 1
    scores = (scale * rng.normal(size=(n_rows, tables, n_labels))).astype(np.float32)
    trans = rng.normal(size=(n_labels, n_labels)).astype(np.float32)
    start, end = rng.normal(size=(2, n_labels)).astype(np.float32)
    chain, curve = Chain(order, start, trans, end), TemperatureCurve(*coefficients)
    data = Sequences.unlabelled(
        OFFSETS, np.zeros((n_rows, 1), np.int32), np.zeros((n_rows, 0), np.uint8)
    )
    with Workers(1) as workers:
        found = curve.temperatures_of(scores, data, chain, workers)
    for begin, past in pairwise(OFFSETS.tolist()):
        if begin == past:
            continue
        nodes = enumerate_paths(scores[begin:past], chain).pair_marginals(past - begin).sum(axis=1)
        expected = [naive_temperature(curve, row) for row in nodes]
        np.testing.assert_allclose(found[begin:past], expected, rtol=1e-4)


def test_certain_rows_have_no_entropy_and_equal_ones_the_most() -> None:
    nodes = np.array([[1.0, 0.0, 0.0], [1 / 3] * 3, [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
    expected = [0.0, math.log(3), math.log(2), 0.0]
    np.testing.assert_allclose(label_entropies(nodes), expected, atol=1e-12)


def test_temperatures_have_limits() -> None:
    entropies = np.array([0.0, 1.0, 5.0])
    np.testing.assert_allclose(TemperatureCurve(0.0, 3.0, 3.0).temperatures(entropies), [1, 2, 2])
    np.testing.assert_allclose(
        TemperatureCurve(0.0, 0.0, -9.0).temperatures(entropies), [1, 0.5, 0.5]
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10.1])
def test_broken_coefficients_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="the slope of a temperature curve is"):
        TemperatureCurve(0.0, value, 0.0)


def test_state_is_read_back() -> None:
    reader = StateReader(CURVE.to_state())
    assert TemperatureCurve.from_state(reader) == CURVE
    reader.done()


@pytest.mark.parametrize(
    "change",
    [
        {"bend": math.nan},
        {"bend": math.inf},
        {"bend": 11.0},
        {"bend": "0.1"},
        {"bend": True},
        {"bend": None},
    ],
)
def test_broken_states_are_refused_by_the_name_of_the_field(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="field 'bend'"):
        TemperatureCurve.from_state(StateReader(CURVE.to_state() | change))
