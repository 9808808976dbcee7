"""Shapley values of trees against the enumeration of all coalitions."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.shapley import (
    MAX_POINTS,
    NOBODY,
    PlayedTrees,
    Points,
    TreeValues,
    add_interactions,
    add_shapley_values,
    knows_rows,
    legendre_points,
    played_trees,
    points_for,
)
from spacy_treecrf.engine.trees.splitting import LEAF
from tests.engine.random_forest import random_forest

N_PLAYERS = 5


def expectation(trees: PlayedTrees, tree: int, right_share, coalition, node: int = 0) -> float:
    """v(S) of one tree, by the obvious recursion."""
    at = int(trees.tree_first[tree]) + node
    if trees.left[at] < 0:
        return float(trees.value[at])
    left, right = int(trees.left[at]), int(trees.right[at])
    share = float(right_share[at])
    if int(trees.player[at]) not in coalition:
        first = int(trees.tree_first[tree])
        share = float(trees.rows[first + right]) / float(trees.rows[at])
    total = 0.0
    for child, part in ((left, 1.0 - share), (right, share)):
        total += part * expectation(trees, tree, right_share, coalition, child)
    return total


def coalitions(players):
    return [set(some) for n in range(len(players) + 1) for some in combinations(players, n)]


def naive_values(game, n_players):
    """Shapley values by their definition. game: from a set of players to a number."""
    found = np.zeros(n_players)
    for p in range(n_players):
        for others in coalitions([q for q in range(n_players) if q != p]):
            s = len(others)
            weight = math.factorial(s) * math.factorial(n_players - s - 1)
            gain = game(others | {p}) - game(others)
            found[p] += weight / math.factorial(n_players) * gain
    return found


def naive_interactions(game, n_players):
    """The Shapley interaction index (Grabisch and Roubens 1999) by its definition."""
    found = np.zeros((n_players, n_players))
    for p, q in combinations(range(n_players), 2):
        for others in coalitions([r for r in range(n_players) if r not in (p, q)]):
            s = len(others)
            weight = math.factorial(s) * math.factorial(n_players - s - 2)
            gain = game(others | {p, q}) - game(others | {p}) - game(others | {q}) + game(others)
            found[p, q] += weight / math.factorial(n_players - 1) * gain
    return found + found.T


def random_game(seed: int, sizes, fractions: bool):
    """Trees, their factors, and how a row goes at each test: to one side, or in parts."""
    rng = np.random.default_rng(seed)
    forest = random_forest(seed, sizes)
    player = np.where(forest.kind == LEAF, NOBODY, rng.integers(0, N_PLAYERS, len(forest.kind)))
    right_share = rng.integers(0, 2, len(forest.kind)).astype(float)
    if fractions:
        parts = rng.random(len(forest.kind)) < 0.3
        right_share[parts] = rng.random(parts.sum())
    return played_trees(forest, player), right_share, rng.normal(size=forest.n_trees)


def values_of(trees: PlayedTrees, right_share, factors, points: Points | None = None):
    n_trees = len(factors)
    out = np.zeros(N_PLAYERS)
    values = TreeValues(np.empty(n_trees), np.empty(n_trees))
    add_shapley_values(trees, right_share, factors, points or points_for(trees), out, values)
    return out, values


SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=3)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), sizes=SIZES, fractions=st.booleans())
def test_values_equal_the_enumeration_of_all_coalitions(seed, sizes, fractions):
    trees, right_share, factors = random_game(seed, sizes, fractions)

    def game(coalition):
        parts = (expectation(trees, i, right_share, coalition) for i in range(len(factors)))
        return float(np.dot(factors, list(parts)))

    found, values = values_of(trees, right_share, factors)
    np.testing.assert_allclose(found, naive_values(game, N_PLAYERS), atol=1e-10)
    everyone = set(range(N_PLAYERS))
    for tree in range(len(factors)):
        full = expectation(trees, tree, right_share, everyone)
        assert values.full[tree] == pytest.approx(full, abs=1e-12)
        mean = expectation(trees, tree, right_share, set())
        assert values.mean[tree] == pytest.approx(mean, abs=1e-6)  # rows are float32


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), sizes=SIZES, fractions=st.booleans())
def test_interactions_equal_the_enumeration_of_all_coalitions(seed, sizes, fractions):
    trees, right_share, factors = random_game(seed, sizes, fractions)

    def game(coalition):
        parts = (expectation(trees, i, right_share, coalition) for i in range(len(factors)))
        return float(np.dot(factors, list(parts)))

    found = np.zeros((N_PLAYERS, N_PLAYERS))
    add_interactions(trees, right_share, factors, points_for(trees), found)
    np.testing.assert_allclose(found, naive_interactions(game, N_PLAYERS), atol=1e-10)


def test_a_child_without_training_rows_harms_nothing():
    """Nobody of the training went right, and neither does the row: nothing depends on it."""
    trees, right_share, factors = random_game(3, [9], False)
    rows = trees.rows.copy()
    inner = np.flatnonzero(trees.left >= 0)
    node = int(inner[-1])
    away = int(trees.right[node] if right_share[node] == 0 else trees.left[node])
    kept = int(trees.left[node] if right_share[node] == 0 else trees.right[node])
    rows[away], rows[kept] = 0.0, rows[node]
    trees = trees._replace(rows=rows)

    def game(coalition):
        return factors[0] * expectation(trees, 0, right_share, coalition)

    found, _ = values_of(trees, right_share, factors)
    np.testing.assert_allclose(found, naive_values(game, N_PLAYERS), atol=1e-10)
    found = np.zeros((N_PLAYERS, N_PLAYERS))
    add_interactions(trees, right_share, factors, points_for(trees), found)
    np.testing.assert_allclose(found, naive_interactions(game, N_PLAYERS), atol=1e-10)


def test_trees_without_counts_say_only_their_value():
    trees, right_share, factors = random_game(5, [6, 1], False)
    trees = trees._replace(rows=np.zeros_like(trees.rows))
    found, values = values_of(trees, right_share, factors)
    assert not found.any()
    assert knows_rows(trees).tolist() == [False, True]
    assert values.full[0] == expectation(trees, 0, right_share, set(range(N_PLAYERS)))
    assert values.mean[1] == values.full[1]


def long_path(n_players: int) -> PlayedTrees:
    """A tree that tests one player after the other; whoever passes all tests gets a value of 1."""
    n_nodes = 2 * n_players + 1
    inner = np.arange(0, n_nodes - 1, 2)
    left, right, player = np.full((3, n_nodes), -1, np.int32)
    left[inner], right[inner], player[inner] = inner + 1, inner + 2, np.arange(n_players)
    rows, value = np.ones((2, n_nodes), np.float32)
    rows[inner] = 2.0 ** np.arange(n_players, 0, -1)
    rows[inner + 1] = rows[inner + 2] = rows[inner] / 2
    value[:-1] = 0.0
    return PlayedTrees(np.array([0, n_nodes]), left, right, value, rows, player)


@pytest.mark.parametrize("n_players", [1, 2, 40, 120])
def test_equal_players_of_a_long_path_share_its_value(n_players):
    trees = long_path(n_players)
    out = np.zeros(n_players)
    values = TreeValues(np.empty(1), np.empty(1))
    right_share = np.ones(len(trees.left))
    add_shapley_values(trees, right_share, np.ones(1), points_for(trees), out, values)
    np.testing.assert_allclose(out, (1.0 - 0.5**n_players) / n_players, rtol=1e-9)


def test_more_points_than_the_limit_would_change_nothing():
    """The integrals of t^(n - 1), which is as steep as a product can be."""
    points = legendre_points(MAX_POINTS)
    for n in (600, 1000, 5000):
        assert np.sum(points.weight * points.at ** (n - 1)) == pytest.approx(1.0 / n, rel=1e-9)


def test_forest_of_another_kind_of_players_is_taken_over():
    forest: Forest = random_forest(1, [3])
    trees = played_trees(forest, np.where(forest.kind == LEAF, NOBODY, 0))
    assert trees.left[forest.kind == LEAF].tolist() == [-1, -1, -1]
    assert len(points_for(trees).at) == 1
