"""Packed data come back as they were, but for the digits of numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.pages.packing import packed, unpacked

texts = st.sampled_from(["", "~", "~0", "~~", "lower[0]=rome", "U-LOC", "probability"]) | st.text()
leaves = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | texts
values: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_plain_data_survive_the_way_through_json(value: Any) -> None:
    assert unpacked(json.loads(json.dumps(packed(value)))) == value


@given(st.floats(-1e300, 1e300))
def test_numbers_keep_four_digits(value: float) -> None:
    assert unpacked(packed([value]))[0] == pytest.approx(value, rel=1e-3)


def test_repeated_strings_and_names_are_written_once() -> None:
    value = [{"feature": "lower[0]=rome", "value": i} for i in range(50)]
    text = json.dumps(packed(value))
    assert text.count("lower[0]=rome") == 1
    assert text.count("feature") == 1
    assert len(text) < len(json.dumps(value)) / 2
