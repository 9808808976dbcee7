"""The small format: the same state bit for bit, in fewer bytes, refused when damaged."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from srsly import msgpack

from spacy_treecrf.storage import container
from spacy_treecrf.storage.packing import (
    DTYPES,
    TEXTS,
    packed_array,
    packed_texts,
    unpacked_array,
    unpacked_texts,
)
from tests.storage.test_container import (
    STATES,
    assert_refused,
    assert_same,
    body_of,
    seal,
    state_or_refusal,
)

MANY = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(max_dims=2, min_side=1, max_side=40))
)
ON_GRID = hnp.arrays(np.int32, st.integers(16, 60)).map(lambda a: (a / 2**16).astype(np.float32))


@settings(deadline=None)
@given(STATES)
def test_small_state_survives_the_round_trip(state: dict[str, Any]) -> None:
    data = container.dump(state, small=True)
    parsed = container.parse(data)
    assert_same(parsed, state)
    assert container.dump(parsed, small=True) == data


@settings(deadline=None)
@given(MANY | ON_GRID)
def test_arrays_are_restored_bit_for_bit(array: np.ndarray) -> None:
    table = packed_array(array)
    if table is not None:
        assert_same(unpacked_array(table), array)


@pytest.mark.parametrize(
    "array",
    [
        np.full(20, -0.0, np.float32),
        np.full(20, np.nan, np.float32),
        np.full(20, np.inf),
        np.full(20, 0.1),
        np.full(20, 2.0**60),
        np.full(20, 2**64 - 1, np.uint64),
        np.full(20, -(2**63), np.int64),
        np.zeros(3, np.int64),
        np.zeros(20, bool),
    ],
)
def test_what_would_lose_a_bit_is_not_packed(array: np.ndarray) -> None:
    assert packed_array(array) is None
    assert_same(container.parse(container.dump({"a": array}, small=True))["a"], array)


@pytest.mark.parametrize(
    ("array", "width"),
    [
        (np.arange(10**6, 10**6 + 3000), 4),  # the first difference is the first value
        (np.tile([5, -5], 50), 1),
        (np.tile([500, -500], 50) / 2**16, 2),
        (np.tile([2**20, 0], 50).astype(np.int32), 4),
    ],
)
def test_numbers_take_the_fewest_bytes(array: np.ndarray, width: int) -> None:
    table = packed_array(array)
    assert table is not None
    assert table["width"] == width


def test_rising_numbers_and_texts_become_small() -> None:
    state = {
        "where": np.arange(0, 70_000, 7),
        "names": [f"suffix3={i:05}" for i in range(10_000)],
    }
    plain, small = len(container.dump(state)), len(container.dump(state, small=True))
    assert small < plain / 20


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=16, max_size=40))
def test_texts_are_restored(texts: list[str]) -> None:
    table = packed_texts(texts)
    assert table is not None
    assert unpacked_texts(table) == texts


def test_texts_that_share_half_a_character_and_long_ones_are_restored() -> None:
    texts = ["é", "è", "\U0001f600", "\U0001f601"] + ["x" * 1000, "x" * 1000 + "y"] * 8
    table = packed_texts(texts)
    assert table is not None
    assert unpacked_texts(table) == texts


ARRAY = packed_array(np.arange(0, 4000, 40, dtype=np.int32).reshape(10, 10)) or {}
FLOATS = packed_array(np.arange(100, dtype=np.float32)) or {}
NAMES = packed_texts([f"name{i}" for i in range(100)]) or {}


def body(field: Any) -> bytes:
    data = bytes(msgpack.packb({"field": field}, use_bin_type=True))
    return struct.pack("<Q", len(data)) + zlib.compress(data)


@pytest.mark.parametrize(
    "field",
    [
        {**ARRAY, "width": 3},
        {**ARRAY, "width": 8},
        {**ARRAY, "width": None},
        {**ARRAY, "shape": [10, 11]},
        {**ARRAY, "shape": [-10, -10]},
        {**ARRAY, "shape": [2**62, 4]},
        {**ARRAY, "shape": [1] * 40 + [100]},
        {**ARRAY, "shape": 100},
        {**ARRAY, "data": ARRAY["data"][1:]},
        {**ARRAY, "data": "text"},
        {**ARRAY, "grid": True},
        {**ARRAY, "grid": 0},
        {**ARRAY, "delta": None},
        {**ARRAY, "__packed__": "|u1"},
        {**ARRAY, "__packed__": "|O"},
        {**ARRAY, "__packed__": "|b1"},
        {**ARRAY, "__packed__": []},
        {**ARRAY, "more": 1},
        {**ARRAY, "shape": [100], "width": 8, "data": b"\xff" * 800},
        {name: value for name, value in ARRAY.items() if name != "grid"},
        {**FLOATS, "grid": False},
        {**NAMES, "__texts__": ARRAY},
        {**NAMES, "__texts__": FLOATS},
        {**NAMES, "__texts__": 100},
        {**NAMES, "lengths": packed_array(np.full(100, 2))},
        {**NAMES, "lengths": packed_array(np.tile([-4, 5], 50))},
        {**NAMES, "__texts__": packed_array(np.full(100, 9))},
        {**NAMES, "__texts__": packed_array(np.full(100, -1))},
        {**NAMES, "data": NAMES["data"][:-1] + b"\xff"},
        {**NAMES, "data": None},
        {**NAMES, "more": 1},
    ],
    ids=str,
)
def test_damaged_packing_is_refused_with_the_name_of_the_field(field: dict[str, Any]) -> None:
    assert_refused(seal(body(field), version=2), "malformed body: field 'field'")


def test_packed_values_have_no_meaning_in_the_plain_format() -> None:
    plain = bytes(msgpack.packb({"field": ARRAY}, use_bin_type=True))
    assert_refused(seal(plain), "malformed body")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b[:5], "ends before its length"),
        (lambda b: struct.pack("<Q", 2**60) + b[8:], "unfolds to very many times its size"),
        (lambda b: struct.pack("<Q", 5) + b[8:], "another length"),
        (lambda b: struct.pack("<Q", 5000) + b[8:], "another length"),
        (lambda b: b[:-6], "another length"),
        (lambda b: b + b"more", "another length"),
        (lambda b: b[:8] + b"nonsense", "cannot be decompressed"),
    ],
)
def test_damaged_compression_is_refused(change: Any, message: str) -> None:
    assert_refused(seal(change(body(ARRAY)), version=2), message)


def test_flipped_bytes_behind_a_right_checksum_are_refused_or_read() -> None:
    state = {"a": np.arange(100), "b": [f"name{i}" for i in range(100)], "c": np.ones(50)}
    (length,) = struct.unpack_from("<Q", whole := body_of(container.dump(state, small=True)))
    packed = zlib.decompress(whole[8:])
    assert len(packed) == length
    rng = random.Random(0)
    for _ in range(500):
        damaged = bytearray(packed)
        damaged[rng.randrange(length)] ^= 1 << rng.randrange(8)
        data = struct.pack("<Q", length) + zlib.compress(bytes(damaged), 1)
        state_or_refusal(seal(data, version=2))


def test_texts_that_unfold_to_very_many_times_their_size_are_refused() -> None:
    n = 200_000
    shared, lengths = np.full(n, 255), np.zeros(n, np.int64)
    shared[0], lengths[0] = 0, 255
    bomb = {TEXTS: packed_array(shared), "lengths": packed_array(lengths), "data": b"a" * 255}
    with pytest.raises(ValueError, match="unfold to very many times"):
        unpacked_texts(bomb)
    few = [f"{'a' * 250}{i}" for i in range(10_000)]
    packed = packed_texts(few)
    assert packed is not None
    assert unpacked_texts(packed) == few
