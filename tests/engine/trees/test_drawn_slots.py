"""Trees that read the slots of drawn columns alone, beside trees that read all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.sampling import chosen
from spacy_treecrf.engine.trees import drawn_slots
from spacy_treecrf.engine.trees.drawn_slots import grow_on_drawn_columns, with_drawn_slots
from spacy_treecrf.engine.trees.entries import collect
from spacy_treecrf.engine.trees.grower import grow_tree
from spacy_treecrf.engine.trees.tree_input import Entries, TreeInput, TreeLimits
from tests.engine.trees.test_grower import random_problem

N_PLAIN, N_VALUES = 12, 4


def wide_problem(seed: int, order: int, n_labels: int = 2) -> tuple[TreeInput, Entries]:
    """Rows of many columns: plain ones first, then a bag in the last three slots."""
    rng = np.random.default_rng(seed)
    data, pair_g, pair_h = random_problem(seed, 60, n_labels, order, n_numeric=1)
    n_rows = len(data.lags)
    plain = rng.integers(-1, N_VALUES, (n_rows, N_PLAIN))
    plain[plain >= 0] += (np.arange(N_PLAIN) * N_VALUES)[None].repeat(n_rows, 0)[plain >= 0]
    first_of_bag = N_PLAIN * N_VALUES
    bag = first_of_bag + np.sort(rng.integers(0, 5, (n_rows, 3)), axis=1)
    bag[:, 1:][bag[:, 1:] == bag[:, :-1]] = -1
    feature_ids = np.concatenate([plain, bag], axis=1).astype(np.int32)
    n_features = first_of_bag + 5
    column_of = np.minimum(np.arange(n_features) // N_VALUES, N_PLAIN).astype(np.int32)
    slot_range = np.stack([column_of, column_of + 1], axis=1).astype(np.int32)
    slot_range[first_of_bag:, 1] = 2**31 - 1
    data = data._replace(
        feature_ids=feature_ids,
        columns=np.ascontiguousarray(feature_ids.T),
        n_features=n_features,
        slot_range=slot_range,
        column_of=column_of,
        n_columns=N_PLAIN + 1,
    )
    return data, collect(pair_g, pair_h, data.lags, n_labels, 0.0, 0.7, np.uint64(seed))


def copied(entries: Entries) -> Entries:
    """The same entries in arrays of their own: growing uses them up."""
    return entries._replace(rows=entries.rows.copy(), sums=entries.sums.copy())


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    order=st.integers(0, 2),
    shares=st.tuples(st.sampled_from([0.05, 0.2, 0.5, 0.9]), st.sampled_from([0.5, 1.0])),
    leaves=st.integers(1, 12),
)
def test_trees_are_those_of_all_slots(
    seed: int, order: int, shares: tuple[float, float], leaves: int
) -> None:
    data, entries = wide_problem(seed, order)
    limits = TreeLimits(leaves, 0, 1, 1.0, 1e-9, *shares)
    tree_seed = np.uint64(seed + 1)
    found = grow_on_drawn_columns(data, copied(entries), limits, tree_seed)
    expected = grow_tree(data, copied(entries), limits, tree_seed)
    for name in expected._fields:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


@pytest.mark.parametrize("seed", range(20))
def test_slots_of_other_columns_are_left_out(seed: int) -> None:
    data, entries = wide_problem(3, order=1)
    tree_seed = np.uint64(seed)
    drawn = [c for c in range(N_PLAIN + 1) if chosen(tree_seed, c, 0.3)]
    slots = [c for c in drawn if c < N_PLAIN]
    if N_PLAIN in drawn:
        slots += range(N_PLAIN, N_PLAIN + 3)
    found = with_drawn_slots(data, entries, 0.3, tree_seed)
    if len(slots) > (1.0 - drawn_slots.LEAST_LEFT_OUT) * data.feature_ids.shape[1]:
        assert found is data
        return
    rows = entries.rows
    np.testing.assert_array_equal(found.feature_ids[rows], data.feature_ids[rows][:, slots])


def test_a_copy_is_made_only_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    data, entries = wide_problem(3, order=1)
    seed = np.uint64(1)
    assert with_drawn_slots(data, entries, 1.0, seed) is data
    assert with_drawn_slots(data, entries, 0.3, seed) is not data
    more = np.concatenate([data.feature_ids, data.feature_ids[:1]])
    wide = data._replace(feature_ids=more)
    assert with_drawn_slots(wide, entries, 0.3, seed) is wide
    few = entries._replace(rows=entries.rows[:3])
    assert with_drawn_slots(data, few, 0.3, seed) is not data
    monkeypatch.setattr(drawn_slots, "MOST_BYTES", 100)
    assert with_drawn_slots(data, few, 0.3, seed) is data


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.2, 0.5, 0.8]))
def test_all_slots_of_drawn_columns_are_found(seed: int, share: float) -> None:
    """Features of a column may be in one slot each, or in any from some slot on."""
    rng = np.random.default_rng(seed)
    n_features, n_columns, n_slots = 30, 6, 9
    column_of = rng.integers(0, n_columns, n_features).astype(np.int32)
    first = rng.integers(0, n_slots, n_features)
    last = np.where(rng.random(n_features) < 0.5, first + 1, 2**31 - 1)
    slot_range = np.stack([first, last], axis=1).astype(np.int32)
    counts = n_features, n_columns, n_slots
    found = drawn_slots.drawn_slots(slot_range, column_of, *counts, share, np.uint64(seed))
    expected: set[int] = set()
    for feature in range(n_features):
        if chosen(np.uint64(seed), column_of[feature], share):
            expected.update(range(first[feature], min(last[feature], n_slots)))
    assert found.tolist() == sorted(expected)
