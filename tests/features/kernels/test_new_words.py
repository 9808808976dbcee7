"""The index of rising keys against a dict, for keys that are spread and for those that are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.kernel import kernel
from spacy_treecrf.features.kernels.new_words import key_index, place_of

KEYS = st.integers(0, 50) | st.integers(0, 2**64 - 1) | st.integers(2**64 - 50, 2**64 - 1)


@kernel
def places(keys, first, shift, words, out):  # type: ignore[no-untyped-def]
    """Write the place of each word."""
    for i in range(len(words)):
        out[i] = place_of(keys, first, shift, words[i])


@settings(max_examples=100, deadline=None)
@given(st.sets(KEYS, max_size=200), st.lists(KEYS, max_size=20))
@example(set(), [0, 2**64 - 1])
@example(set(range(100)), [*range(101)])
def test_keys_are_where_they_are(known: set[int], asked: list[int]) -> None:
    index = key_index(np.array(sorted(known), np.uint64))
    asked += sorted(known)
    out = np.full(len(asked), -9)
    places(index.keys, index.first, index.shift, np.array(asked, np.uint64), out)
    expected = {key: place for place, key in enumerate(sorted(known))}
    assert out.tolist() == [expected.get(key, -1) for key in asked]


@pytest.mark.parametrize("n", [1, 7, 8, 9, 1000, 100_000])
def test_buckets_are_small_where_keys_are_spread(n: int) -> None:
    keys = np.sort(np.random.default_rng(0).integers(0, 2**64 - 1, n, np.uint64))
    assert np.diff(key_index(keys).first).max() <= 40
