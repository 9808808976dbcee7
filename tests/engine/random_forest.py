"""Random trees, and what they say about a row by the obvious walk from root to leaf."""

from __future__ import annotations

import numpy as np

from spacy_treecrf.engine.fixed_grid import to_grid
from spacy_treecrf.engine.trees.forest import Forest, grow_forest, join_forests
from spacy_treecrf.engine.trees.growing_tree import Tree
from spacy_treecrf.engine.trees.splitting import CATEGORICAL, CONTEXT, LEAF, NUMERIC


def random_tree(rng, n_leaves, n_features, n_numeric, n_labels, order) -> Tree:
    """Random leaves are split by random tests; paths may well contradict themselves."""
    n_nodes = 2 * n_leaves - 1
    kind = np.zeros(n_nodes, np.uint8)
    feature = np.full(n_nodes, -1, np.int32)
    threshold = np.zeros(n_nodes, np.int32)
    left, right = np.full(n_nodes, -1, np.int32), np.full(n_nodes, -1, np.int32)
    kinds = [CATEGORICAL] * bool(n_features) + [NUMERIC] * bool(n_numeric) + [CONTEXT] * bool(order)
    leaves = [0]
    for n_used in range(1, n_nodes, 2):
        node = leaves.pop(int(rng.integers(len(leaves))))
        kind[node] = rng.choice(kinds)
        limits = {CATEGORICAL: (n_features, 1), NUMERIC: (n_numeric, 256)}
        limits[CONTEXT] = (order, n_labels + 1)
        n_tests, n_thresholds = limits[int(kind[node])]
        feature[node] = rng.integers(n_tests)
        threshold[node] = rng.integers(n_thresholds)
        left[node], right[node] = n_used, n_used + 1
        leaves += [n_used, n_used + 1]
    value = to_grid(rng.normal(size=n_nodes)).astype(np.float64)
    gain = rng.random(n_nodes)
    rows = np.random.default_rng(n_leaves).integers(1, 50, n_nodes).astype(np.float64)
    for node in np.flatnonzero(kind != LEAF)[::-1]:  # children come behind their parents
        rows[node] = rows[left[node]] + rows[right[node]]
    return Tree(kind, feature, threshold, left, right, value, gain, rows)


def random_forest(seed, sizes, n_features=12, n_numeric=2, n_labels=3, order=0, rounds=2) -> Forest:
    """Trees with the given numbers of leaves, dealt out to classes and rounds."""
    rng = np.random.default_rng(seed)
    parts = []
    for round_, some in enumerate(np.array_split(np.array(sizes), rounds)):
        trees = [random_tree(rng, n, n_features, n_numeric, n_labels, order) for n in some]
        parts.append(grow_forest(trees, rng.integers(n_labels, size=len(trees)).tolist(), round_))
    return join_forests(parts)


def walk(forest: Forest, tree: int, feature_ids, numeric, previous) -> int:
    """The leaf of a row with these cells; previous: the labels before it, nearest first."""
    first = int(forest.tree_first[tree])
    node = first
    while forest.kind[node] != LEAF:
        test, threshold = int(forest.feature[node]), int(forest.threshold[node])
        if forest.kind[node] == CATEGORICAL:
            holds = test in feature_ids
        elif forest.kind[node] == NUMERIC:
            holds = numeric[test] > threshold
        else:
            holds = previous[test] == threshold
        node = first + int((forest.right if holds else forest.left)[node])
    return node
