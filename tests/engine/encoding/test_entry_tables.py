"""One lookup for each entry gives the ids that reading entry by entry gives."""

import copy
import math
import pickle
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.encoding import entry_tables, item_codes
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.encoding.missing_methods import METHODS
from tests.engine.encoding.naive_encoding import naive_encode
from tests.engine.feature_items import ITEMS, KEYS, NAN, STRINGS, training


class Text(str):
    __slots__ = ()


class Colour(str, Enum):
    RED = "a"


FLAT_VALUES = st.one_of(
    STRINGS,
    STRINGS.map(Text),
    STRINGS.map(np.str_),
    st.sampled_from([True, False, np.True_, np.False_, None, NAN, 1, 0, 1.0, 0.0, 2, -2.5, 1e300]),
    st.sampled_from([np.float32(1), np.float32(0.5), np.int64(7), np.float64("nan"), 2**60 + 1]),
    st.sampled_from([Colour.RED, "new", "<missing>"]),
)
FLAT = st.dictionaries(KEYS | st.sampled_from(["new", "n"]), FLAT_VALUES, max_size=6)
TEXTS = st.dictionaries(KEYS, STRINGS, max_size=5)
METHOD = st.sampled_from(METHODS)
UNUSUAL = [
    ["a=b", "b"],
    OrderedDict(a="b"),
    {"a": ["b", "b"]},
    {"a": {"b": "a", "c": 2.0}, "a:b": "b"},
    {Text("a"): "b", np.str_("b"): 2.0},
    {"a": ("b",), "b": {"a"}},
]


def assert_as_naive(columns, X):
    for found, expected in zip(columns.encode(X), naive_encode(columns, X), strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


@settings(max_examples=300, deadline=None)
@given(training(FLAT | ITEMS), st.lists(st.lists(FLAT)), METHOD, st.integers(1, 2))
def test_flat_dicts_are_encoded_as_entry_by_entry(X, unseen, method, min_count):
    columns, *encoded = fit_columns(X, missing=method, min_count=min_count)
    assert_as_naive(columns, X + unseen)
    for found, expected in zip(encoded, naive_encode(columns, X), strict=True):
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=200, deadline=None)
@given(training(FLAT | TEXTS), st.lists(st.lists(FLAT | ITEMS)), METHOD)
def test_items_of_all_kinds_may_follow_each_other(X, unseen, method):
    assert_as_naive(fit_columns(X, missing=method)[0], unseen)


@pytest.mark.parametrize("item", UNUSUAL)
@pytest.mark.parametrize("method", METHODS)
def test_unusual_items_do_not_disturb_the_others(item, method):
    X = [[{"a": "b", "b": 3.5}, {"a": "a", "b": True, "c": 1}], [{"a:b": "a", "b": None}]]
    columns = fit_columns(X, missing=method)[0]
    plain = [{"a": "b", "b": 4}, {"a": "zzz", "b": NAN, "c": 1.0}]
    assert_as_naive(columns, [plain, [*plain, item], plain, [item], [], plain])


def test_true_and_one_differ_where_a_key_has_numbers():
    columns = fit_columns([[{"n": True}, {"n": 1}, {"n": 2.0}, {"n": 5.0}]])[0]
    rows = [{"n": True}, {"n": 1}, {"n": False}, {"n": np.True_}, {"n": 1.0}]
    _, feature_ids, bins = columns.encode([rows])
    assert feature_ids.tolist() == [[0], [-1], [-1], [0], [-1]]
    assert bins.tolist() == [[0], [1], [0], [0], [1]]


def test_a_text_is_found_however_its_name_is_cut():
    X = [[{"a=b": "c"}, {"a": "x"}, {"a=b=c": True, "q": "a=b"}]] * 2
    columns = fit_columns(X)[0]
    assert_as_naive(columns, [[{"a": "b=c"}, {"a=b": "c"}, {"a=b=c": 1}, {"q=a": "b"}, {"a": ""}]])


