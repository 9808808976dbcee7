"""Trees in preorder, as compact models store them: a node, its left subtree, its right subtree.

Which nodes are leaves then tells the shape of all trees, so that no children are stored. Leaves
have no tests, inner nodes no values, and nothing has a gain or a count of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.trees.forest import MAX_VALUE, NODE_FIELDS, Forest
from spacy_treecrf.engine.trees.splitting import CONTEXT, LEAF
from spacy_treecrf.storage.state_reader import StateReader

_CHILDREN = ("left", "right")
_TESTS = ("feature", "threshold")
_LEFT_OUT = (*_CHILDREN, "gain", "rows")


def preorder_state(forest: Forest) -> dict[str, Any]:
    """Return what is stored of a forest whose trees leave nothing to missing values."""
    state = forest.to_state()
    for name in _LEFT_OUT:
        state.pop(name, None)
    order = np.argsort(_preorder_places(forest))
    for name in state.keys() & NODE_FIELDS:
        state[name] = state[name][order]
    inner = state["kind"] != LEAF
    for name in _TESTS:
        state[name] = state[name][inner]
    state["value"] = state["value"][~inner]
    return state


def forest_reader(table: dict[str, Any], path: str) -> StateReader:
    """Return a reader of a stored forest, with all nodes where it was stored in preorder."""
    reader = StateReader(table, path=path)
    if any(reader.has(name) for name in _CHILDREN):
        return reader
    kind = reader.array("kind", np.uint8, (None,), low=LEAF, high=CONTEXT)
    inner = kind != LEAF
    whole = dict(table)
    for name in _TESTS:
        whole[name] = np.full(len(kind), -1 if name == "feature" else 0, np.int32)
        whole[name][inner] = reader.array(name, np.int32, (int(inner.sum()),))
    whole["value"] = np.zeros(len(kind), np.float32)
    whole["value"][~inner] = reader.array(
        "value", np.float32, (int((~inner).sum()),), low=-MAX_VALUE, high=MAX_VALUE
    )
    whole["gain"] = np.zeros(len(kind), np.float32)
    tree_first = reader.array("tree_first", np.int64, (None,), low=0, high=len(kind))
    whole["left"], whole["right"] = _children(inner, tree_first)
    return StateReader(whole, path=path)


def _preorder_places(forest: Forest) -> npt.NDArray[np.int64]:
    """Return where each node is in preorder. shape: (n_nodes,)"""
    roots = np.repeat(forest.tree_first[:-1], np.diff(forest.tree_first))
    left, right = roots + forest.left, roots + forest.right
    levels = []  # of inner nodes
    nodes = forest.tree_first[:-1]
    while len(nodes):
        inner = nodes[forest.kind[nodes] != LEAF]
        levels.append(inner)
        nodes = np.concatenate([left[inner], right[inner]])
    size = np.ones(len(roots), np.int64)  # of the subtree of each node
    for inner in reversed(levels):
        size[inner] += size[left[inner]] + size[right[inner]]
    place = roots.copy()
    for inner in levels:
        place[left[inner]] = place[inner] + 1
        place[right[inner]] = place[inner] + 1 + size[left[inner]]
    return place


def _children(
    inner: npt.NDArray[np.bool_], tree_first: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the children of nodes in preorder, within their trees; nonsense where there are none.

    The nodes that are still to come, one more for an inner node and one less for a leaf, are one
    less than at a node when its left subtree has ended.
    """
    n = len(inner)
    left, right = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    parents = np.flatnonzero(inner)
    if not len(parents) or not len(tree_first):
        return left, right
    to_come = np.cumsum(np.where(inner, 1, -1))
    to_come -= to_come.min() - 1
    ends = np.sort(to_come * n + np.arange(n))  # by how many are to come, then by place
    after = np.searchsorted(ends, (to_come[parents] - 1) * n + parents)
    root = tree_first[np.searchsorted(tree_first, parents, side="right") - 1]
    left[parents] = parents + 1 - root
    right[parents] = ends[np.minimum(after, n - 1)] % n + 1 - root
    return left, right
