"""The hash table of keys against a dict."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.features.kernels.key_table import KeyTable

KEYS = st.lists(st.integers(0, 40) | st.integers(0, 2**64 - 1), max_size=60)


@settings(max_examples=100, deadline=None)
@given(st.lists(KEYS, max_size=4), st.integers(0, 1))
def test_rows_count_up_as_keys_appear(batches: list[list[int]], first_row: int) -> None:
    table = KeyTable(first_row)
    expected: dict[int, int] = {}
    for keys in batches:
        before = len(expected)
        rows, new = table.rows_of(np.array(keys, np.uint64))
        assert rows.tolist() == [
            expected.setdefault(key, len(expected) + first_row) for key in keys
        ]
        fresh = list(dict.fromkeys(keys[i] for i in new.tolist()))
        assert fresh == list(expected)[before:]
        assert len(table) == len(expected)


def test_table_grows_in_the_middle_of_a_batch() -> None:
    table = KeyTable(1)
    keys = np.arange(100_000, dtype=np.uint64) << np.uint64(40)
    rows, new = table.rows_of(np.concatenate([keys, keys[::-1]]))
    assert rows[: len(keys)].tolist() == list(range(1, len(keys) + 1))
    assert (rows[len(keys) :] == rows[: len(keys)][::-1]).all()
    assert new.tolist() == list(range(len(keys)))
