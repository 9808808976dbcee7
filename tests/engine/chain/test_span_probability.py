"""Probabilities of many spans, against clamped sums over all label sequences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.chain.chain import Chain, node_marginals, span_probability
from spacy_treecrf.engine.chain.span_probability import (
    label_and_span_probabilities,
    span_probabilities,
)


def random_case(seed: int, order: int, joint: bool, scale: float = 1.0, forbid: bool = False):
    rng = np.random.default_rng(seed)
    n_labels = 3
    offsets = np.array([0, 5, 6, 13], np.int64)
    tables = n_labels**order if joint else 1
    scores = (scale * rng.normal(size=(13, tables, n_labels))).astype(np.float32)
    trans = rng.normal(size=(n_labels, n_labels)).astype(np.float32)
    if forbid:
        trans[0, 1] = -np.inf
    start, end = rng.normal(size=(2, n_labels)).astype(np.float32)
    chain = Chain(order, start, trans, end)
    labels = rng.integers(0, n_labels, 13).astype(np.int32)
    spans = np.array([(0, 1), (0, 4), (3, 5), (5, 6), (6, 13), (8, 11), (12, 13)], np.int64)
    return scores, offsets, chain, labels, spans


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    order=st.integers(0, 2),
    joint=st.booleans(),
    scale=st.sampled_from([0.0, 1.0, 30.0, 400.0]),
    forbid=st.booleans(),
)
def test_equals_clamped_forward_passes(seed, order, joint, scale, forbid):
    scores, offsets, chain, labels, spans = random_case(seed, order, joint, scale, forbid)
    nodes, _ = node_marginals(scores, offsets, chain)
    found = span_probabilities(scores, offsets, chain, nodes, spans, labels)
    for (first, last), p in zip(spans, found, strict=True):
        s = np.searchsorted(offsets, first, side="right") - 1
        begin, past = offsets[s], offsets[s + 1]
        inside = [int(y) for y in labels[first:last]]
        expected = span_probability(scores[begin:past], chain, int(first - begin), inside)
        assert p == pytest.approx(expected, rel=1e-6, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    order=st.integers(0, 1),
    joint=st.booleans(),
    scale=st.sampled_from([0.0, 1.0, 30.0, 400.0]),
    n_spans=st.integers(0, 7),
)
def test_one_call_finds_the_same_bits_or_says_that_it_does_not(seed, order, joint, scale, n_spans):
    scores, offsets, chain, labels, spans = random_case(seed, order, joint, scale)
    spans = spans[:n_spans]
    nodes, _ = node_marginals(scores, offsets, chain)
    of_labels, of_spans = np.empty(13), np.empty(n_spans)
    rows = scores, offsets, nodes, labels
    edges, end = chain.scaled_moves.factors, chain.steps.end
    n_lost = label_and_span_probabilities(rows, edges, end, spans, of_labels, of_spans)
    assert of_labels.tolist() == nodes[np.arange(13), labels].tolist()
    assert n_lost == np.isnan(of_spans).sum()
    expected = span_probabilities(scores, offsets, chain, nodes, spans, labels)
    found = ~np.isnan(of_spans)
    assert of_spans[found].tolist() == expected[found].tolist()


def test_all_spans_of_one_place_add_up():
    scores, offsets, chain, labels, _ = random_case(0, 1, True)
    nodes, _ = node_marginals(scores, offsets, chain)
    total = 0.0
    for a in range(3):
        for b in range(3):
            labels[7:9] = a, b
            span = np.array([[7, 9]])
            total += span_probabilities(scores, offsets, chain, nodes, span, labels)[0]
    assert total == pytest.approx(1.0)


def test_no_spans():
    scores, offsets, chain, labels, _ = random_case(0, 1, False)
    nodes, _ = node_marginals(scores, offsets, chain)
    none = np.zeros((0, 2), np.int64)
    assert span_probabilities(scores, offsets, chain, nodes, none, labels).tolist() == []


def test_a_span_stays_in_its_sequence():
    scores, offsets, chain, labels, _ = random_case(0, 1, False)
    nodes, _ = node_marginals(scores, offsets, chain)
    for bad in ((4, 6), (3, 3)):
        with pytest.raises(ValueError, match="sequence"):
            span_probabilities(scores, offsets, chain, nodes, np.array([bad]), labels)
