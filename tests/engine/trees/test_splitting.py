"""The quick search for the best feature, against looking at each of them in double precision."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.trees.block_bounds import (
    MIN_FEATURES,
    forget,
    may_reach,
    number_of_blocks,
    widen,
)
from spacy_treecrf.engine.trees.node_features import LeafFeatures
from spacy_treecrf.engine.trees.splitting import (
    CATEGORICAL,
    SplitRule,
    best_categorical,
    no_split,
    split_gain,
)

SCALE = 2.0**20


class Table:
    """Random features of a node, kept as a grower keeps them."""

    def __init__(self, rng, n_features, node_h, slope, penalty, widest):
        share = widest * rng.random(n_features) ** rng.integers(1, 6)
        self.h = np.rint(node_h * share * SCALE)
        noise = rng.normal(size=n_features) * np.sqrt(node_h * share) * SCALE
        self.g = np.rint(slope * self.h + noise)
        self.n = np.rint(share * 1000)
        self.node = np.array([slope * node_h * SCALE, node_h * SCALE, 1000.0, 0.0])
        self.penalty = penalty
        self.bounds = np.empty((number_of_blocks(n_features), 4), np.float32)
        forget(self.bounds)

    @property
    def quick(self):
        return np.stack([self.g / SCALE, self.h / SCALE + self.penalty]).astype(np.float32)

    def take(self, where, share):
        """Rows leave the node, and with them a share of some features' sums."""
        for sums in (self.g, self.h, self.n):
            sums[where] = np.rint(sums[where] * (1.0 - share))
        self.node = np.rint(self.node * (1.0 - share.mean()))
        for i in where:
            widen(self.bounds, i, *self.quick[:, i])

    def search(self):
        rule = SplitRule(1 / SCALE, 1 / SCALE, self.penalty, 3, 1e-9, 1.0, np.uint64(0), 1.0)
        features = np.arange(len(self.g), dtype=np.int32)
        columns = np.zeros(len(self.g), np.int32)
        sums = np.stack([self.g, self.h, self.n])
        nowhere = np.zeros(0, np.uint64), np.zeros(0, np.int32)  # only needed to subtract
        leaf = LeafFeatures(features, sums, self.quick, *nowhere, self.bounds)
        start = no_split(rule.min_gain)
        return best_categorical(self.node, leaf, columns, rule, np.uint64(0), start)

    def best_of_all(self):
        """The best feature by looking at each of them, or None."""
        node_g, node_h = self.node[0] / SCALE, self.node[1] / SCALE
        with np.errstate(divide="ignore", invalid="ignore"):
            unsplit = node_g * node_g / (node_h + self.penalty)
            gains = split_gain.py_func(
                node_g, node_h, self.g / SCALE, self.h / SCALE, self.penalty, unsplit
            )
        gains[(self.n < 3) | (self.node[2] - self.n < 3) | ~(gains > 1e-9)] = -np.inf
        return None if np.isneginf(gains).all() else gains.argmax()


@settings(deadline=None, max_examples=300)
@given(
    seed=st.integers(0, 10**6),
    n_features=st.one_of(st.integers(1, 400), st.integers(MIN_FEATURES, MIN_FEATURES + 300)),
    node_h=st.sampled_from([1.0, 30.0, 1e4, 1e7, 1e11]),
    slope=st.sampled_from([0.0, 1e-3, 1.0, 30.0]),
    penalty=st.sampled_from([0.0, 1e-3, 1.0, 100.0]),
    widest=st.sampled_from([1e-6, 1e-3, 0.5, 1.0]),
)
def test_finds_what_an_exhaustive_search_finds(seed, n_features, node_h, slope, penalty, widest):
    """widest: the largest share of the node's rows that a feature may have.

    The first search makes the bounds that later ones, on what is left of the node, use.
    """
    rng = np.random.default_rng(seed)
    table = Table(rng, n_features, node_h, slope, penalty, widest)
    for _ in range(3):
        expected = table.best_of_all()
        found = table.search()
        assert (found.kind == CATEGORICAL) == (expected is not None)
        if expected is not None:
            assert found.feature == expected
        where = np.unique(rng.integers(n_features, size=rng.integers(1, 30)))
        table.take(where, 0.9 * rng.random(len(where)) ** 2)


def test_bounds_pass_over_most_blocks_of_rare_features():
    table = Table(np.random.default_rng(0), MIN_FEATURES, 1e5, 0.0, 1.0, 1e-3)
    table.g[0], table.h[0], table.n[0] = 200 * SCALE, 300 * SCALE, 300
    assert table.search().feature == 0
    node_g, node_h = table.node[0] / SCALE, table.node[1] / SCALE + 2.0
    passed = [not may_reach(own, node_g, node_h, 100.0) for own in table.bounds]
    assert sum(passed) == len(passed) - 1