def test_any_iterables_are_read_as_lists_are():
    columns = fit_columns([[{"w": "a"}, {"w": "b"}]])[0]
    rows = [{"w": "b"}, {"w": "new"}, {"w": "a"}]
    expected = columns.encode([rows, []])
    array = np.empty(3, object)
    array[:] = rows
    for sequence in (tuple(rows), iter(rows), array, (row for row in rows)):
        for found, same in zip(columns.encode(iter([sequence, ()])), expected, strict=True):
            np.testing.assert_array_equal(found, same)


def test_flags_beyond_those_that_are_kept_are_found_as_well(monkeypatch):
    X = [[{f"flag{i}": True, f"n{i}": i + 2.0} for i in range(20)]] * 2
    columns = fit_columns(X)[0]
    monkeypatch.setattr(entry_tables, "KEPT_KEYS", 5)
    for _ in range(2):
        assert_as_naive(columns, X)
    assert len(columns.item_ids.tables) == 5


def test_what_is_unknown_leaves_no_trace():
    columns = fit_columns([[{"w": "a", "flag": True}]])[0]
    columns.encode([[{"w": f"new{i}", f"key{i}": "x", f"flag{i}": True} for i in range(100)]])
    tables = columns.item_ids.tables
    assert set(tables) == {"w"}
    assert set(tables["w"]) == {"a"}


def test_numbers_on_edges_get_the_bin_below():
    amounts = [0.5, 1.5, 2.5, math.nextafter(1.0, 2.0)]
    columns = fit_columns([[{"n": x} for x in amounts]])[0]
    edges = columns.bin_edges[0]
    around = [f(x) for x in edges for f in (float, lambda x: math.nextafter(x, 9))]
    assert_as_naive(columns, [[{"n": x} for x in [*amounts, *around, 1, 2**70, -(2**70)]]])


def test_threads_and_copies_read_the_same():
    X = [[{"w": "abc"[i % 3], "n": float(i), f"flag{i}": True} for i in range(50)]]
    columns = fit_columns(X)[0]
    expected = columns.encode(X)[2]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: columns.encode(X)[2], range(40)):
            np.testing.assert_array_equal(found, expected)
    for same in (copy.copy(columns), copy.deepcopy(columns), pickle.loads(pickle.dumps(columns))):
        np.testing.assert_array_equal(same.encode(X)[2], expected)


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=120))
def test_shared_slots_hold_each_id_once_and_sorted(ids):
    columns = fit_columns([[[f"f{i}" for i in range(31)]]])[0]
    found = columns.encode([[[f"f{i}" for i in ids]]])[1]
    assert_as_naive(columns, [[[f"f{i}" for i in ids]], [["f3"]]])
    kept = found[0][found[0] >= 0]
    assert (np.diff(kept) > 0).all()
    assert len(kept) == len(set(ids))


def test_dicts_of_more_shapes_than_are_kept_are_read_as_well(monkeypatch):
    X = [[{f"flag{i}": True, "w": "ab"[i % 2], "n": i + 0.5} for i in range(30)]] * 2
    columns = fit_columns(X)[0]
    monkeypatch.setattr(item_codes, "MAX_SHAPES", 4)
    for _ in range(2):
        assert_as_naive(columns, X)
        assert_as_naive(columns, [[item] for item in X[0]])
    assert len(columns.item_ids.item_codes.kept) <= 4


def test_an_earlier_error_comes_before_a_later_one():
    columns = fit_columns([[{"w": "a"}]])[0]
    with pytest.raises(TypeError, match=r"X\[1\]\[0\]"):
        columns.encode([[{"w": "a"}], [{"w": object()}], 3])


def test_generators_may_use_one_list_and_one_dict_for_all_sequences() -> None:
    columns, *_ = fit_columns([[{"w": letter}] for letter in "abc"])

    def reused() -> Iterator[list[dict[str, str]]]:
        item: dict[str, str] = {}
        sequence = [item]
        for letter in "abc":
            item["w"] = letter
            yield sequence

    expected = columns.encode([[{"w": letter}] for letter in "abc"])
    for found, wanted in zip(columns.encode(reused()), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
