from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from spacy_treecrf.storage.state_reader import StateReader

STATE: dict[str, Any] = {
    "kind": "crf",
    "rounds": 3,
    "rate": 0.5,
    "sparse": True,
    "seed": None,
    "labels": ["B", "I", "O"],
    "forest": {
        "left": np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int32),
        "value": np.array([0.0, -1.5], dtype=np.float32),
    },
    "parts": [{"bit": 0}, {"bit": 1}],
}


def read_all(fields: StateReader) -> None:
    assert fields.string("kind", ["crf", "memm"]) == "crf"
    assert fields.integer("rounds", 0, 3) == 3
    assert fields.number("rate", 0.5, 1) == 0.5
    assert fields.boolean("sparse") is True
    assert fields.is_none("seed")
    assert fields.strings("labels", 3, unique=True) == ["B", "I", "O"]
    forest = fields.nested("forest")
    assert forest.array("left", np.int32, (None, 3), low=1, high=6).shape == (2, 3)
    assert forest.array("value", np.float32, (2,)).dtype == np.float32
    assert [part.integer("bit") for part in fields.nested_list("parts", 2)] == [0, 1]
    fields.done()


def test_fields_read_what_is_right() -> None:
    read_all(StateReader(STATE))


@pytest.mark.parametrize(
    ("value", "read", "message"),
    [
        (True, lambda f: f.integer("a"), "expected an integer, found True"),
        (1.0, lambda f: f.integer("a"), r"expected an integer, found 1\.0"),
        ("1", lambda f: f.integer("a", 0), "expected an integer of at least 0, found the text '1'"),
        (9, lambda f: f.integer("a", 0, 8), "expected an integer from 0 to 8, found 9"),
        pytest.param(
            2**20_000,
            lambda f: f.integer("a", 0, 8),
            "found an integer of 20001 bits",
            id="huge integer",
        ),
        (math.nan, lambda f: f.number("a"), "expected a finite number, found nan"),
        (math.inf, lambda f: f.number("a"), "expected a finite number, found inf"),
        pytest.param(
            2**20_000,
            lambda f: f.number("a"),
            "expected a finite number, found an integer",
            id="huge number",
        ),
        (False, lambda f: f.number("a"), "found False"),
        (-0.5, lambda f: f.number("a", 0.0), r"of at least 0\.0, found -0\.5"),
        (2, lambda f: f.number("a", high=1), "of at most 1, found 2"),
        (None, lambda f: f.string("a"), "expected a text, found nothing"),
        ("c", lambda f: f.string("a", ["x", "y"]), "one of 'x', 'y', found the text 'c'"),
        ("z" * 999, lambda f: f.string("a", ["x"]), "zz'... of 999 characters"),
        (1, lambda f: f.boolean("a"), "expected true or false, found 1"),
        ("abc", lambda f: f.strings("a"), "expected a list of texts, found the text 'abc'"),
        (["x"], lambda f: f.strings("a", 2), "a list of 2 texts, found a list of 1"),
        (["x", 3], lambda f: f.strings("a"), r"a list of texts, found 3 at \[1\]"),
        (["x", "y", "x"], lambda f: f.strings("a", unique=True), "the text 'x' more than once"),
        ([1], lambda f: f.array("a", np.int32, (1,)), "an array of int32, found a list"),
        (np.zeros(2), lambda f: f.array("a", np.float32, (2,)), "found an array of float64"),
        (np.zeros(2, ">i4"), lambda f: f.array("a", np.int32, (2,)), "array of int32, found"),
        (np.zeros((2, 2)), lambda f: f.array("a", np.float64, (None, 3)), r"\(any, 3\), found .*2"),
        (np.zeros(2), lambda f: f.array("a", np.float64, ()), r"shape \(\), found shape \(2,\)"),
        (np.zeros(()), lambda f: f.array("a", np.float64, (None,)), r"\(any,\), found shape \(\)"),
        (
            np.array([[0, 1], [2, 7]]),
            lambda f: f.array("a", np.int64, (2, 2), low=0, high=6),
            r"values from 0 to 6, found 7 at \[1, 1\]",
        ),
        (
            np.array([[0, -1], [2, 3]]).T,
            lambda f: f.array("a", np.int64, (2, 2), low=0),
            r"values of at least 0, found -1 at \[1, 0\]",
        ),
        (
            np.array([0.0, math.nan]),
            lambda f: f.array("a", np.float64, (2,)),
            r"finite values, found nan at \[1\]",
        ),
        (
            np.array([0.0, -math.inf]),
            lambda f: f.array("a", np.float64, (2,)),
            r"finite values, found -inf at \[1\]",
        ),
        (
            np.array([0.0, math.nan]),
            lambda f: f.array("a", np.float64, (2,), high=1e300, finite=False),
            r"values of at most 1e\+300, found nan at \[1\]",
        ),
        (3, lambda f: f.nested("a"), "expected a table of fields, found 3"),
        (3, lambda f: f.table("a"), "expected a table of fields, found 3"),
        ({}, lambda f: f.nested_list("a"), "a list of tables, found a table of 0 fields"),
        ([{}], lambda f: f.nested_list("a", 2), "a list of 2 tables, found a list of 1"),
    ],
)
def test_wrong_field_is_named_with_what_was_expected_and_found(
    value: Any, read: Any, message: str
) -> None:
    part = StateReader({"part": {"a": value}}).nested("part")
    with pytest.raises(ValueError, match=rf"^treecrf: model field 'part\.a': .*{message}"):
        read(part)


