"""Forests: their parts, and the refusal of damaged ones."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.engine.fixed_grid import GRID
from spacy_treecrf.engine.trees.forest import (
    MAX_ROWS,
    MAX_VALUE,
    NODE_FIELDS,
    Forest,
    empty_forest,
    join_forests,
)
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, CONTEXT, LEAF, NUMERIC
from spacy_treecrf.storage.state_reader import StateReader
from tests.engine.random_forest import random_forest

LIMITS = {"n_labels": 3, "n_features": 12, "n_numeric": 2, "order": 2}


def forest_for_loading() -> Forest:
    return random_forest(1, [4, 1, 7, 3, 9], order=2)


def load(state) -> Forest:
    return Forest.from_state(StateReader(state), **LIMITS)


def assert_same(a: Forest, b: Forest) -> None:
    for name, value in a.to_state().items():
        other = getattr(b, name)
        np.testing.assert_array_equal(value, other)
        assert value.dtype == other.dtype, name


def trees_of(forest: Forest):
    """Of each tree: class, round and node arrays."""
    return [
        (
            int(forest.tree_class[i]),
            int(forest.tree_round[i]),
            *(getattr(forest, name)[first:last].tolist() for name in NODE_FIELDS),
        )
        for i, (first, last) in enumerate(
            zip(forest.tree_first[:-1], forest.tree_first[1:], strict=True)
        )
    ]


def test_joined_forests_hold_all_trees_in_order():
    parts = [random_forest(s, sizes) for s, sizes in enumerate([[3, 1], [], [9, 2, 4]])]
    joined = join_forests(parts)
    assert trees_of(joined) == [tree for part in parts for tree in trees_of(part)]
    assert_same(join_forests([joined]), joined)
    assert_same(join_forests([empty_forest(), joined, empty_forest()]), joined)
    assert_same(join_forests([]), empty_forest())


def test_selected_trees_stay_as_they_are():
    forest = random_forest(2, [3, 1, 9, 2, 4, 1])
    chosen = np.array([True, False, False, True, True, False])
    kept = [tree for tree, keep in zip(trees_of(forest), chosen, strict=True) if keep]
    assert trees_of(forest.select(chosen)) == kept
    assert_same(forest.select(np.zeros(6, bool)), empty_forest())


@pytest.mark.parametrize("factor", [0.0, 0.3, 2.0, -1.0])
def test_scaled_multiplies_values_and_nothing_else(factor):
    forest = random_forest(4, [5, 9])
    scaled = forest.scaled(factor)
    np.testing.assert_allclose(scaled.value, factor * forest.value, atol=0.51 / GRID)
    np.testing.assert_array_equal(scaled.value * GRID, np.rint(scaled.value * GRID))
    for name in set(forest.to_state()) - {"value"}:
        np.testing.assert_array_equal(getattr(scaled, name), getattr(forest, name))


def test_scaled_by_minus_one_takes_a_forest_back():
    forest = random_forest(5, [5, 9])
    np.testing.assert_array_equal(forest.scaled(-1.0).scaled(-1.0).value, forest.value)


@pytest.mark.parametrize("forest", [forest_for_loading(), empty_forest(), random_forest(6, [1])])
def test_a_stored_forest_is_read_as_it_was(forest):
    assert_same(load(forest.to_state()), forest)


def test_forests_without_counts_of_rows_are_read_and_can_be_joined_with_others():
    """Models of 0.1 and compact models have none."""
    forest = forest_for_loading()
    state = forest.to_state()
    del state["rows"]
    old = load(state)
    assert not old.rows.any()
    assert "rows" not in old.to_state()
    joined = load(join_forests([old, forest]).to_state() | {"tree_round": np.zeros(10, np.int32)})
    np.testing.assert_array_equal(joined.rows, np.concatenate([old.rows, forest.rows]))


def node_of(forest: Forest, kind: int) -> int:
    return int(np.flatnonzero(forest.kind == kind)[0])


def cases():
    """(name of the damage, field that must be named, function that damages a state)"""
    forest = forest_for_loading()
    root = int(forest.tree_first[2])  # of a tree with seven leaves
    below = root + int(forest.left[root])

    def put(field, index, value):
        def damage(state):
            state[field][index] = value

        return field, damage

    def become(field, change):
        def damage(state):
            state[field] = change(state[field])

        return field, damage

    for kind in (CATEGORICAL, NUMERIC, CONTEXT):
        node = node_of(forest, kind)
        limit = {CATEGORICAL: 12, NUMERIC: 2, CONTEXT: 2}[kind]
        yield f"feature {limit} of kind {kind}", *put("feature", node, limit)
        yield f"feature -1 of kind {kind}", *put("feature", node, -1)
    yield "unknown kind", *put("kind", root, 4)
    yield "label above K", *put("threshold", node_of(forest, CONTEXT), 4)
    yield "label below 0", *put("threshold", node_of(forest, CONTEXT), -1)
    yield "bin above 255", *put("threshold", node_of(forest, NUMERIC), 256)
    yield "bin below 0", *put("threshold", node_of(forest, NUMERIC), -1)
    for field in ("left", "right"):
        yield f"{field} is the root", *put(field, root, 0)
        yield f"{field} is negative", *put(field, root, -1)
        yield f"{field} is past the tree", *put(field, root, 13)
        yield f"{field} is huge", *put(field, root, 2**31 - 1)
    inner = np.flatnonzero(forest.kind[root : root + 13] != LEAF)
    deeper = root + int(inner[inner > 0][0])
    yield "cycle", *put("left", deeper, 0)
    yield "its own child", *put("right", deeper, deeper - root)
    yield "two parents", "left", lambda state: state["left"].__setitem__(root, state["right"][root])
    yield "leaf turned into a test", "left", lambda state: _split_a_leaf(state, root)
    yield "test turned into a leaf", "left", lambda state: state["kind"].__setitem__(below, LEAF)
    for value in (np.nan, np.inf, -np.inf, 2 * MAX_VALUE, -2 * MAX_VALUE):
        yield f"value {value}", *put("value", root, value)
    for value in (np.nan, np.inf):
        yield f"gain {value}", *put("gain", root, value)
    for value in (np.nan, np.inf, -1.0, 2 * MAX_ROWS, 0.0):
        yield f"rows {value}", *put("rows", root, value)
    yield "rows of a child differ", *put("rows", below, 1000.0)
    yield "class above K", *put("tree_class", 1, 3)
    yield "class below 0", *put("tree_class", 1, -1)
    yield "round below 0", *put("tree_round", 0, -1)
    yield "rounds fall", *put("tree_round", 0, 9)
    yield "first offset", *put("tree_first", 0, 1)
    yield "last offset", *put("tree_first", -1, 1000)
    yield "offsets fall", *put("tree_first", 1, 30)
    yield "empty tree", *put("tree_first", 1, 0)
    yield "even tree", *put("tree_first", 1, 6)
    yield "negative offset", *put("tree_first", 1, -7)
    yield "huge offset", *put("tree_first", 1, 2**62)
    for field in NODE_FIELDS:
        if field != "kind":
            yield f"{field} too short", *become(field, lambda array: array[:-1])
        yield f"{field} of another type", *become(field, lambda array: array.astype(np.int16))
        yield f"{field} of two dimensions", *become(field, lambda array: array[None])
        yield f"{field} is a list", *become(field, lambda array: array.tolist())
        if field != "rows":
            yield f"{field} is missing", field, lambda state, field=field: state.pop(field)
    for field in ("tree_round", "tree_first"):
        yield f"{field} too short", *become(field, lambda array: array[:-1])
        yield f"{field} too long", *become(field, lambda array: np.append(array, array[-1]))
    yield "unknown field", "surprise", lambda state: state.__setitem__("surprise", 1)


def _split_a_leaf(state, root):
    nodes = np.arange(root, root + 13)
    leaf = nodes[state["kind"][nodes] == LEAF][0]
    state["kind"][leaf] = CATEGORICAL
    state["feature"][leaf] = 0
    state["left"][leaf], state["right"][leaf] = 11, 12


CASES = list(cases())


@pytest.mark.parametrize(("field", "damage"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_damage_is_refused_with_the_name_of_the_field(field, damage):
    state = {name: array.copy() for name, array in forest_for_loading().to_state().items()}
    damage(state)
    with pytest.raises(ValueError, match=rf"^treecrf: .*'{field}'"):
        load(state)


def test_a_short_list_of_kinds_is_refused():
    state = forest_for_loading().to_state()
    with pytest.raises(ValueError, match=r"treecrf: .*field"):
        load({**state, "kind": state["kind"][:-1]})


def test_random_damage_is_refused_or_harmless():
    """Whatever single cell is changed: no walk may leave its tree or go on for ever."""
    rng = np.random.default_rng(0)
    forest = forest_for_loading()
    for _ in range(300):
        state = {name: array.copy() for name, array in forest.to_state().items()}
        name = rng.choice(["tree_first", "kind", "feature", "threshold", "left", "right"])
        state[name][rng.integers(len(state[name]))] = rng.integers(0, 40)
        try:
            loaded = load(state)
        except ValueError as error:
            assert str(error).startswith("treecrf: ")  # noqa: PT017
            continue
        for tree in range(loaded.n_trees):
            first, last = loaded.tree_first[tree : tree + 2]
            todo, seen = [0], set()
            while todo:
                node = todo.pop()
                assert 0 <= node < last - first
                assert node not in seen
                seen.add(node)
                if loaded.kind[first + node] != LEAF:
                    todo += [int(loaded.left[first + node]), int(loaded.right[first + node])]
            assert len(seen) == last - first
