"""What parts have seen, merged: the ids are those of one reader of all of them."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("dask")

from spacy_treecrf.dask.vocabulary import PartRows, Seen, Vocabulary, read_rows
from spacy_treecrf.engine.encoding.feature_dicts import new_ids, scan
from spacy_treecrf.engine.row_storage import IN_MEMORY

VALUES = st.one_of(
    st.sampled_from(["a", "b", "c"]),
    st.booleans(),
    st.sampled_from([1.5, 2.0]),
    st.none(),
    st.lists(st.sampled_from(["a", "d"]), max_size=2),
)
ITEMS = st.dictionaries(st.sampled_from(["w", "x", "y"]), VALUES, max_size=3)
PARTS = st.lists(st.lists(st.lists(ITEMS, max_size=2), max_size=2), min_size=1, max_size=5)


def read(part: list[Any], indicator: bool) -> tuple[PartRows, Seen]:
    labels = [["L"] * len(sequence) for sequence in part]
    rows, seen, _ = read_rows((part, labels), "part", indicator, IN_MEMORY)
    return rows, seen


@given(PARTS, st.integers(1, 5), st.booleans())
def test_parts_merged_by_several_workers_have_the_ids_of_one_reader(
    parts: list[Any], n_first: int, indicator: bool
) -> None:
    everything = Vocabulary(indicator)
    found = []
    for group in (parts[:n_first], parts[n_first:]):
        of_worker = Vocabulary(indicator)
        read_parts = [read(part, indicator) for part in group]
        own = [of_worker.merge(seen) for _, seen in read_parts]
        ids = everything.merge(of_worker.seen)
        for (rows, _), own_ids in zip(read_parts, own, strict=True):
            rows.events.rename(ids[own_ids])
            found.append(rows.events.ids)
    expected = new_ids(count().__next__, indicator)
    events = scan([sequence for part in parts for sequence in part], expected, "X")
    np.testing.assert_array_equal(np.concatenate(found), events.ids)
    assert everything.ids == expected
    assert list(everything.ids.strings) == list(expected.strings)  # columns follow this order
