"""Msgpack in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from srsly import msgpack

from spacy_treecrf.storage.msgpack_parts import LONG, packed_parts

PLAIN = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5)
)
BYTES = st.sampled_from([0, 1, 255, 256, LONG - 1, LONG, LONG + 1]).map(bytes)
VALUES = st.recursive(
    PLAIN | BYTES,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


@given(VALUES)
@settings(deadline=None)
def test_parts_are_those_of_a_whole(value: Any) -> None:
    assert b"".join(packed_parts(value)) == msgpack.packb(value, use_bin_type=True)


@pytest.mark.parametrize("size", [0, 3, LONG // 4, LONG])
def test_memory_of_arrays_is_packed_as_bytes_and_long_ones_are_not_copied(size: int) -> None:
    array = np.arange(size, dtype="<i4")
    view = array.view(np.uint8).data
    parts = packed_parts({"data": view})
    assert b"".join(parts) == msgpack.packb({"data": array.tobytes()}, use_bin_type=True)
    assert any(part is view for part in parts) == (array.nbytes >= LONG)
