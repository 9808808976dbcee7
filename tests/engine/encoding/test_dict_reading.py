"""Dicts that a kernel reads get the ids that reading entry by entry gives."""

from __future__ import annotations

import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine import python_calls
from spacy_treecrf.engine.encoding import dict_reading
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from tests.engine.encoding.naive_encoding import naive_encode

Item = dict[str, Any]

LETTERS = st.sampled_from(
    ["a", "b", "\0", "\x01", "\x7f", "\x80", "é", "ж", "😀", "\ud800", "=", " "]
)
# Around the lengths of one and two words of eight bytes, and beyond
TEXT = st.text(LETTERS, max_size=9) | st.sampled_from([n * "a" for n in range(26)])
OTHER = st.sampled_from(
    [True, False, None, 0, 1, 2, -0.0, 0.0, 1.0, 2.5, float("nan"), 2**70, 1e300]
) | st.sampled_from([np.float32(1), np.True_, np.str_("a"), np.int64(0)])
VALUE = TEXT | OTHER
KEY = st.sampled_from(["u", "v", "w", "unseen", "u=a", "ключ"])
ITEM = (
    st.fixed_dictionaries({"u": TEXT, "v": TEXT})
    | st.dictionaries(KEY, TEXT, max_size=4)
    | st.dictionaries(KEY, VALUE, max_size=4)
)
SEQUENCES = st.lists(st.lists(ITEM, max_size=6), min_size=1, max_size=4)


def assert_as_naive(columns: Columns, X: list[list[Item]]) -> None:
    for found, expected in zip(columns.encode(X), naive_encode(columns, X), strict=True):
        np.testing.assert_array_equal(found, expected)


def is_read_by_kernel(columns: Columns, items: list[Item]) -> bool:
    reader = columns.item_ids._reader
    assert reader is not None
    return reader._read(items) is not None


@settings(max_examples=400, deadline=None)
@given(SEQUENCES, SEQUENCES)
@example([[{"u": "aaaaaaaa", "v": ""}]], [[{"u": "aaaaaaaab", "v": "a"}, {"u": "", "v": ""}]])
@example([[{"u": "a\0", "v": "a"}]], [[{"u": "a", "v": "a\0"}, {"u": "\0"}]])
def test_dicts_get_the_ids_that_entry_by_entry_gives(
    X: list[list[Item]], unseen: list[list[Item]]
) -> None:
    columns = fit_columns([*filter(None, X), [{"u": "a"}]])[0]
    assert_as_naive(columns, X + unseen)
    assert is_read_by_kernel(columns, X[0])


@settings(max_examples=100, deadline=None)
@given(SEQUENCES, SEQUENCES)
def test_codes_give_the_same_ids(X: list[list[Item]], unseen: list[list[Item]]) -> None:
    columns = fit_columns([*filter(None, X), [{"u": "a"}]])[0]
    ids = columns.item_ids
    for items in X + unseen:
        ends, found = ids.find(items)
        same_ends, same, n_asked = ids._find_by_codes(items)
        if n_asked:
            ids._ask(items, same_ends, same)
        np.testing.assert_array_equal(ends, same_ends)
        np.testing.assert_array_equal(found, same)


def test_where_kernels_cannot_call_python_dicts_are_read_by_codes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dict_reading, "addresses", lambda: None)
    columns = fit_columns([[{"u": "a", "v": 1}, {"u": "b"}]])[0]
    assert columns.item_ids._reader is None
    assert_as_naive(columns, [[{"u": "b", "v": True}, {"u": "é"}, {"v": 2.5}], []])


def test_without_the_lock_of_the_interpreter_there_are_no_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert python_calls.addresses() is not None
    monkeypatch.setattr(python_calls.sysconfig, "get_config_var", lambda name: 1)
    assert python_calls.addresses.__wrapped__() is None


def test_keys_that_are_equal_but_not_the_same_are_one_shape() -> None:
    columns = fit_columns([[{"first key": "a", "second key": "b"}]])[0]
    keys = [("first " + word, "second " + word) for word in ["".join(["k", "ey"])] * 9]
    X = [[{a: "a", b: "b"} for a, b in keys]]
    assert len({id(key) for item in X[0] for key in item}) == 18
    assert_as_naive(columns, X)
    reader = columns.item_ids._reader
    assert reader is not None
    assert len(reader._kept.keys) == 1


def test_many_texts_share_places() -> None:
    texts = [f"{i:x}" * (1 + i % 5) for i in range(3000)]
    X = [[{"u": text, "v": text[:3]} for text in texts]]
    columns = fit_columns(X)[0]
    assert_as_naive(columns, [*X, [{"u": text + "!", "v": text} for text in texts]])


