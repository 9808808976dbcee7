"""The quick search for the best feature, against looking at each of them in double precision."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.splitting import (
    CATEGORICAL,
    SplitRule,
    best_categorical,
    no_split,
    split_gain,
)

SCALE = 2.0**20


@settings(deadline=None, max_examples=300)
@given(
    seed=st.integers(0, 10**6),
    n_features=st.integers(1, 400),
    node_h=st.sampled_from([1.0, 30.0, 1e4, 1e7, 1e11]),
    slope=st.sampled_from([0.0, 1e-3, 1.0, 30.0]),
    penalty=st.sampled_from([0.0, 1e-3, 1.0, 100.0]),
    widest=st.sampled_from([1e-6, 1e-3, 0.5, 1.0]),
)
def test_finds_what_an_exhaustive_search_finds(seed, n_features, node_h, slope, penalty, widest):
    """widest: the largest share of the node's rows that a feature may have."""
    rng = np.random.default_rng(seed)
    share = widest * rng.random(n_features) ** rng.integers(1, 6)
    h = np.rint(node_h * share * SCALE)
    g = np.rint(slope * h + rng.normal(size=n_features) * np.sqrt(node_h * share) * SCALE)
    n = np.floor(1000 * share) + rng.integers(0, 4, n_features)
    node = np.array([np.rint(slope * node_h * SCALE), np.rint(node_h * SCALE), 1000.0, 0.0])
    rule = SplitRule(1 / SCALE, 1 / SCALE, penalty, 3, 1.0, np.uint64(0), 1.0)
    features = np.arange(n_features, dtype=np.int32)
    quick = np.stack([g / SCALE, h / SCALE + penalty]).astype(np.float32)
    found = best_categorical(
        node,
        features,
        np.stack([g, h, n]),
        quick,
        np.zeros(n_features, np.int32),
        rule,
        np.uint64(0),
        no_split(1e-9),
    )
    node_g, node_h_ = node[0] / SCALE, node[1] / SCALE
    with np.errstate(divide="ignore", invalid="ignore"):
        unsplit = node_g * node_g / (node_h_ + penalty)
        gains = np.array(
            [split_gain(node_g, node_h_, g[i] / SCALE, h[i] / SCALE, penalty, unsplit)
             for i in range(n_features)]
        )  # fmt: skip
    gains[(n < 3) | (1000 - n < 3) | ~(gains > 1e-9)] = -np.inf
    if np.isneginf(gains).all():
        assert found.kind != CATEGORICAL
    else:
        assert found.kind == CATEGORICAL
        assert found.feature == gains.argmax()
        assert found.gain == gains.max()
