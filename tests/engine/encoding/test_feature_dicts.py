from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.engine.encoding import feature_dicts
from spacy_treecrf.engine.encoding.columns import PAST_ALL_SLOTS
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.sequences import ABSENT
from tests.engine.feature_items import (
    INF,
    ITEMS,
    NAN,
    PLAIN_ITEMS,
    assert_same_columns,
    encoded_names,
    fit,
    naive_names,
    names_of,
    training,
)


@given(training(ITEMS), st.integers(1, 3))
def test_rows_hold_exactly_the_names_a_naive_reading_gives(X, min_count):
    columns, _, feature_ids, _ = fit_columns(X, min_count=min_count)
    expected = [naive_names(item, columns.numeric_names) for items in X for item in items]
    counts = Counter(name for names in expected for name in names)
    kept = {name: n for name, n in counts.items() if n >= min_count}
    assert dict(zip(columns.feature_names, columns.counts.tolist(), strict=True)) == kept
    assert names_of(columns, feature_ids) == [sorted(names & kept.keys()) for names in expected]


@given(training(PLAIN_ITEMS))
def test_names_are_those_of_python_crfsuite_but_for_the_equals_sign(X):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    columns, offsets, feature_ids, _ = fit_columns(X)
    for s, items in enumerate(X):
        ours = names_of(columns, feature_ids[offsets[s] : offsets[s + 1]])
        theirs = pycrfsuite.ItemSequence(items).items()
        for our_names, their_values in zip(ours, theirs, strict=True):
            # its manual says key=value, its code joins key:value
            active = {name for name, value in their_values.items() if value}
            assert {name.replace("=", ":") for name in our_names} == active


@pytest.mark.parametrize("block_rows", [1, 2, 7])
@given(training(ITEMS))
def test_arrays_do_not_depend_on_the_block_size(block_rows, X):
    expected = fit_columns(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feature_dicts, "BLOCK_ROWS", block_rows)
        blocked = fit_columns(X)
    assert_same_columns(expected[0], blocked[0])
    for array, other in zip(expected[1:], blocked[1:], strict=True):
        np.testing.assert_array_equal(array, other)


def test_offsets_are_the_rows_of_sequences():
    _, offsets, _, _ = fit_columns([[{}, {"a": "b"}], ({},), iter([{}, {}, {}])])
    assert offsets.tolist() == [0, 2, 3, 6]
    assert offsets.dtype == np.int64


@pytest.mark.parametrize("true", [True, np.True_])
def test_true_is_an_indicator_and_false_is_absent(true):
    columns, feature_ids, _ = fit({"up": true}, {"up": not true}, {})
    assert columns.feature_names == ["up"]
    assert columns.slot_keys == []
    assert columns.slot_range.tolist() == [[0, PAST_ALL_SLOTS]]
    assert feature_ids.tolist() == [[0], [ABSENT], [ABSENT]]


def test_a_key_that_is_only_ever_1_is_an_indicator():
    columns, feature_ids, _ = fit({"w=the": 1}, {"w=dog": 1.0}, {"w=the": np.float32(1)}, {})
    assert columns.feature_names == ["w=the", "w=dog"]
    assert columns.column_names == ["w=the", "w=dog"]
    assert columns.numeric_names == []
    assert feature_ids.tolist() == [[0], [1], [0], [ABSENT]]
    rows = [{"w=the": value} for value in (1, 0.5, -3, 0, 0.0, NAN, True, False, None)]
    active = [bool(names) for names in encoded_names(columns, *rows)]
    assert active == [True, True, True, False, False, False, True, False, False]


@pytest.mark.parametrize("other", [0, 2, 0.5, NAN, np.float64(3), np.int8(-1)])
def test_a_key_with_another_number_is_numeric(other):
    columns, feature_ids, numeric = fit({"h": 1}, {"h": other}, {"h": 1}, {}, {"h": None})
    assert columns.numeric_names == ["h"]
    assert columns.feature_names == []
    assert feature_ids.shape == (5, 0)
    assert numeric[0, 0] == numeric[2, 0] > 0
    assert numeric[1, 0] != numeric[0, 0]
    assert (numeric[1, 0] == 0) == (other != other)
    assert numeric[3:, 0].tolist() == [0, 0]


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_a_list_is_a_bag_of_indicators_in_shared_slots(kind):
    columns, feature_ids, _ = fit(
        {"w": "x", "s": kind(["b", "a"])}, {"s": kind(["a", "a"])}, {"s": kind([])}
    )
    assert columns.feature_names[0] == "s:a"
    assert set(columns.feature_names) == {"s:a", "s:b", "w=x"}
    assert columns.slot_keys == ["w"]
    assert columns.n_shared_slots == 2
    assert columns.slot_range[0].tolist() == [1, PAST_ALL_SLOTS]
    assert names_of(columns, feature_ids) == [["s:a", "s:b", "w=x"], ["s:a"], []]
    assert columns.column_names == ["w", "s"]
    assert columns.column_of[0] == 1


def test_sets_are_read_in_sorted_order():
    columns, _, _ = fit({"s": set("hgfedcba")}, set("nmlkji"))
    assert columns.feature_names == [*(f"s:{c}" for c in "abcdefgh"), *"ijklmn"]


def test_a_list_item_is_indicators_of_one_column():
    columns, feature_ids, _ = fit(["w=the", "up"], ["w=the"], [], ("up",), {"w=dog"})
    assert columns.feature_names == ["w=the", "up", "w=dog"]
    assert columns.column_of.tolist() == [0, 0, 0]
    assert feature_ids.tolist() == [[0, 1], [0, ABSENT], [ABSENT] * 2, [1, ABSENT], [2, ABSENT]]