def test_texts_at_the_end_of_a_page_are_read_byte_by_byte() -> None:
    # Objects of many sizes, so that some of these texts end where their page of memory does.
    texts = ["x" * (1 + n % 23) + str(n) for n in range(4000)]
    columns = fit_columns([[{"u": text} for text in texts]], min_count=1)[0]
    _, feature_ids, _ = columns.encode([[{"u": text} for text in texts]])
    names = [columns.feature_names[i] for i in feature_ids[:, 0]]
    assert names == [f"u={text}" for text in texts]


def test_dicts_of_many_shapes_are_read_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    X = [[{f"k{i}": "a", f"k{i % 3}": "b", "n": 0.5} for i in range(50)] for _ in range(2)]
    columns = fit_columns(X)[0]
    assert not is_read_by_kernel(columns, X[0])
    assert_as_naive(columns, X)
    monkeypatch.setattr(dict_reading, "MAX_KNOWN", 4)
    columns = fit_columns(X)[0]
    for item in X[0] * 2:
        assert_as_naive(columns, [[item]])
        reader = columns.item_ids._reader
        assert reader is not None
        assert len(reader._kept.keys) <= 4


def test_where_each_dict_has_other_keys_the_kernel_rarely_tries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = [[{f"k{s}-{i}": 1.0, "u": "a"} for i in range(20)] for s in range(300)]
    columns = fit_columns(X, min_count=1)[0]
    reader = columns.item_ids._reader
    assert reader is not None
    tries = []
    read = reader._read
    monkeypatch.setattr(reader, "_read", lambda items: tries.append(items) or read(items))
    for sequence in X:
        assert_as_naive(columns, [sequence])
    assert len(tries) < 12
    usual = [{"u": "a"}] * 5
    for _ in range(2 * dict_reading.MAX_PAUSE):
        columns.item_ids.find(usual)
    before = len(tries)
    columns.item_ids.find(usual)
    assert len(tries) == before + 1


@pytest.mark.parametrize("key", [3, None, np.str_("u"), type("Text", (str,), {})("u")])
def test_keys_of_other_types_are_left_to_the_scan(key: Any) -> None:
    columns = fit_columns([[{"u": "a"}, {"u": "b"}]])[0]
    assert_as_naive(columns, [[{"u": "a"}, {"u": "b"}]])
    X = [[{"u": "a"}, {key: "b"}]]
    if isinstance(key, str):
        assert_as_naive(columns, X)
    else:
        with pytest.raises(TypeError, match=r"X\[0\]\[1\]"):
            columns.encode(X)
    assert_as_naive(columns, [[{"u": "a"}, {"u": "b"}]])


def test_reading_leaves_no_error_and_no_reference() -> None:
    columns = fit_columns([[{"u": "a", "v": "b"}]])[0]
    value, half = "".join(["a", "é", "b"]), "\ud800" + "a"
    number = 2.0**60
    items = [{"u": value, "v": half, "w": number, "x": True}]
    columns.item_ids.find(items)
    gc.collect()
    before = [sys.getrefcount(own) for own in (value, half, number, items[0])]
    for _ in range(100):
        columns.item_ids.find(items)
    assert [sys.getrefcount(own) for own in (value, half, number, items[0])] == before


def test_lists_and_dicts_that_change_meanwhile_are_noticed() -> None:
    columns = fit_columns([[{"u": "a", "v": "b"}]])[0]
    reader = columns.item_ids._reader
    assert reader is not None
    items = [{"u": "a", "v": "b"}] * 3
    known = reader.read(items)
    assert known is not None
    ids = np.empty(9, np.int32)
    for ends in ([0, 2, 4, 6, 8], [0, 1, 3, 5], [0, 3, 5, 7]):
        row, _ = dict_reading.read_dicts(
            reader._calls, id(items), 0, np.array(ends), reader._kept.known, reader._texts, ids
        )
        assert row == dict_reading.CHANGED


def test_threads_may_read_while_another_changes_the_dicts() -> None:
    columns = fit_columns([[{f"k{i}": "a", "u": "b"} for i in range(9)] * 2])[0]
    items: list[Item] = [{"u": "b"} for _ in range(40)]
    done = threading.Event()

    def change() -> None:
        i = 0
        while not done.is_set():
            i += 1
            items[i % 40] = {f"k{i % 9}": "a" * (i % 20), "u": "b"}
            items[i * 7 % 40].pop("u", None)
            if i % 3:
                items.append({"u": "a"})
            elif len(items) > 40:
                del items[40:]

    def read(_: int) -> int:
        try:
            ends, ids = columns.item_ids.find(items)
        except Exception:  # which the scan of a single dict would explain
            return 0
        return len(ids) - int(ends[-1])

    other = threading.Thread(target=change)
    other.start()
    try:
        with ThreadPoolExecutor(3) as pool:
            assert set(pool.map(read, range(3000))) == {0}
    finally:
        done.set()
        other.join()
