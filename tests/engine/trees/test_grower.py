from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.sampling import chosen
from spacy_treecrf.engine.trees.contexts import count_lags, list_contexts
from spacy_treecrf.engine.trees.entries import collect
from spacy_treecrf.engine.trees.grower import grow_tree
from spacy_treecrf.engine.trees.splitting import LEAF
from spacy_treecrf.engine.trees.tree_input import TreeInput, TreeLimits
from tests.engine.naive_grower import grow_naively

NO_HESSIAN = np.zeros((0, 0), np.float32)
SEED = np.uint64(1)


def random_problem(seed, n_rows=40, n_labels=2, order=0, n_numeric=0, newton=True):
    """Rows of three categorical columns (the last one a bag of two), in sequences of five."""
    rng = np.random.default_rng(seed)
    feature_ids = np.stack(
        [
            rng.integers(-1, 3, n_rows),
            rng.integers(3, 6, n_rows),
            rng.integers(6, 8, n_rows),
            rng.integers(8, 10, n_rows),
        ],
        axis=1,
    ).astype(np.int32)
    slot_range = np.array([[0, 1]] * 3 + [[1, 2]] * 3 + [[2, 2**31 - 1]] * 4, np.int32)
    contexts = list_contexts(n_labels, order)
    lags = count_lags(np.arange(0, n_rows + 1, 5), order)
    data = TreeInput(
        feature_ids,
        np.ascontiguousarray(feature_ids.T),
        rng.integers(0, 6, (n_rows, n_numeric)).astype(np.uint8),
        10,
        slot_range,
        np.array([0] * 3 + [1] * 3 + [2] * 4, np.int32),
        3,
        lags,
        contexts.first,
        contexts.labels,
        n_labels,
    )
    valid = np.arange(n_labels**order)[None] < n_labels ** lags.astype(int)[:, None]
    pair_g = np.where(valid, rng.normal(size=valid.shape), 0.0).astype(np.float32)
    pair_h = np.where(valid, rng.uniform(0.1, 1.0, valid.shape), 0.0).astype(np.float32)
    return data, pair_g, pair_h if newton else NO_HESSIAN


def assert_same_tree(tree, nodes):
    assert tree.kind.tolist() == [n["kind"] for n in nodes]
    inner = [i for i, n in enumerate(nodes) if n["kind"] != LEAF]
    for field in ("feature", "threshold", "left", "right"):
        assert getattr(tree, field)[inner].tolist() == [nodes[i][field] for i in inner], field
    np.testing.assert_allclose(tree.value, [n["value"] for n in nodes], rtol=1e-12)
    np.testing.assert_allclose(tree.rows, [float(n["sums"][2]) for n in nodes], rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    order=st.integers(0, 2),
    n_labels=st.integers(1, 3),
    n_numeric=st.integers(0, 2),
    newton=st.booleans(),
    leaves=st.integers(1, 9),
    depth=st.sampled_from([0, 2]),
    min_rows=st.integers(1, 4),
    trim=st.sampled_from([0.0, 0.1]),
    penalty=st.sampled_from([0.5, 5.0]),
)
def test_grower_equals_naive_grower_on_the_expanded_table(
    seed, order, n_labels, n_numeric, newton, leaves, depth, min_rows, trim, penalty
):
    data, pair_g, pair_h = random_problem(seed, 40, n_labels, order, n_numeric, newton)
    entries = collect(pair_g, pair_h, data.lags, n_labels, trim, 1.0, SEED)
    limits = TreeLimits(leaves, depth, min_rows, penalty, 1e-9, 1.0, 1.0)
    assert_same_tree(grow_tree(data, entries, limits, SEED), grow_naively(data, entries, limits))


def test_trimming_drops_at_most_its_share_and_keeps_the_totals():
    data, pair_g, pair_h = random_problem(3, n_rows=20000)
    everything = collect(pair_g, pair_h, data.lags, 2, 0.0, 1.0, SEED)
    trimmed = collect(pair_g, pair_h, data.lags, 2, 0.2, 1.0, SEED)
    dropped = np.setdiff1d(everything.rows, trimmed.rows)
    assert len(dropped) > 0
    assert np.abs(pair_g[dropped]).sum() <= 0.2 * np.abs(pair_g).sum()
    assert np.abs(pair_g[dropped]).max() <= np.abs(pair_g[trimmed.rows]).min()
    np.testing.assert_array_equal(trimmed.totals, everything.totals)


def test_row_subsample_draws_its_share_anew_for_each_seed():
    data, pair_g, pair_h = random_problem(4, n_rows=2000)
    draws = [
        collect(pair_g, pair_h, data.lags, 2, 0.0, 0.3, np.uint64(seed)).rows for seed in (1, 1, 2)
    ]
    assert 500 < len(draws[0]) < 700
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


@pytest.mark.parametrize("shares", [(0.25, 1.0), (1.0, 0.25)])
def test_column_subsamples_restrict_the_columns_tested(shares):
    data, pair_g, pair_h = random_problem(5, n_rows=300, n_numeric=1)
    entries = collect(pair_g, pair_h, data.lags, 2, 0.0, 1.0, SEED)
    limits = TreeLimits(2, 0, 1, 1.0, 1e-9, *shares)
    roots = {
        (int(tree.kind[0]), int(tree.feature[0]))
        for tree in (grow_tree(data, entries, limits, np.uint64(s)) for s in range(50))
    }
    assert len(roots) > 2


def test_column_subsample_per_tree_holds_in_the_whole_tree():
    data, pair_g, pair_h = random_problem(5, n_rows=300)
    entries = collect(pair_g, pair_h, data.lags, 2, 0.0, 1.0, SEED)
    limits = TreeLimits(8, 0, 1, 1.0, 1e-9, 0.3, 1.0)
    for seed in range(20):
        tree = grow_tree(data, entries, limits, np.uint64(seed))
        tested = tree.feature[tree.kind != LEAF]
        allowed = [chosen(np.uint64(seed), column, 0.3) for column in range(3)]
        assert all(allowed[column] for column in data.column_of[tested])


@pytest.mark.parametrize("n_rows", [0, 1])
def test_too_few_rows_give_a_single_leaf(n_rows):
    data, pair_g, pair_h = random_problem(6, n_rows=max(n_rows, 1))
    entries = collect(pair_g[:n_rows], pair_h[:n_rows], data.lags, 2, 0.0, 1.0, SEED)
    tree = grow_tree(data, entries, TreeLimits(8, 0, 1, 1.0, 1e-9, 1.0, 1.0), SEED)
    assert tree.kind.tolist() == [LEAF]
    assert np.isfinite(tree.value).all()