def test_nested_dicts_join_keys_with_colons():
    item = {"a": {"b": "c", "d": True, "e": 1, "f": ["g"], "h": {"i": "j", "k": 2.5}, "l": None}}
    columns, feature_ids, numeric = fit(item)
    assert names_of(columns, feature_ids) == [["a:b=c", "a:d", "a:e", "a:f:g", "a:h:i=j"]]
    assert columns.slot_keys == ["a:b", "a:h:i"]
    assert columns.numeric_names == ["a:h:k"]
    assert numeric.tolist() == [[1]]
    assert set(columns.column_names) == {"a:b", "a:h:i", "a:f", "a:d", "a:e"}


@pytest.mark.parametrize(
    "item",
    [{"a": "b"}, {"a=b": True}, {"a=b": 1}, {"a=b": 5}, ["a=b"], {"a=b"}, {"a": np.str_("b")}],
)
@pytest.mark.parametrize("learned", [{"a": "b"}, {"a=b": True}, {"a=b": 1}, ["a=b"]])
def test_an_attribute_is_its_name_however_it_is_spelled(learned, item):
    columns, _, _ = fit(learned)
    assert columns.feature_names == ["a=b"]
    assert encoded_names(columns, item) == [["a=b"]]


def test_subclasses_of_str_are_strings():
    columns, _, _ = fit({np.str_("w"): np.str_("a"), "s": [np.str_("x")]}, [np.str_("y")])
    assert [type(name) for name in columns.feature_names + columns.slot_keys] == [str] * 4
    assert encoded_names(columns, {"w": "a", "s": ["x"]}, ["y"]) == [["s:x", "w=a"], ["y"]]


def nested(kind):
    """Dicts in dicts, or lists in lists, deeper than the stack."""
    item = kind()
    for _ in range(100_000):
        item = {"a": item} if kind is dict else [item]
    return item


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([[{}], [{}, {"h": INF}]], ValueError, r"treecrf: X\[1\]\[1\]\['h'\] is inf; "),
        ([[{"h": -INF}]], ValueError, r"X\[0\]\[0\]\['h'\] is -inf; "),
        ([[{"h": np.float32(INF)}]], ValueError, r"X\[0\]\[0\]\['h'\] is inf; "),
        ([[{"a": {"h": INF}}]], ValueError, r"X\[0\]\[0\]\['a:h'\] is inf; "),
        ([[{"h": 10**400}]], ValueError, r"X\[0\]\[0\]\['h'\] is too large"),
        ([[{"h": b"x"}]], TypeError, r"X\[0\]\[0\]\['h'\] is of type bytes; a value is"),
        ([[{"h": 1j}]], TypeError, r"X\[0\]\[0\]\['h'\] is of type complex"),
        ([[{"h": np.zeros(2)}]], TypeError, r"X\[0\]\[0\]\['h'\] is of type ndarray"),
        ([[{"h": ["a", 3]}]], TypeError, r"X\[0\]\[0\]\['h'\] holds 3 of type int; only str"),
        ([[{"h": {3}}]], TypeError, r"X\[0\]\[0\]\['h'\] holds 3 of type int"),
        ([[{"h": [["a"]]}]], TypeError, r"X\[0\]\[0\]\['h'\] holds \['a'\] of type list"),
        ([[["a", None]]], TypeError, r"X\[0\]\[0\] holds None of type NoneType"),
        ([[{1: "a"}]], TypeError, r"X\[0\]\[0\] has the key 1 of type int; keys must be str"),
        ([[{None: False}]], TypeError, r"X\[0\]\[0\] has the key None"),
        ([[{b"a": []}]], TypeError, r"X\[0\]\[0\] has the key b'a'"),
        ([[{"a": {1: "a"}}]], TypeError, r"X\[0\]\[0\] has the key 1 of type int"),
        ([[{}, "word"]], TypeError, r"X\[0\]\[1\] is of type str; an item is"),
        ([[None]], TypeError, r"X\[0\]\[0\] is of type NoneType; an item is"),
        ([[{}], "words"], TypeError, r"X\[1\] is of type str; X is a list of sequences"),
        ([{"w": "a"}], TypeError, r"X\[0\] is of type dict; X is a list of sequences"),
        ([3], TypeError, r"X\[0\] is of type int"),
        ("words", TypeError, r"X is of type str; X is a list of sequences"),
        ({"w": "a"}, TypeError, r"X is of type dict"),
        (None, TypeError, r"X is of type NoneType"),
        (np.array({"w": "a"}), TypeError, r"X is of type ndarray; X is a list of sequences"),
        ([[{}], np.array(3)], TypeError, r"X\[1\] is of type ndarray; X is a list of sequences"),
        ([[{}, nested(dict)]], ValueError, r"X\[0\]\[1\] is nested too deep; "),
        ([[{}, nested(list)]], ValueError, r"X\[0\]\[1\] is nested too deep; "),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(X, error, message):
    with pytest.raises(error, match="^treecrf: .*" + message.removeprefix("treecrf: ")):
        fit_columns(X)
    columns, _, _ = fit({"h": 2.5, "w": "a"})
    with pytest.raises(error, match=message):
        columns.encode(X)
    named = message.replace("X", "X_dev")
    with pytest.raises(error, match=named):
        columns.encode(X, name="X_dev")


def test_infinity_is_refused_for_an_indicator_too():
    columns, _, _ = fit({"up": True})
    with pytest.raises(ValueError, match=r"X\[0\]\[0\]\['up'\] is inf"):
        columns.encode([[{"up": INF}]])