@pytest.mark.parametrize(
    "read",
    [
        lambda f: f.integer("gone"),
        lambda f: f.number("gone"),
        lambda f: f.string("gone"),
        lambda f: f.boolean("gone"),
        lambda f: f.strings("gone"),
        lambda f: f.array("gone", np.int32, ()),
        lambda f: f.nested("gone"),
        lambda f: f.nested_list("gone"),
        lambda f: f.table("gone"),
        lambda f: f.is_none("gone"),
    ],
)
def test_missing_field_is_named(read: Any) -> None:
    with pytest.raises(ValueError, match=r"^treecrf: model field 'gone': .* found no such field"):
        read(StateReader({}))


def test_unknown_fields_are_refused_at_every_level() -> None:
    for state, name in [
        ({**STATE, "extra": 1}, "'extra'"),
        ({**STATE, "forest": {**STATE["forest"], "extra": 1}}, r"'forest\.extra'"),
        ({**STATE, "parts": [{"bit": 0}, {"bit": 1, "extra": 1}]}, r"'parts\[1\]\.extra'"),
    ]:
        with pytest.raises(ValueError, match=f"^treecrf: model has unknown fields: {name};"):
            read_all(StateReader(state))
    with pytest.raises(ValueError, match="'e', 'f', 'g', 'h', 'i' and 2 more"):
        StateReader(dict.fromkeys("efghijk")).done()


def test_tables_that_are_none_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"^treecrf: the file 'm': expected a table .*found nothing"
    ):
        StateReader(None, "the file 'm'")
    with pytest.raises(ValueError, match=r"^treecrf: model field 'parts\[0\]': expected a table"):
        StateReader({"parts": [7]}).nested_list("parts")


def test_array_is_contiguous_writable_and_exact() -> None:
    transposed = np.arange(6, dtype=np.int32).reshape(2, 3).T
    frozen = np.arange(3, dtype=np.int32)
    frozen.flags.writeable = False
    ready = np.arange(3, dtype=np.int32)
    fields = StateReader(
        {"t": transposed, "f": frozen, "r": ready, "z": np.array(4, dtype=np.int32)}
    )
    for name, shape in [("t", (3, 2)), ("f", (3,)), ("r", (3,)), ("z", ())]:
        array = fields.array(name, np.int32, shape)
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.dtype == np.int32
        assert array.shape == shape
        np.testing.assert_array_equal(array, fields._state[name])
    assert fields.array("r", np.int32, (3,)) is ready


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int32, np.float32])
def test_bounds_beyond_the_type_and_empty_arrays_are_fine(dtype: type[np.generic]) -> None:
    for shape in [(0,), (3,), (2, 0)]:
        fields = StateReader({"a": np.ones(shape, dtype=dtype)})
        array = fields.array("a", dtype, (None,) * len(shape), low=-(2**70), high=2**70)
        assert array.shape == shape


def test_infinite_values_pass_only_when_asked_for() -> None:
    trans = np.array([[0.0, -math.inf]], dtype=np.float32)
    limit = float(np.finfo(np.float32).max)
    fields = StateReader({"trans": trans, "bad": -trans})
    assert fields.array("trans", np.float32, (1, 2), high=limit, finite=False) is trans
    with pytest.raises(ValueError, match="'bad': expected values of at most"):
        fields.array("bad", np.float32, (1, 2), high=limit, finite=False)


def test_model_can_raise_errors_of_its_own_checks() -> None:
    with pytest.raises(
        ValueError, match=r"^treecrf: model field 'a.b': expected a tree, found a cy"
    ):
        StateReader({"a": {}}).nested("a").fail("b", "a tree", "a cycle")
