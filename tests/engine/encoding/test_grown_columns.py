"""Columns that grow: what was known keeps its ids, slots and bins; what is new comes behind."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.grown_columns import grown_columns
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.encoding.missing_methods import METHODS
from tests.engine.encoding.naive_encoding import naive_encode
from tests.engine.feature_items import ITEMS, PLAIN_ITEMS, encoded_names, fit, names_of, training


def grown(known: Columns, X, **settings) -> Columns:
    found, *_ = fit_columns(X, missing=known.missing, **settings)
    return grown_columns(known, found)


def known_ids(columns: Columns, n: int, X) -> list[list[int]]:
    """The ids below n of each row of X."""
    _, ids, _ = columns.encode(X)
    return [sorted(i for i in row if 0 <= i < n) for row in ids.tolist()]


@given(training(ITEMS), training(ITEMS), st.sampled_from(METHODS))
def test_what_was_known_is_encoded_as_before(old, new, missing):
    known, *_ = fit_columns(old, missing=missing)
    more = grown(known, new)
    n = len(known.feature_names)
    assert more.feature_names[:n] == known.feature_names
    assert more.column_names[: len(known.column_names)] == known.column_names
    for X in (old, new):
        assert known_ids(more, n, X) == known_ids(known, n, X)
        before, after = known.encode(X)[2], more.encode(X)[2]
        np.testing.assert_array_equal(after[:, : before.shape[1]], before)


@given(training(ITEMS), training(ITEMS), st.sampled_from(METHODS))
def test_grown_columns_encode_like_their_naive_twin_and_can_be_stored(old, new, missing):
    more = grown(fit_columns(old, missing=missing)[0], new)
    again = Columns.from_state(more.to_state())
    for X in (old, new):
        for ours, naive in zip(again.encode(X), naive_encode(more, X), strict=True):
            np.testing.assert_array_equal(ours, naive)
    assert (np.diff(more.counts) <= 0).all()


@given(training(PLAIN_ITEMS), training(PLAIN_ITEMS))
def test_rows_have_the_features_that_either_columns_know(old, new):
    known, found = fit_columns(old)[0], fit_columns(new)[0]
    more = grown_columns(known, found)
    for X in (old, new):
        names = [names_of(columns, columns.encode(X)[1]) for columns in (known, found, more)]
        for one, other, both in zip(*names, strict=True):
            assert set(both) == set(one) | set(other)


def test_new_words_get_the_slot_of_their_key_and_new_keys_slots_of_their_own() -> None:
    known, *_ = fit({"w": "a", "bag": ["x"]}, {"w": "b", "bag": ["y"]})
    more = grown(known, [[{"w": "c", "bag": ["z"], "tag": "N"}, {"w": "a"}]])
    assert more.feature_names[:4] == known.feature_names
    assert set(more.feature_names[4:]) == {"w=c", "bag:z", "tag=N"}
    assert known.slot_keys == ["w"]
    assert more.slot_keys == ["w", "tag"]
    assert encoded_names(more, {"w": "c", "bag": ["x", "z"], "tag": "N"}) == [
        ["bag:x", "bag:z", "tag=N", "w=c"]
    ]


def test_numbers_keep_their_bins_and_new_numeric_columns_come_behind() -> None:
    known, *_ = fit({"size": 1.5}, {"size": 2.5}, {"size": 9.0})
    more = grown(known, [[{"size": 100.0, "age": 3.5}, {"size": -4.5, "age": 7.5}]])
    assert more.numeric_names == ["size", "age"]
    np.testing.assert_array_equal(more.bin_edges[0], known.bin_edges[0])
    numeric = more.encode([[{"size": 100.0, "age": 7.5}]])[2]
    assert numeric.tolist() == [[3, 2]]


def test_a_key_that_was_numeric_or_a_flag_stays_so() -> None:
    known, *_ = fit({"n": 2.5, "flag": True}, {"n": 3.5, "flag": True})
    more = grown(known, [[{"n": True, "flag": 2.5}, {"n": True, "flag": 0.5}]])
    assert more is known


def test_nothing_new_changes_nothing() -> None:
    known, *_ = fit({"w": "a"}, {"w": "b"})
    assert grown(known, [[{"w": "b"}]]) is known
    assert grown(known, [[{"w": "c"}]], min_count=2) is known


def test_counts_tell_trees_of_all_features_that_may_have_enough_rows() -> None:
    known, *_ = fit({"w": "a"}, {"w": "a"}, {"w": "b"})
    more = grown(known, [[{"w": "b"}] * 4 + [{"w": "c"}] * 3])
    assert more.feature_names == ["w=a", "w=b", "w=c"]
    assert more.counts.tolist() == [4, 4, 3]
