import copy
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.engine import columns as module
from spacy_treecrf.engine.columns import PAST_ALL_SLOTS, Columns, fit_columns
from spacy_treecrf.engine.sequences import ABSENT, MISSING

NAN, INF = math.nan, math.inf


def fit(*items, **settings):
    """Columns of one sequence with these items, its codes and its numeric bins."""
    columns, _, codes, numeric = fit_columns([list(items)], **settings)
    return columns, codes, numeric


def names_of(columns, codes):
    """The names of the features of each row, sorted; a feature twice in a row shows."""
    return [sorted(columns.feature_names[c] for c in row if c >= 0) for row in codes.tolist()]


def encoded_names(columns, *items):
    return names_of(columns, columns.encode([list(items)])[1])


def naive_names(item, numeric_names=(), prefix=""):
    """The names of the indicators of an item, as python-crfsuite spells them."""
    if not isinstance(item, dict):
        return {prefix + name for name in item}
    names = set()
    for key, value in item.items():
        path = prefix + key
        if isinstance(value, str):
            names.add(f"{path}={value}")
        elif isinstance(value, (dict, list, set)):
            names |= naive_names(value, numeric_names, f"{path}:")
        elif value is True or (value == 1 and value is not False and path not in numeric_names):
            names.add(path)
    return names


def assert_same_columns(first, second):
    for name, value in first.to_state().items():
        np.testing.assert_array_equal(value, second.to_state()[name])


# few letters, so that "a" with value "b", flag "a=b" and nested "a:b" meet
KEYS = st.sampled_from(["a", "b", "a=b", "a:b", "b:a=b", ""])
STRINGS = st.sampled_from(["a", "b", "b=b", "a=b", "b:a", ""])
NUMBERS = st.sampled_from([1, 1.0, np.float32(1), 0, -2.5, 3, NAN, np.int64(7), 1e308, 5e-324])
SIMPLE = st.one_of(
    STRINGS, STRINGS, st.booleans(), st.none(), st.lists(STRINGS, max_size=3), st.sets(STRINGS)
)
VALUES = st.recursive(
    SIMPLE | NUMBERS, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=5
)
ITEMS = st.dictionaries(KEYS, VALUES, max_size=5) | st.lists(STRINGS | KEYS, max_size=4)
LETTERS = st.sampled_from(["u", "v", "w"])
PLAIN_VALUES = st.recursive(
    LETTERS | st.booleans() | st.lists(LETTERS) | st.sets(LETTERS),
    lambda inner: st.dictionaries(LETTERS, inner, max_size=3),
    max_leaves=5,
)
PLAIN_ITEMS = st.dictionaries(LETTERS, PLAIN_VALUES) | st.lists(LETTERS)


def training(items):
    return st.lists(st.lists(items, min_size=1, max_size=5), min_size=1, max_size=5)


@given(training(ITEMS), st.integers(1, 3), st.sampled_from([2, 3, 255]))
def test_encoding_the_training_data_gives_the_arrays_of_fit(X, min_count, max_bins):
    columns, offsets, codes, numeric = fit_columns(X, min_count=min_count, max_bins=max_bins)
    for same in (columns, Columns.from_state(columns.to_state())):
        again = same.encode(X)
        for array, expected in zip(again, (offsets, codes, numeric), strict=True):
            assert array.dtype == expected.dtype
            np.testing.assert_array_equal(array, expected)


@given(training(ITEMS), st.integers(1, 3))
def test_rows_hold_exactly_the_names_a_naive_reading_gives(X, min_count):
    columns, _, codes, _ = fit_columns(X, min_count=min_count)
    expected = [naive_names(item, columns.numeric_names) for items in X for item in items]
    counts = Counter(name for names in expected for name in names)
    kept = {name: n for name, n in counts.items() if n >= min_count}
    assert dict(zip(columns.feature_names, columns.counts.tolist(), strict=True)) == kept
    assert names_of(columns, codes) == [sorted(names & kept.keys()) for names in expected]


