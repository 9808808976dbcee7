"""Dicts are read as python-crfsuite reads them; its own reader of dicts is the judge."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pycrfsuite")

from pycrfsuite import ItemSequence

from spacy_treecrf.engine.encoding.attribute_columns import (
    DIGITS,
    N_DIGITS,
    AttributeColumns,
    attribute_columns,
    columns_from_state,
    keys_of,
)
from spacy_treecrf.engine.sequences import ABSENT
from tests.models.state_edits import edit
from tests.refusals import assert_refused

TEXTS = ["", "a", "b", ":", "a:b", "é", "😀", "e\u0301", "a\0b", "\r\n"]
texts = st.sampled_from(TEXTS)
numbers = st.one_of(
    st.booleans(),
    st.integers(-40, 40),
    st.floats(-120, 120, width=32),  # thirty of one name stay below the limit
    st.sampled_from([1.0, 0.5, 0.1, -2.75, 1 / 3]),
)
values = st.recursive(
    st.one_of(texts, numbers),
    lambda inner: st.one_of(
        st.dictionaries(texts, inner, max_size=3),
        st.lists(texts, max_size=4),
        st.sets(texts, max_size=3),
    ),
    max_leaves=6,
)
items = st.one_of(st.dictionaries(texts, values, max_size=5), st.lists(texts, max_size=5))


def names_in(item: Any) -> list[str]:
    return list(ItemSequence([item]).items()[0])


def values_of(columns: AttributeColumns, row: Any) -> dict[str, float]:
    """The value of each attribute in a row of feature ids, put together from its digits."""
    found: dict[str, float] = {}
    n = columns.n_attributes
    for i in row[row != ABSENT].tolist():
        attribute, digit = i, 1.0
        if i >= n:
            attribute = int(columns.number_attributes[(i - n) // N_DIGITS])
            digit = float(DIGITS[(i - n) % N_DIGITS])
        name = columns.feature_names[attribute]
        found[name] = found.get(name, 0.0) + digit
    return found


def expected_values(item: Any, known: set[str]) -> dict[str, float]:
    """What CRFsuite sees; `items()` keeps the last of equal attributes, so each is asked alone."""
    found: dict[str, float] = {}
    parts = [{key: value} for key, value in item.items()] if isinstance(item, dict) else []
    for part in parts or [[text] for text in item]:
        for name, value in flat(part):
            if name in known:
                found[name] = found.get(name, 0.0) + value
    return {name: value for name, value in found.items() if value}


def flat(part: Any) -> list[tuple[str, float]]:
    """The attributes of a part of an item, equal ones included."""
    if isinstance(part, dict) and len(part) == 1:
        ((key, value),) = part.items()
        if isinstance(value, dict):
            inner = [pair for entry in value.items() for pair in flat(dict([entry]))]
            return [(cut(f"{key}:{name}"), v) for name, v in inner]
        if isinstance(value, (list, set)):
            return [(cut(f"{key}:{text}"), 1.0) for text in value]
    return [*ItemSequence([part]).items()[0].items()]


def cut(name: str) -> str:
    return name.partition("\0")[0]


@given(st.lists(st.lists(items, min_size=1, max_size=3), min_size=1, max_size=3), st.data())
def test_attributes_and_values_are_those_that_crfsuite_sees(
    X: list[list[Any]], data: st.DataObject
) -> None:
    names = sorted({name for sequence in X for item in sequence for name in names_in(item)})
    known = [name for name in names if data.draw(st.integers(0, 4))]
    columns = attribute_columns(known, np.arange(len(known), dtype=np.int32))
    rows = [row for _, block, _ in columns.encode_blocks(X) for row in block]
    flat_items = [item for sequence in X for item in sequence]
    for row, item in zip(rows, flat_items, strict=True):
        # What is below the smallest digit has no feature: the value is then 0, not another one.
        nothing = dict.fromkeys(known, 0.0)
        expected = nothing | expected_values(item, set(known))
        found = nothing | values_of(columns, row)
        assert found == pytest.approx(expected, rel=1e-6, abs=2.0**-32)
        assert (np.diff(row[row != ABSENT]) >= 0).all()


@given(st.lists(st.lists(items, min_size=1, max_size=3), min_size=1, max_size=3))
def test_training_sees_each_feature_of_a_row_once(X: list[list[Any]]) -> None:
    names = sorted({name for sequence in X for item in sequence for name in names_in(item)})
    columns = attribute_columns(names, np.arange(len(names), dtype=np.int32))
    offsets, feature_ids, _ = columns.encode(X)
    rows = [row for _, block, _ in columns.encode_blocks(X) for row in block]
    assert np.diff(offsets).tolist() == [len(sequence) for sequence in X]
    for row, other in zip(feature_ids, rows, strict=False):
        assert set(row[row >= 0].tolist()) == set(other[other >= 0].tolist())


@pytest.mark.parametrize("value", [4095.5, -4095.96875, 2047.0, 0.000244140625])
def test_large_and_small_values_keep_their_digits(value: float) -> None:
    columns = attribute_columns(["a"], np.arange(1, dtype=np.int32))
    _, (row,), _ = next(columns.encode_blocks([[{"a": value}]]))
    assert values_of(columns, row) == {"a": value}


def test_a_whole_value_without_digits_repeats_the_feature() -> None:
    columns = attribute_columns(["a", "b"], np.empty(0, np.int32))
    _, feature_ids, _ = next(columns.encode_blocks([[{"a": 3, "b": True}, ["b", "b"], {"a": 0}]]))
    assert feature_ids.tolist() == [[0, 0, 0, 1], [1, 1, -1, -1], [-1, -1, -1, -1]]
    assert_refused(lambda: columns.encode([[{"a": 0.5}]]), "X[0][0]", "'a'", "0.5")
    assert_refused(lambda: columns.encode([[{}], [{}, {"a": -1}]]), "X[1][1]", "-1")
    assert_refused(lambda: columns.encode([[{"b": 1001}]]), "1001")


def test_a_value_is_rounded_to_the_smallest_digit_and_a_smaller_one_is_nothing() -> None:
    columns = attribute_columns(["a"], np.zeros(1, np.int32))
    least = 2.0**-32
    values = [1.1754943508222875e-38, -least / 4, least, -least, 1.5 * least, 3 + least]
    _, rows, _ = next(columns.encode_blocks([[{"a": value} for value in values]]))
    found = [values_of(columns, row).get("a", 0.0) for row in rows]
    assert found == [0.0, 0.0, least, -least, 2 * least, 3.0]


def test_a_key_is_what_most_attributes_have_before_their_last_separator() -> None:
    attributes = [
        "word:a",
        "word:b",
        "word::",
        "word:12:30",
        "+1:word:a",
        "+1:word:b",
        "BOS",
        "a:b",
    ]
    expected = ["word", "word", "word", "word", "+1:word", "+1:word", "BOS", "a:b"]
    assert keys_of(attributes) == expected
    many = [f"w={i}" for i in range(2000)]
    assert set(keys_of(many)) == {""}


@given(st.integers(0, 2**32))
def test_a_damaged_state_is_refused_or_gives_columns_that_work(seed: int) -> None:
    rng = random.Random(seed)
    state = attribute_columns(["a", "b", "c:d", "c:e"], np.array([0, 2], np.int32)).to_state()
    state, _ = edit(state, rng)
    try:
        columns = columns_from_state(state)
    except ValueError as error:
        if not str(error).startswith("treecrf: "):
            raise
        return
    X = [[{"a": 3, "b": 2, "c": {"d": 5, "e": True}}]]
    for _, feature_ids, _ in columns.encode_blocks(X):
        assert feature_ids.max(initial=-1) < len(columns.feature_names)
