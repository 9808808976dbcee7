"""Chains of two states against the general chain with two labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.binary import bit_marginals, bit_residuals
from spacy_treecrf.engine.chain import Chain, node_marginals
from spacy_treecrf.engine.residuals import Annotated, compute_residuals
from spacy_treecrf.engine.threads import Workers
from tests.engine.training_data import sequences_of


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    scale=st.sampled_from([0.0, 1.0, 10.0]),
    unknown=st.sampled_from([0.0, 0.5]),
)
def test_a_bit_is_a_chain_of_two_labels(seed, lengths, scale, unknown) -> None:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(offsets[-1])
    scores = (scale * rng.normal(size=n)).astype(np.float32)
    edges = rng.normal(size=(3, 2)).astype(np.float32)
    bits = rng.integers(0, 2, n).astype(np.int8)
    bits[rng.random(n) < unknown] = -1
    weights = np.repeat(rng.uniform(0.5, 2.0, len(lengths)), lengths).astype(np.float32)
    g, h = np.empty(n, np.float32), np.empty(n, np.float32)
    observed, expected = np.zeros((3, 2)), np.zeros((3, 2))
    ll = bit_residuals(scores, offsets, edges, bits, weights, 3.0, g, h, observed, expected)

    tables = np.zeros((n, 1, 2), np.float32)
    tables[:, 0, 1] = scores
    chain = Chain(1, edges[2], edges[:2], np.zeros(2, np.float32))
    annotated = Annotated(sequences_of(offsets, bits, weights), 2, 1, False)
    truth = compute_residuals(annotated, tables, chain, None, Workers(1))
    np.testing.assert_allclose(g, truth.g[1, :, 0], atol=1e-4)
    np.testing.assert_allclose(observed - expected, truth.edge_g, atol=1e-3)
    assert ll == pytest.approx(truth.log_likelihood, rel=1e-4, abs=1e-3)

    ones = np.empty(n, np.float32)
    bit_marginals(scores, offsets, edges, ones)
    nodes, _ = node_marginals(tables, offsets, chain)
    np.testing.assert_allclose(ones, nodes[:, 1], atol=1e-5)
    p = ones.astype(float)
    bound = np.maximum(p * (1 - p), np.abs(g / weights) / 3.0)
    np.testing.assert_allclose(h, weights * bound, atol=1e-4)


@pytest.mark.parametrize("size", [1e3, 1e6, 3e38])
def test_huge_scores_are_certainty(size) -> None:
    scores = np.array([size, -size, size], np.float32)
    edges = np.array([[-size, size], [size, -size], [0, size]], np.float32)
    ones = np.empty(3, np.float32)
    bit_marginals(scores, np.array([0, 3]), edges, ones)
    np.testing.assert_allclose(ones, [1.0, 0.0, 1.0], atol=1e-6)
