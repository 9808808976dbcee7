"""The lists of features that open leaves keep, against plain dictionaries."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.trees.block_bounds import number_of_blocks
from spacy_treecrf.engine.trees.node_features import (
    LeafFeatures,
    TouchedFeatures,
    Units,
    mark,
    move,
    nothing_touched,
    number_of_words,
    rising_features,
    subtract,
)

FEATURES = 200
MIN_ROWS = 2
UNITS = Units(0.5, 0.25, 1.0)
counts = st.dictionaries(st.integers(0, FEATURES - 1), st.integers(1, 9), max_size=60)


def touched_by(table: dict[int, int]) -> TouchedFeatures:
    touched = nothing_touched(FEATURES)
    for feature, n in table.items():
        touched.sums[feature, :3] = [-3 * n, 7 * n, n]
    touched.listed[: len(table)] = list(table)
    return touched


def new_leaf(table: dict[int, int]) -> LeafFeatures:
    """Return what grow_tree keeps for an open leaf."""
    n_words = number_of_words(FEATURES)
    leaf = LeafFeatures(
        np.zeros(FEATURES + 1, np.int32),
        np.full((3, FEATURES + 1), np.nan),
        np.full((2, FEATURES + 1), np.nan, np.float32),
        np.full(n_words, 2**64 - 1, np.uint64),  # what an earlier leaf left there
        np.full(n_words, -1, np.int32),
        np.zeros((number_of_blocks(FEATURES), 4), np.float32),
    )
    touched = touched_by(table)
    mark(touched.listed[: len(table)], touched.words)
    n = move(touched, leaf, MIN_ROWS, UNITS)
    assert not touched.words.any()
    assert not touched.sums.any()
    return leaf._replace(features=leaf.features[:n], sums=leaf.sums[:, :n], quick=leaf.quick[:, :n])


@settings(deadline=None)  # the first call compiles
@given(counts)
def test_a_new_leaf_lists_its_frequent_features_in_order(table: dict[int, int]) -> None:
    leaf = new_leaf(table)
    expected = sorted(f for f, n in table.items() if n >= MIN_ROWS)
    assert leaf.features.tolist() == expected
    assert leaf.sums.T.tolist() == [[-3 * table[f], 7 * table[f], table[f]] for f in expected]
    assert leaf.quick.T.tolist() == [[-1.5 * table[f], 1.75 * table[f] + 1] for f in expected]


@settings(deadline=None)  # the first call compiles
@given(counts)
def test_listed_features_are_sorted_and_nothing_stays_marked(table: dict[int, int]) -> None:
    touched = touched_by(table)
    assert rising_features(touched, len(table)).tolist() == sorted(table)
    assert not touched.words.any()


@settings(deadline=None)  # the first call compiles
@given(counts, counts)
def test_subtracting_changes_the_common_features_only(
    parent: dict[int, int], child: dict[int, int]
) -> None:
    leaf = new_leaf(parent)
    touched = touched_by(child)
    mark(touched.listed[: len(child)], touched.words)
    subtract(touched, leaf, UNITS)
    left = [parent[f] - child.get(f, 0) for f in leaf.features.tolist()]
    assert leaf.sums.T.tolist() == [[-3 * n, 7 * n, n] for n in left]
    assert leaf.quick.T.tolist() == [[-1.5 * n, 1.75 * n + 1] for n in left]
