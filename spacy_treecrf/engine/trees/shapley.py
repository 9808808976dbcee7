"""Shapley values of trees: how much each player has to do with a tree's value for one row.

A player decides some of the tests, such as all tests of one column. Of a coalition S of players a
tree says v(S): tests of players in S are followed as the row follows them, and at the other tests
the mean over both children is taken, weighted by the training rows that reached them: the
path-dependent expectation of Lundberg et al. (2018), "Consistent individualized feature attribution
for tree ensembles".

For the path to one leaf let player p have z_p, the product of the children's shares of training
rows at its tests, and o_p, that of the shares of this row (1 or 0; between them where a missing
value is divided). Then v(S) is a sum over leaves of value * prod_{p in S} o_p * prod_{p not in S}
z_p, and Owen's integral over the multilinear extension gives the Shapley value of p as

    sum over leaves of value * (o_p - z_p) * int_0^1 prod_{q != p} ((1 - t) z_q + t o_q) dt,

and the interaction of p and q in the same way, with both of them taken out. The integrand is a
polynomial, for which Gauss and Legendre's points are exact; all of its factors are positive, so
nothing cancels. Products are made on the way down a tree and sums over leaves on the way up: the
work is that of nodes times points.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.trees.forest import Forest
from spacy_treecrf.engine.trees.splitting import LEAF

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

# More points than this would change nothing: the error is far below that of rounding.
MAX_POINTS = 256
NOBODY = -1


class PlayedTrees(NamedTuple):
    """Trees whose tests belong to players."""

    tree_first: npt.NDArray[np.int64]  # shape: (n_trees + 1,)
    left: Ints  # shape: (n_nodes,), within the tree; -1 at leaves
    right: Ints
    value: npt.NDArray[np.float32]
    rows: npt.NDArray[np.float32]  # training rows that reached the node; 0 where not known
    player: Ints  # who decides the test; NOBODY at leaves


class TreeValues(NamedTuple):
    """What trees say of a row, tree by tree. shapes: (n_trees,)"""

    full: Doubles  # when every test is followed: the tree's own value
    mean: Doubles  # when none is: its mean over the training rows


class Points(NamedTuple):
    """Points between 0 and 1, and the weights that make sums over them integrals."""

    at: Doubles
    weight: Doubles


class _Paths(NamedTuple):
    """The way from the root to each node of one tree. shapes: (n_nodes,) where not said"""

    parent: npt.NDArray[np.int64]
    above: npt.NDArray[np.int64]  # the child on the way that the same player decided last; -1
    train: Doubles  # z of the player who decided about the node last
    own: Doubles  # o of this player
    reach: Doubles  # share of the row that gets to the node
    product: Doubles  # shape: (n_nodes, n_points), prod_q ((1 - t) z_q + t o_q)


def played_trees(forest: Forest, player: Ints) -> PlayedTrees:
    """The trees of a forest, whose tests the players (n_nodes,) decide."""
    left = np.where(forest.kind == LEAF, np.int32(-1), forest.left)
    return PlayedTrees(
        forest.tree_first, left, forest.right, forest.value, forest.rows, player.astype(np.int32)
    )


def points_for(trees: PlayedTrees) -> Points:
    """As many points as the paths of these trees need."""
    n_trees = len(trees.tree_first) - 1
    tree_of = np.repeat(np.arange(n_trees), np.diff(trees.tree_first))
    decided = trees.player != NOBODY
    n_players = int(trees.player.max(initial=0)) + 1
    pairs = np.unique(tree_of[decided] * n_players + trees.player[decided])
    most = int(np.bincount(pairs // n_players, minlength=1).max())
    # m points are exact up to degree 2m - 1, and a path of n players has degree n - 1
    return legendre_points(min(MAX_POINTS, most // 2 + 1))


@lru_cache
def legendre_points(n: int) -> Points:
    """Gauss and Legendre's n points for integrals from 0 to 1."""
    at, weight = np.polynomial.legendre.leggauss(n)
    return Points((at + 1.0) / 2.0, weight / 2.0)


def knows_rows(trees: PlayedTrees) -> npt.NDArray[np.bool_]:
    """Which trees have counts of rows, or need none. shape: (n_trees,)"""
    root = trees.tree_first[:-1]
    return (trees.rows[root] > 0) | (trees.left[root] < 0)


@step
def _room(n_nodes: int, n_points: int) -> _Paths:
    return _Paths(
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes),
        np.empty(n_nodes),
        np.empty(n_nodes),
        np.empty((n_nodes, n_points)),
    )


@step
def _factor(paths: _Paths, node: int, t: float) -> float:
    """The factor that the player who decided about a node has in the products below it."""
    return float((1.0 - t) * paths.train[node] + t * paths.own[node])