@given(training(PLAIN_ITEMS))
def test_names_are_those_of_python_crfsuite_but_for_the_equals_sign(X):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    columns, offsets, codes, _ = fit_columns(X)
    for s, items in enumerate(X):
        ours = names_of(columns, codes[offsets[s] : offsets[s + 1]])
        theirs = pycrfsuite.ItemSequence(items).items()
        for our_names, their_values in zip(ours, theirs, strict=True):
            # its manual says key=value, its code joins key:value
            active = {name for name, value in their_values.items() if value}
            assert {name.replace("=", ":") for name in our_names} == active


@given(training(ITEMS))
def test_features_stay_in_their_slots_and_shared_slots_are_sorted(X):
    columns, _, codes, _ = fit_columns(X)
    n_keys = len(columns.slot_keys)
    assert codes.shape[1] == n_keys + columns.n_shared_slots
    for row in codes.tolist():
        for slot, feature in enumerate(row):
            if feature >= 0:
                first, past = columns.slot_range[feature]
                assert first <= slot < past
        shared = [feature for feature in row[n_keys:] if feature != ABSENT]
        assert shared == sorted(set(shared))
        assert row[n_keys : n_keys + len(shared)] == shared
    if columns.n_shared_slots:
        assert (codes[:, -1] != ABSENT).any()


@given(training(ITEMS))
def test_counts_fall_and_ties_keep_the_order_of_appearance(X):
    columns, *_ = fit_columns(X)
    assert (np.diff(columns.counts) <= 0).all()
    first_row = {}
    for row, item in enumerate(item for items in X for item in items):
        for name in naive_names(item, columns.numeric_names):
            first_row.setdefault(name, row)
    rows = np.array([first_row[name] for name in columns.feature_names])
    tied = columns.counts[1:] == columns.counts[:-1]
    assert (np.diff(rows)[tied] >= 0).all() if len(rows) else True


@given(training(ITEMS), training(ITEMS))
def test_encoding_other_data_gives_only_what_was_learned(X, others):
    columns, *_ = fit_columns(X)
    offsets, codes, numeric = columns.encode(others)
    items = [item for items in others for item in items]
    assert offsets[-1] == len(codes) == len(numeric) == len(items)
    known = set(columns.feature_names)
    for item, row, names in zip(items, codes, names_of(columns, codes), strict=True):
        assert len(set(names)) == len(names)
        # a number other than 1 makes an indicator active too
        assert set(names) <= known & (naive_names(item) | _numbered(item))
        for name in naive_names(item, columns.numeric_names) & known - set(names):
            slot = columns.slot_range[columns.feature_names.index(name), 0]
            assert slot < len(columns.slot_keys)
            assert row[slot] >= 0  # another one took it


def _numbered(item, prefix=""):
    if not isinstance(item, dict):
        return set()
    names = set()
    for key, value in item.items():
        names |= _numbered(value, f"{prefix}{key}:") if isinstance(value, dict) else {prefix + key}
    return names


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(FINITE, min_size=1, max_size=60), st.lists(FINITE), st.sampled_from([2, 4, 255]))
def test_bins_rise_with_the_value(values, others, max_bins):
    values = [*values, 0.5]  # not all are 1
    columns, _, numeric = fit(*({"x": v} for v in values), max_bins=max_bins)
    (edges,) = columns.bin_edges
    assert len(edges) <= max_bins - 1
    assert np.isfinite(edges).all()
    assert (np.diff(edges) > 0).all()
    bins = numeric[:, 0]
    assert bins.min() == 1
    assert set(bins.tolist()) == set(range(1, len(edges) + 2))
    ordered = np.sort(np.array(values + others))
    encoded = columns.encode([[{"x": float(v)} for v in ordered]])[2][:, 0].astype(int)
    assert (np.diff(encoded) >= 0).all()
    np.testing.assert_array_equal(encoded, 1 + np.searchsorted(edges, ordered, side="left"))
    if len(set(values)) <= max_bins:
        assert len(edges) == len(set(values)) - 1


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.sampled_from([2, 5, 255]))
def test_bin_values_are_standardised_means_of_the_bins(values, max_bins):
    values = np.array([*values, 0.5])
    columns, _, numeric = fit(*({"x": float(v)} for v in values), max_bins=max_bins)
    bins = numeric[:, 0]
    standardised = (values - values.mean()) / (values.std() or 1.0)
    assert columns.bin_values.shape == (1, 256)
    assert columns.bin_values[0, 0] == 0
    for b in range(1, 256):
        inside = standardised[bins == b]
        expected = inside.mean() if len(inside) else 0.0
        assert columns.bin_values[0, b] == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert columns.bin_values[0, bins].mean() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("block_rows", [1, 2, 7])
