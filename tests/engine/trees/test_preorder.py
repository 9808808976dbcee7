"""Forests stored in preorder come back with the same trees, and damaged ones are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.preorder import forest_reader, preorder_state
from tests.engine.random_forest import random_forest, walk

N_FEATURES, N_NUMERIC, N_LABELS, ORDER = 12, 2, 3, 2


def read(state) -> Forest:
    reader = forest_reader(state, "forest")
    return Forest.from_state(reader, N_LABELS, N_FEATURES, N_NUMERIC, ORDER)


def forest_of(seed, sizes) -> Forest:
    return random_forest(seed, sizes, N_FEATURES, N_NUMERIC, N_LABELS, ORDER)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.sampled_from([1, 2, 3, 5, 40]), max_size=6),
)
def test_every_row_reaches_a_leaf_of_the_same_value(seed, sizes):
    forest = forest_of(seed, sizes)
    again = read(preorder_state(forest))
    np.testing.assert_array_equal(again.tree_class, forest.tree_class)
    np.testing.assert_array_equal(again.tree_round, forest.tree_round)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        row = rng.integers(N_FEATURES, size=4), rng.integers(256, size=N_NUMERIC)
        previous = rng.integers(N_LABELS + 1, size=ORDER)
        for tree in range(forest.n_trees):
            values = [f.value[walk(f, tree, *row, previous)] for f in (forest, again)]
            assert values[0] == values[1]


def test_what_is_in_preorder_stays_so():
    state = preorder_state(forest_of(1, [9, 1, 30]))
    again = preorder_state(read(state))
    assert state.keys() == again.keys()
    for name, values in state.items():
        np.testing.assert_array_equal(again[name], values)
    assert not {"left", "right", "gain"} & state.keys()


def test_forests_with_children_are_read_as_before():
    forest = forest_of(2, [5, 9])
    again = read(forest.to_state())
    np.testing.assert_array_equal(again.left, forest.left)
    np.testing.assert_array_equal(again.gain, forest.gain)


@pytest.mark.parametrize("name", ["kind", "feature", "threshold", "value", "tree_first"])
def test_damaged_fields_are_refused(name):
    state = preorder_state(forest_of(3, [5, 9]))
    for damaged in (state[name][:-1], np.append(state[name], state[name][-1:])):
        with pytest.raises(ValueError, match=r"^treecrf: .*'forest\."):
            read(state | {name: damaged})


@pytest.mark.parametrize("node", range(26))
def test_another_shape_of_trees_is_refused(node):
    state = preorder_state(forest_of(3, [5, 9]))
    kind = state["kind"].copy()
    kind[node] = 1 if kind[node] == 0 else 0
    with pytest.raises(ValueError, match=r"^treecrf: .*'forest\."):
        read(state | {"kind": kind})


def test_leaves_at_other_places_are_refused():
    """As many leaves as before, but trees that end too early or not at all."""
    state = preorder_state(forest_of(3, [5, 9]))
    for kind in (state["kind"][::-1].copy(), np.sort(state["kind"])):
        with pytest.raises(ValueError, match=r"^treecrf: .*'forest\."):
            read(state | {"kind": kind})
