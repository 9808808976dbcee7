"""The lists of features that open leaves keep, against plain dictionaries."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.block_bounds import number_of_blocks
from spacy_treecrf.engine.node_features import Units, mark, move, number_of_words, subtract

FEATURES = 200
MIN_ROWS = 2
UNITS = Units(0.5, 0.25, 1.0)
counts = st.dictionaries(st.integers(0, FEATURES - 1), st.integers(1, 9), max_size=60)


def histogram(table: dict[int, int]) -> np.ndarray:
    dense = np.zeros((FEATURES, 4))
    for feature, n in table.items():
        dense[feature, :3] = [-3 * n, 7 * n, n]
    return dense


class Leaf:
    """What grow_tree keeps for an open leaf."""

    def __init__(self, dense: np.ndarray, table: dict[int, int]) -> None:
        n_words = number_of_words(FEATURES)
        self.words = np.full(n_words, 2**64 - 1, np.uint64)  # what an earlier leaf left there
        self.before = np.full(n_words, -1, np.int32)
        features = np.zeros(FEATURES + 1, np.int32)
        sums = np.full((3, FEATURES + 1), np.nan)
        quick = np.full((2, FEATURES + 1), np.nan, np.float32)
        marks = np.zeros(n_words, np.uint64)
        mark(np.array(list(table), np.int32), marks)
        n = move(marks, dense, MIN_ROWS, self.words, self.before, features, sums, quick, UNITS)
        assert not marks.any()
        self.features, self.sums, self.quick = features[:n], sums[:, :n], quick[:, :n]


@settings(deadline=None)  # the first call compiles
@given(counts)
def test_a_new_leaf_lists_its_frequent_features_in_order(table: dict[int, int]) -> None:
    dense = histogram(table)
    leaf = Leaf(dense, table)
    expected = sorted(f for f, n in table.items() if n >= MIN_ROWS)
    assert leaf.features.tolist() == expected
    assert leaf.sums.T.tolist() == [[-3 * table[f], 7 * table[f], table[f]] for f in expected]
    assert leaf.quick.T.tolist() == [[-1.5 * table[f], 1.75 * table[f] + 1] for f in expected]
    assert not dense.any()


@settings(deadline=None)  # the first call compiles
@given(counts, counts)
def test_subtracting_changes_the_common_features_only(
    parent: dict[int, int], child: dict[int, int]
) -> None:
    leaf = Leaf(histogram(parent), parent)
    marks = np.zeros(number_of_words(FEATURES), np.uint64)
    mark(np.array(list(child), np.int32), marks)
    bounds = np.zeros((number_of_blocks(FEATURES), 4), np.float32)
    subtract(marks, histogram(child), leaf.words, leaf.before, leaf.sums, leaf.quick, bounds, UNITS)
    left = [parent[f] - child.get(f, 0) for f in leaf.features.tolist()]
    assert leaf.sums.T.tolist() == [[-3 * n, 7 * n, n] for n in left]
    assert leaf.quick.T.tolist() == [[-1.5 * n, 1.75 * n + 1] for n in left]