@given(training(ITEMS))
def test_arrays_do_not_depend_on_the_block_size(block_rows, X):
    expected = fit_columns(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_ROWS", block_rows)
        blocked = fit_columns(X)
    assert_same_columns(expected[0], blocked[0])
    for array, other in zip(expected[1:], blocked[1:], strict=True):
        np.testing.assert_array_equal(array, other)


def test_each_string_key_has_a_slot():
    columns, codes, numeric = fit({"w": "the", "p": "DT"}, {"w": "dog", "p": "NN"}, {"w": "the"})
    assert columns.slot_keys == columns.column_names == ["w", "p"]
    assert columns.feature_names == ["w=the", "p=DT", "w=dog", "p=NN"]
    assert columns.counts.tolist() == [2, 1, 1, 1]
    assert columns.column_of.tolist() == [0, 1, 0, 1]
    assert columns.slot_range.tolist() == [[0, 1], [1, 2], [0, 1], [1, 2]]
    assert codes.tolist() == [[0, 1], [2, 3], [0, ABSENT]]
    assert codes.dtype == np.int32
    assert numeric.shape == (3, 0)
    assert numeric.dtype == np.uint8


def test_offsets_are_the_rows_of_sequences():
    _, offsets, _, _ = fit_columns([[{}, {"a": "b"}], ({},), iter([{}, {}, {}])])
    assert offsets.tolist() == [0, 2, 3, 6]
    assert offsets.dtype == np.int64


@pytest.mark.parametrize("true", [True, np.True_])
def test_true_is_an_indicator_and_false_is_absent(true):
    columns, codes, _ = fit({"up": true}, {"up": not true}, {})
    assert columns.feature_names == ["up"]
    assert columns.slot_keys == []
    assert columns.slot_range.tolist() == [[0, PAST_ALL_SLOTS]]
    assert codes.tolist() == [[0], [ABSENT], [ABSENT]]


def test_a_key_that_is_only_ever_1_is_an_indicator():
    columns, codes, _ = fit({"w=the": 1}, {"w=dog": 1.0}, {"w=the": np.float32(1)}, {})
    assert columns.feature_names == ["w=the", "w=dog"]
    assert columns.column_names == ["w=the", "w=dog"]
    assert columns.numeric_names == []
    assert codes.tolist() == [[0], [1], [0], [ABSENT]]
    rows = [{"w=the": value} for value in (1, 0.5, -3, 0, 0.0, NAN, True, False, None)]
    active = [bool(names) for names in encoded_names(columns, *rows)]
    assert active == [True, True, True, False, False, False, True, False, False]


@pytest.mark.parametrize("other", [0, 2, 0.5, NAN, np.float64(3), np.int8(-1)])
def test_a_key_with_another_number_is_numeric(other):
    columns, codes, numeric = fit({"h": 1}, {"h": other}, {"h": 1}, {}, {"h": None})
    assert columns.numeric_names == ["h"]
    assert columns.feature_names == []
    assert codes.shape == (5, 0)
    assert numeric[0, 0] == numeric[2, 0] > 0
    assert numeric[1, 0] != numeric[0, 0]
    assert (numeric[1, 0] == 0) == (other != other)
    assert numeric[3:, 0].tolist() == [0, 0]


def test_nan_none_and_no_number_are_bin_0():
    columns, _, numeric = fit({"h": 2.5}, {"h": NAN}, {"h": None}, {}, {"h": np.float32(NAN)})
    assert numeric[:, 0].tolist() == [1, 0, 0, 0, 0]
    assert columns.encode([[{"h": NAN}, {"h": -7}]])[2].tolist() == [[0], [1]]


def test_a_column_of_nan_alone_has_one_bin():
    columns, _, numeric = fit({"h": NAN})
    assert numeric.tolist() == [[0]]
    assert columns.bin_edges[0].tolist() == []
    assert not columns.bin_values.any()
    assert columns.encode([[{"h": 3}]])[2].tolist() == [[1]]


def test_few_distinct_values_are_cut_midway():
    columns, _, numeric = fit(*({"h": v} for v in (3, 1, 2, 1, 10)))
    assert columns.bin_edges[0].tolist() == [1.5, 2.5, 6.5]
    assert numeric[:, 0].tolist() == [3, 1, 2, 1, 4]
    assert columns.encode([[{"h": 1.5}, {"h": 1.6}, {"h": 99}]])[2].ravel().tolist() == [1, 2, 4]


def test_many_distinct_values_are_cut_at_quantiles():
    columns, _, numeric = fit(*({"h": v} for v in range(10_000)), max_bins=10)
    assert columns.bin_edges[0].tolist() == [1000 * k - 0.5 for k in range(1, 10)]
    assert (np.bincount(numeric[:, 0])[1:] == 1000).all()
    assert len(fit(*({"h": v} for v in range(10_000)))[0].bin_edges[0]) == 254


def test_a_value_repeated_beyond_its_quantile_gets_a_bin():
    values = [0] * 1000 + list(range(1, 20))
    columns, _, numeric = fit(*({"h": v} for v in values), max_bins=5)
    assert columns.bin_edges[0].tolist() == [0.5]
    columns, _, numeric = fit(*({"h": -v} for v in values), max_bins=5)
    assert len(np.unique(numeric)) == len(columns.bin_edges[0]) + 1


def test_a_constant_numeric_column_has_bin_value_0():
    columns, _, numeric = fit({"h": 7.3}, {"h": 7.3}, {"h": 7.3})
    assert numeric[:, 0].tolist() == [1, 1, 1]
    assert not columns.bin_values.any()


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_a_list_is_a_bag_of_indicators_in_shared_slots(kind):
    columns, codes, _ = fit(
        {"w": "x", "s": kind(["b", "a"])}, {"s": kind(["a", "a"])}, {"s": kind([])}
    )
    assert columns.feature_names[0] == "s:a"
    assert set(columns.feature_names) == {"s:a", "s:b", "w=x"}
    assert columns.slot_keys == ["w"]
    assert columns.n_shared_slots == 2
    assert columns.slot_range[0].tolist() == [1, PAST_ALL_SLOTS]
    assert names_of(columns, codes) == [["s:a", "s:b", "w=x"], ["s:a"], []]
    assert columns.column_names == ["w", "s"]
    assert columns.column_of[0] == 1


def test_sets_are_read_in_sorted_order():
    columns, _, _ = fit({"s": set("hgfedcba")}, set("nmlkji"))
    assert columns.feature_names == [*(f"s:{c}" for c in "abcdefgh"), *"ijklmn"]


def test_a_list_item_is_indicators_of_one_column():
    columns, codes, _ = fit(["w=the", "up"], ["w=the"], [], ("up",), {"w=dog"})
    assert columns.feature_names == ["w=the", "up", "w=dog"]
    assert columns.column_of.tolist() == [0, 0, 0]
    assert codes.tolist() == [[0, 1], [0, ABSENT], [ABSENT] * 2, [1, ABSENT], [2, ABSENT]]


def test_nested_dicts_join_keys_with_colons():
    item = {"a": {"b": "c", "d": True, "e": 1, "f": ["g"], "h": {"i": "j", "k": 2.5}, "l": None}}
    columns, codes, numeric = fit(item)
    assert names_of(columns, codes) == [["a:b=c", "a:d", "a:e", "a:f:g", "a:h:i=j"]]
    assert columns.slot_keys == ["a:b", "a:h:i"]
    assert columns.numeric_names == ["a:h:k"]
    assert numeric.tolist() == [[1]]
    assert set(columns.column_names) == {"a:b", "a:h:i", "a:f", "a:d", "a:e"}


def test_none_is_missing_for_a_string_key_only():
    columns, codes, _ = fit(
        {"w": None}, {"w": "a", "s": ["b"]}, {"w": None, "s": None, "up": None}, {"up": True}
    )
    assert codes[:, 0].tolist() == [MISSING, columns.feature_names.index("w=a"), MISSING, ABSENT]
    assert codes[2, 1:].tolist() == [ABSENT]
    encoded = columns.encode([[{"w": None}, {"new": None}, {"a": {"w": None}}]])[1]
    assert encoded.tolist() == [[MISSING, ABSENT], [ABSENT, ABSENT], [ABSENT, ABSENT]]


def test_none_beside_a_value_of_the_same_key_yields_to_it():
    rows = [{"a:b": None, "a": {"b": "c"}}, {"a": {"b": "c"}, "a:b": None}]
    _, codes, _ = fit(*rows)
    assert codes.tolist() == [[0], [0]]


@pytest.mark.parametrize(
    "item",
    [{"a": "b"}, {"a=b": True}, {"a=b": 1}, {"a=b": 5}, ["a=b"], {"a=b"}, {"a": np.str_("b")}],
)
@pytest.mark.parametrize("learned", [{"a": "b"}, {"a=b": True}, {"a=b": 1}, ["a=b"]])
def test_an_attribute_is_its_name_however_it_is_spelled(learned, item):
    columns, _, _ = fit(learned)
    assert columns.feature_names == ["a=b"]
    assert encoded_names(columns, item) == [["a=b"]]


def test_names_with_several_spellings_in_training_are_one_shared_feature():
    items = [{"a": "b=c"}, {"a=b": "c"}, {"a=b=c": True}, ["a=b=c"], {"a": "x", "a=b=c": 1}]
    columns, _, _ = fit(*items, {"a": "b=c", "a=b": "c"})
    assert columns.feature_names == ["a=b=c", "a=x"]
    assert columns.counts.tolist() == [6, 1]
    assert columns.slot_range.tolist() == [[1, PAST_ALL_SLOTS], [0, 1]]
    assert columns.slot_keys == ["a"]
    assert columns.column_names[columns.column_of[0]] == "a"


def test_two_values_of_one_key_in_a_row_are_both_kept():
    columns, codes, _ = fit({"a:b": "x", "a": {"b": "y"}}, {"a": {"b": "x"}}, {"a:b": "y"})
    assert columns.counts.tolist() == [2, 2]
    assert names_of(columns, codes) == [["a:b=x", "a:b=y"], ["a:b=x"], ["a:b=y"]]


def test_a_value_given_twice_in_a_row_counts_once():
    columns, codes, _ = fit({"a:b": "x", "a": {"b": "x"}})
    assert columns.counts.tolist() == [1]
    assert codes.tolist() == [[0]]


def test_rare_features_are_dropped_with_their_slots_and_columns():
    items = [{"w": "a", "id": "1", "s": ["x", "y"]}, {"w": "a", "id": "2", "s": ["x", "z"]}]
    columns, codes, _ = fit(*items, {"id": None, "w": "b"}, min_count=2)
    assert columns.feature_names == ["w=a", "s:x"]
    assert columns.slot_keys == ["w"]
    assert columns.column_names == ["w", "s"]
    assert columns.n_shared_slots == 1
    assert codes.tolist() == [[0, 1], [0, 1], [ABSENT, ABSENT]]


def test_what_training_did_not_see_is_absent():
    columns, _, _ = fit({"w": "a", "h": 2.5, "up": True, "s": ["x"]})
    unseen = [
        {"w": "b", "new": "a", "s": ["y"], "down": True, "k": 3.5, "n": {"w": "a"}},
        {"h": "tall", "up": "a", "w": ["a"]},
        ["z"],
    ]
    _, codes, numeric = columns.encode([unseen])
    assert (codes == ABSENT).all()
    assert not numeric.any()


def test_more_shared_features_than_in_training_widen_the_codes():
    columns, codes, _ = fit({"w": "a"}, ["x"], ["y"], ["z"])
    assert codes.shape == (4, 2)
    wide = columns.encode([[["x", "y", "z", "y"], {"w": "a"}]])[1]
    assert wide.shape == (2, 4)
    assert names_of(columns, wide) == [["x", "y", "z"], ["w=a"]]
    assert columns.encode([[{"w": "a"}]])[1].shape == (1, 2)


def test_fewer_rows_keep_the_slots_of_training():
    columns, _, _ = fit(["x", "y"], ["x"])
    assert columns.encode([[["x"]]])[1].tolist() == [[0, ABSENT]]


def test_items_without_features_are_fine():
    columns, codes, numeric = fit({}, [], {"up": False, "w": None, "s": []})
    assert codes.shape == (3, 0)
    assert numeric.shape == (3, 0)
    assert columns.slot_range.shape == (0, 2)
    assert_same_columns(columns, Columns.from_state(columns.to_state()))
    assert columns.encode([[{"w": "a"}]])[1].shape == (1, 0)


def test_encoding_nothing_gives_empty_arrays():
    columns, _, _ = fit({"w": "a", "h": 2.5})
    offsets, codes, numeric = columns.encode([])
    assert offsets.tolist() == [0]
    assert codes.shape == (0, 1)
    assert numeric.shape == (0, 1)
    offsets, codes, _ = columns.encode([[], [{"w": "a"}], []])
    assert offsets.tolist() == [0, 0, 1, 1]
    assert codes.tolist() == [[0]]


def test_subclasses_of_str_are_strings():
    columns, _, _ = fit({np.str_("w"): np.str_("a"), "s": [np.str_("x")]}, [np.str_("y")])
    assert [type(name) for name in columns.feature_names + columns.slot_keys] == [str] * 4
    assert encoded_names(columns, {"w": "a", "s": ["x"]}, ["y"]) == [["s:x", "w=a"], ["y"]]


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
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(X, error, message):
    with pytest.raises(error, match="^treecrf: .*" + message.removeprefix("treecrf: ")):
        fit_columns(X)
    columns, _, _ = fit({"h": 2.5, "w": "a"})
    with pytest.raises(error, match=message):
        columns.encode(X)


def test_infinity_is_refused_for_an_indicator_too():
    columns, _, _ = fit({"up": True})
    with pytest.raises(ValueError, match=r"X\[0\]\[0\]\['up'\] is inf"):
        columns.encode([[{"up": INF}]])


def test_training_refuses_no_sequences_and_empty_ones():
    with pytest.raises(ValueError, match="treecrf: X holds no sequences; "):
        fit_columns([])
    with pytest.raises(ValueError, match=r"treecrf: X\[1\] is an empty sequence; "):
        fit_columns([[{}], [], []])


@pytest.mark.parametrize("settings", [{"min_count": 0}, {"max_bins": 1}, {"max_bins": 256}])
def test_settings_out_of_range_are_refused(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=f"treecrf: {name} is "):
        fit({"w": "a"}, **settings)


def learned():
    columns, _, _ = fit(
        {"w": "a", "p": "x", "h": 2.5, "k": 0, "s": ["u", "v"]},
        {"w": "a", "p": "y", "h": 3.5, "k": 4, "s": ["u"]},
        {"w": "b", "p": "y", "h": 4.5, "k": 4},
    )
    return columns


@given(training(ITEMS))
def test_state_round_trip(X):
    columns, *_ = fit_columns(X)
    state = columns.to_state()
    assert all(type(value) in (int, list, np.ndarray) for value in state.values())
    assert_same_columns(columns, Columns.from_state(state))


def test_columns_pickle_and_copy_after_use():
    columns = learned()
    X = [[{"w": "a", "h": 3, "s": ["v"]}]]
    expected = columns.encode(X)
    for same in (pickle.loads(pickle.dumps(columns)), copy.deepcopy(columns)):
        assert_same_columns(columns, same)
        for array, other in zip(same.encode(X), expected, strict=True):
            np.testing.assert_array_equal(array, other)


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("field", "corrupt"),
    [
        ("feature_names", lambda v: v[:-1]),
        ("feature_names", lambda v: [v[1], *v[1:]]),
        ("feature_names", lambda v: [3, *v[1:]]),
        ("feature_names", lambda v: tuple(v)),
        ("counts", lambda v: v[:-1]),
        ("counts", lambda v: v[::-1]),
        ("counts", lambda v: changed(v, -1, 0)),
        ("counts", lambda v: v.astype(np.int32)),
        ("counts", lambda v: v.tolist()),
        ("column_of", lambda v: changed(v, 0, -1)),
        ("column_of", lambda v: changed(v, 0, 3)),
        ("column_of", lambda v: v[:, None]),
        ("slot_range", lambda v: changed(v, 0, [5, 6])),
        ("slot_range", lambda v: changed(v, 0, [-1, 0])),
        ("slot_range", lambda v: changed(v, 0, [0, 2])),
        ("slot_range", lambda v: changed(v, 0, [1, 2])),
        ("slot_range", lambda v: changed(v, 0, [0, PAST_ALL_SLOTS])),
        ("slot_range", lambda v: v[:, :1]),
        ("slot_keys", lambda v: [v[0], v[0]]),
        ("slot_keys", lambda v: None),
        ("n_shared_slots", lambda v: 0),
        ("n_shared_slots", lambda v: 3),
        ("n_shared_slots", lambda v: 2.0),
        ("n_shared_slots", lambda v: True),
        ("column_names", lambda v: v[:1] * 3),
        ("numeric_names", lambda v: ["h", "h"]),
        ("bin_edges", lambda v: changed(v, 0, NAN)),
        ("bin_edges", lambda v: changed(v, 0, INF)),
        ("bin_edges", lambda v: changed(v, 1, v[0])),
        ("bin_edges", lambda v: v.astype(np.float32)),
        ("bin_edge_offsets", lambda v: changed(v, 0, 1)),
        ("bin_edge_offsets", lambda v: changed(v, -1, 2)),
        ("bin_edge_offsets", lambda v: changed(v, 1, -1)),
        ("bin_edge_offsets", lambda v: changed(v, 1, 99)),
        ("bin_edge_offsets", lambda v: v[:-1]),
        ("bin_values", lambda v: changed(v, (0, 3), NAN)),
        ("bin_values", lambda v: changed(v, (1, 0), 0.5)),
        ("bin_values", lambda v: v[:, :255]),
    ],
)
def test_a_corrupted_state_is_refused(field, corrupt):
    state = learned().to_state()
    state[field] = corrupt(state[field])
    with pytest.raises(ValueError, match=r"^treecrf: model field 'columns\."):
        Columns.from_state(state)


def test_too_many_edges_are_refused():
    state = learned().to_state()
    state["bin_edges"] = np.arange(256.0)
    state["bin_edge_offsets"] = np.array([0, 255, 256])
    with pytest.raises(ValueError, match=r"columns\.bin_edge_offsets"):
        Columns.from_state(state)


@pytest.mark.parametrize("field", learned().to_state())
def test_a_state_without_a_field_is_refused(field):
    state = learned().to_state()
    del state[field]
    with pytest.raises(ValueError, match=f"treecrf: model field 'columns.{field}': "):
        Columns.from_state(state)


@pytest.mark.parametrize("state", [None, [], {"strange": 1}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(ValueError, match=r"^treecrf: model"):
        Columns.from_state(state)


def test_a_state_with_an_unknown_field_is_refused():
    with pytest.raises(ValueError, match=r"columns\.strange"):
        Columns.from_state(learned().to_state() | {"strange": 1})