@step
def _go_down(
    trees: PlayedTrees, first: int, last: int, right_share: Doubles, at: Doubles, paths: _Paths
) -> None:
    """Fill the paths of the tree with nodes first to last - 1, parents before their children."""
    paths.reach[0] = 1.0
    paths.above[0] = paths.parent[0] = -1
    for j in range(len(at)):
        paths.product[0, j] = 1.0
    for node in range(last - first):
        left = trees.left[first + node]
        if left < 0:
            continue
        right = trees.right[first + node]
        player = trees.player[first + node]
        above = node
        while above > 0 and trees.player[first + paths.parent[above]] != player:
            above = paths.parent[above]
        for child in (left, right):
            share = right_share[first + node] if child == right else 1.0 - right_share[first + node]
            of_rows = 0.0
            if trees.rows[first + node] > 0.0:
                of_rows = np.float64(trees.rows[first + child]) / trees.rows[first + node]
            paths.parent[child] = node
            paths.above[child] = above if above > 0 else -1
            paths.train[child] = of_rows * (paths.train[above] if above > 0 else 1.0)
            paths.own[child] = share * (paths.own[above] if above > 0 else 1.0)
            paths.reach[child] = share * paths.reach[node]
            for j in range(len(at)):
                before = _factor(paths, above, at[j]) if above > 0 else 1.0
                now = _factor(paths, child, at[j])
                paths.product[child, j] = (
                    paths.product[node, j] * now / before if before > 0.0 else 0.0
                )


@kernel
def add_shapley_values(
    trees: PlayedTrees,
    right_share: Doubles,
    factors: Doubles,
    points: Points,
    out: Doubles,
    values: TreeValues,
) -> None:
    """Add the players' Shapley values for one row to out (n_players,), tree i times factors[i].

    right_share: (n_nodes,), how much of the row goes right at each test. Trees whose rows are not
    known add nothing. Fills `values` of all trees.
    """
    at, weight = points.at, points.weight
    most = 1
    for tree in range(len(factors)):
        most = max(most, trees.tree_first[tree + 1] - trees.tree_first[tree])
    paths = _room(most, len(at))
    below = np.empty((most, len(at)))  # sums over the leaves below a node
    for tree in range(len(factors)):
        first, last = trees.tree_first[tree], trees.tree_first[tree + 1]
        _go_down(trees, first, last, right_share, at, paths)
        values.full[tree] = 0.0
        values.mean[tree] = 0.0
        for node in range(last - first - 1, -1, -1):
            left = trees.left[first + node]
            if left < 0:
                value = np.float64(trees.value[first + node])
                values.full[tree] += value * paths.reach[node]
                for j in range(len(at)):
                    below[node, j] = value * paths.product[node, j]
                if trees.rows[first] > 0.0:
                    of_rows = np.float64(trees.rows[first + node]) / trees.rows[first]
                    values.mean[tree] += value * of_rows
            else:
                for j in range(len(at)):
                    below[node, j] = below[left, j] + below[trees.right[first + node], j]
        if trees.rows[first] <= 0.0:
            if last - first == 1:
                values.mean[tree] = values.full[tree]
            continue
        for node in range(1, last - first):
            above = paths.above[node]
            total = 0.0
            for j in range(len(at)):
                now = _factor(paths, node, at[j])
                if now > 0.0:
                    slope = (paths.own[node] - paths.train[node]) / now
                    if above > 0:
                        before = _factor(paths, above, at[j])
                        slope -= (paths.own[above] - paths.train[above]) / before
                    total += weight[j] * slope * below[node, j]
            out[trees.player[first + paths.parent[node]]] += factors[tree] * total


@kernel
def add_interactions(
    trees: PlayedTrees,
    right_share: Doubles,
    factors: Doubles,
    points: Points,
    out: Doubles,
) -> None:
    """Add the players' Shapley interactions for one row to out (n_players, n_players).

    They are added above and below the diagonal. Arguments are those of `add_shapley_values`.
    """
    at, weight = points.at, points.weight
    most = 1
    for tree in range(len(factors)):
        most = max(most, trees.tree_first[tree + 1] - trees.tree_first[tree])
    paths = _room(most, len(at))
    deciding = np.empty(most, np.int64)  # nodes on a path, the last one of each player
    for tree in range(len(factors)):
        first, last = trees.tree_first[tree], trees.tree_first[tree + 1]
        if trees.rows[first] <= 0.0:
            continue
        _go_down(trees, first, last, right_share, at, paths)
        for leaf in range(1, last - first):
            if trees.left[first + leaf] >= 0:
                continue
            n = 0
            node = np.int64(leaf)
            while node > 0:
                player = trees.player[first + paths.parent[node]]
                known = False
                for i in range(n):
                    known |= trees.player[first + paths.parent[deciding[i]]] == player
                if not known:
                    deciding[n] = node
                    n += 1
                node = paths.parent[node]
            value = factors[tree] * trees.value[first + leaf]
            for a in range(n):
                for b in range(a):
                    one, other = deciding[a], deciding[b]
                    total = 0.0
                    for j in range(len(at)):
                        both = _factor(paths, one, at[j]) * _factor(paths, other, at[j])
                        if both > 0.0:
                            total += weight[j] * paths.product[leaf, j] / both
                    total *= value * (paths.own[one] - paths.train[one])
                    total *= paths.own[other] - paths.train[other]
                    p = trees.player[first + paths.parent[one]]
                    q = trees.player[first + paths.parent[other]]
                    out[p, q] += total
                    out[q, p] += total
