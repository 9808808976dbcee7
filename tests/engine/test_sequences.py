from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.contexts import count_lags, list_contexts
from spacy_treecrf.engine.sequences import CHUNK_ROWS, Sequences
from spacy_treecrf.engine.threads import Workers


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
    for name in ("codes", "numeric", "labels", "weights"):
        array = getattr(some, name)
        assert array.ravel().tolist() == rows
        assert array.dtype == getattr(data, name).dtype
    assert data.subset(np.zeros(0, np.int64)).n_rows == 0


@pytest.mark.parametrize("order", range(5))
def test_lags_count_the_labels_before_a_row(order):
    lags = count_lags(numbered([6, 1, 2]).offsets, order)
    assert lags.tolist() == [min(t, order) for t in (0, 1, 2, 3, 4, 5, 0, 0, 1)]
    assert lags.dtype == np.uint8


@pytest.mark.parametrize(("n_labels", "order"), [(1, 2), (2, 3), (3, 2), (4, 0)])
def test_contexts_list_the_labels_before_a_row(n_labels, order):
    contexts = list_contexts(n_labels, order)
    assert contexts.first.tolist() == [sum(n_labels**i for i in range(m)) for m in range(order + 2)]
    for m in range(order + 1):
        for c in range(n_labels**m):
            labels = contexts.labels[contexts.first[m] + c].tolist()
            assert labels[m:] == [n_labels] * (order - m)
            assert sum(y * n_labels**lag for lag, y in enumerate(labels[:m])) == c


@pytest.mark.parametrize("threads", [1, 3])
def test_workers_keep_the_order_of_results(threads):
    with Workers(threads) as workers:
        assert workers.threads == threads
        assert workers.map(lambda i: i * i, range(50)) == [i * i for i in range(50)]


def test_workers_pass_on_errors():
    def fail(i):
        raise RuntimeError(f"item {i}")

    with Workers(2) as workers, pytest.raises(RuntimeError, match="item 0"):
        workers.map(fail, range(3))


def test_workers_use_all_cores_where_the_system_has_no_affinity(monkeypatch):
    """macOS and Windows have no os.sched_getaffinity."""
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    with Workers(0) as workers:
        assert workers.threads >= 1


def test_rows_of_the_same_bins_are_neighbours() -> None:
    rng = np.random.default_rng(0)
    n_rows = 3 * CHUNK_ROWS + 5
    numeric = rng.integers(0, 3, (n_rows, 4)).astype(np.uint8)
    data = Sequences(
        offsets=np.array([0, n_rows]),
        codes=np.zeros((n_rows, 0), np.int32),
        numeric=numeric,
        labels=np.zeros(n_rows, np.int32),
        weights=np.ones(n_rows, np.float32),
    )
    rows = np.concatenate(data.rows_by_bins)
    assert [len(piece) for piece in data.rows_by_bins] == [*[CHUNK_ROWS] * 3, 5]
    assert sorted(rows) == list(range(n_rows))
    changes = (numeric[rows[1:]] != numeric[rows[:-1]]).any(axis=1).sum()
    assert changes == len(np.unique(numeric, axis=0)) - 1
