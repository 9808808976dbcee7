"""Transitions that soft labels leave possible, beside a naive twin."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.engine.chain import soft_transitions
from spacy_treecrf.engine.chain.constraints import observed_transitions
from spacy_treecrf.engine.chain.soft_transitions import possible_transitions
from spacy_treecrf.engine.soft_labels import NO_TABLE, SoftLabels

K = 3


def random_tables(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, SoftLabels]:
    """Rows with labels, with nothing, and with tables that rule labels and edges out."""
    labels = rng.integers(-1, K, n_rows).astype(np.int32)
    node_table = np.where(labels < 0, rng.integers(NO_TABLE, 2, n_rows), NO_TABLE)
    edge_table = np.where(labels < 0, rng.integers(NO_TABLE, 2, n_rows), NO_TABLE)
    nodes = np.where(rng.random((2, K)) < 0.5, -np.inf, 0.0).astype(np.float32)
    edges = np.where(rng.random((2, K, K)) < 0.5, -np.inf, 0.0).astype(np.float32)
    return labels, SoftLabels(
        node_table.astype(np.int32), nodes, edge_table.astype(np.int32), edges
    )


def naive(
    soft: SoftLabels, labels: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, trans, end = np.zeros(K, bool), np.zeros((K, K), bool), np.zeros(K, bool)

    def may_be(row: int, y: int) -> bool:
        node, edge = soft.node_table[row], soft.edge_table[row]
        if labels[row] >= 0:
            return bool(labels[row] == y)
        if node != NO_TABLE and soft.nodes[node, y] == -np.inf:
            return False
        return bool(edge == NO_TABLE or (soft.edges[edge, :, y] > -np.inf).any())

    for first, past in pairwise(offsets):
        says = [bool(labels[row] >= 0 or soft.is_soft[row]) for row in range(first, past)]
        for y in range(K):
            start[y] |= past > first and may_be(first, y)
            end[y] |= past > first and may_be(past - 1, y)
            trans[y, y] |= past > first + 1 and not any(says)
        for row in range(first + 1, past):
            if not says[row - first] and not says[row - 1 - first]:
                continue
            for a in range(K):
                for b in range(K):
                    edge = soft.edge_table[row]
                    weighs = edge == NO_TABLE or soft.edges[edge, a, b] > -np.inf
                    trans[a, b] |= weighs and may_be(row - 1, a) and may_be(row, b)
    return start, trans, end


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(0, 10**6))
def test_possible_transitions_are_those_of_the_naive_twin(lengths: list[int], seed: int) -> None:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    labels, soft = random_tables(np.random.default_rng(seed), int(offsets[-1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(soft_transitions, "ROWS_AT_A_TIME", 3)
        found = possible_transitions(soft, labels, offsets)
    for mine, other in zip(found, naive(soft, labels, offsets), strict=True):
        np.testing.assert_array_equal(mine, other)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(0, 10**6))
def test_without_soft_labels_they_are_the_observed_ones(lengths: list[int], seed: int) -> None:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n_rows = int(offsets[-1])
    labels = np.random.default_rng(seed).integers(-1, K, n_rows).astype(np.int32)
    found = possible_transitions(SoftLabels.none(n_rows, K), labels, offsets)
    for mine, other in zip(found, observed_transitions(labels, offsets, K), strict=True):
        np.testing.assert_array_equal(mine, other)
