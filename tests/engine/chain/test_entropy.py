"""Entropies of label sequences, against sums over all of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.chain import entropy
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.entropy import sequence_entropies
from tests.engine.enumeration import enumerate_paths

OFFSETS = np.array([0, 4, 5, 5, 8], np.int64)


def random_case(seed: int, order: int, joint: bool, scale: float, forbid: bool):
    rng = np.random.default_rng(seed)
    n_labels = 3
    tables = n_labels**order if joint else 1
    scores = (scale * rng.normal(size=(OFFSETS[-1], tables, n_labels))).astype(np.float32)
    trans = rng.normal(size=(n_labels, n_labels)).astype(np.float32)
    if forbid:
        trans[0, 1] = -np.inf
    start, end = rng.normal(size=(2, n_labels)).astype(np.float32)
    return scores, Chain(order, start, trans, end)


def naive_entropy(scores, chain):
    if not len(scores):
        return 0.0
    p = enumerate_paths(scores, chain).probabilities
    return float(-(p[p > 0] * np.log(p[p > 0])).sum())


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    order=st.integers(0, 2),
    joint=st.booleans(),
    scale=st.sampled_from([0.0, 1.0, 10.0, 300.0]),
    forbid=st.booleans(),
)
def test_equals_the_sum_over_all_label_sequences(seed, order, joint, scale, forbid):
    scores, chain = random_case(seed, order, joint, scale, forbid)
    found = sequence_entropies(scores, OFFSETS, chain)
    for s, (begin, past) in enumerate(pairwise(OFFSETS.tolist())):
        assert found[s] == pytest.approx(naive_entropy(scores[begin:past], chain), abs=2e-5)


def test_does_not_depend_on_how_sequences_are_cut_into_blocks(monkeypatch):
    scores, chain = random_case(1, 1, True, 1.0, False)
    whole = sequence_entropies(scores, OFFSETS, chain)
    monkeypatch.setattr(entropy, "BLOCK_BYTES", 1)
    assert sequence_entropies(scores, OFFSETS, chain) == pytest.approx(whole, abs=1e-9)


def test_is_largest_where_nothing_is_preferred():
    found = sequence_entropies(np.zeros((8, 1, 3), np.float32), OFFSETS, Chain.free(3, 1))
    assert found == pytest.approx(np.diff(OFFSETS) * np.log(3.0), abs=1e-5)
