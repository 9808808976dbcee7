"""Sequences as flat arrays: chunks, subsets, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.sequences import CHUNK_ROWS, UNKNOWN_LABEL, Sequences


def numbered(lengths) -> Sequences:
    """Sequences whose cells all hold the number of their row."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = np.arange(offsets[-1])
    return Sequences(
        offsets,
        rows[:, None].astype(np.int32),
        rows[:, None].astype(np.uint8),
        rows.astype(np.int32),
        rows.astype(np.float32),
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 30), st.integers(1000, 10_000)), max_size=40))
def test_chunks_are_whole_sequences_in_order(lengths):
    data = numbered(lengths)
    assert [s for chunk in data.chunks for s in range(*chunk)] == list(range(len(lengths)))
    for first, last in data.chunks:
        assert first < last
        rows = data.rows_of((first, last))
        assert rows.stop - rows.start == sum(lengths[first:last])
        # no chunk takes in another sequence once it is full
        assert sum(lengths[first : last - 1]) < CHUNK_ROWS
    sizes = [sum(lengths[slice(*chunk)]) for chunk in data.chunks]
    assert all(size >= CHUNK_ROWS for size in sizes[:-1])


def test_a_long_sequence_is_one_chunk():
    assert numbered([100_000]).chunks == [(0, 1)]
    assert numbered([100_000, 3, 3]).chunks == [(0, 1), (1, 3)]


def test_no_sequences_have_no_chunks():
    data = numbered([])
    assert (data.n_rows, data.n_sequences, data.chunks) == (0, 0, [])


def test_subset_takes_the_rows_of_its_sequences_in_the_given_order():
    data = numbered([3, 1, 0, 4, 2])
    some = data.subset(np.array([3, 0, 2, 3]))
    rows = [4, 5, 6, 7, 0, 1, 2, 4, 5, 6, 7]
    assert some.offsets.tolist() == [0, 4, 7, 7, 11]
    assert some.offsets.dtype == np.int64
    for name in ("feature_ids", "numeric", "labels", "weights"):
        array = getattr(some, name)
        assert array.ravel().tolist() == rows
        assert array.dtype == getattr(data, name).dtype
    assert data.subset(np.zeros(0, np.int64)).n_rows == 0


def test_rows_of_the_same_bins_are_neighbours() -> None:
    rng = np.random.default_rng(0)
    n_rows = 3 * CHUNK_ROWS + 5
    numeric = rng.integers(0, 3, (n_rows, 4)).astype(np.uint8)
    data = Sequences(
        offsets=np.array([0, n_rows]),
        feature_ids=np.zeros((n_rows, 0), np.int32),
        numeric=numeric,
        labels=np.zeros(n_rows, np.int32),
        weights=np.ones(n_rows, np.float32),
    )
    rows = np.concatenate(data.rows_by_bins)
    assert [len(piece) for piece in data.rows_by_bins] == [*[CHUNK_ROWS] * 3, 5]
    assert sorted(rows) == list(range(n_rows))
    changes = (numeric[rows[1:]] != numeric[rows[:-1]]).any(axis=1).sum()
    assert changes == len(np.unique(numeric, axis=0)) - 1


def test_sequences_without_annotation_have_unknown_labels_and_weight_1() -> None:
    rows = numbered([2, 0, 1])
    data = Sequences.unlabelled(rows.offsets, rows.feature_ids, rows.numeric)
    assert data.labels.tolist() == [UNKNOWN_LABEL] * 3
    assert data.weights.tolist() == [1.0] * 3
    assert (data.labels.dtype, data.weights.dtype) == (np.int32, np.float32)


def test_sequences_of_weight_0_are_left_out() -> None:
    data = replace(numbered([2, 1, 2]), weights=np.array([0, 0, 1, 0, 0.5], np.float32))
    assert data.with_weight().labels.tolist() == [2, 3, 4]
    everything = replace(data, weights=np.ones(5, np.float32))
    assert everything.with_weight() is everything
    with pytest.raises(ValueError, match=r"^treecrf: every sequence has weight 0"):
        replace(data, weights=np.zeros(5, np.float32)).with_weight()
