"""Many labels need neither more files nor more memory at a time than some of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from distributed import Client
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf import BoostedCRF
from spacy_treecrf.dask import DaskBoostedCRF, worker_state
from spacy_treecrf.dask.cluster_booster import BATCH_LABELS, batches
from spacy_treecrf.dask.shard import _rooms_in_files
from spacy_treecrf.engine.row_storage import RowStorage
from tests.dask.cluster_data import cut, make_data, stored


@given(n_entries=st.lists(st.integers(0, 50), max_size=200), most=st.integers(1, 400))
def test_batches_have_all_labels_in_order_and_are_not_too_large(n_entries, most) -> None:
    found = batches(n_entries, most)
    assert [label for batch in found for label in batch] == list(range(len(n_entries)))
    for batch in found:
        assert 1 <= len(batch) <= BATCH_LABELS
        assert len(batch) == 1 or sum(n_entries[label] for label in batch) <= most


def test_the_number_of_files_does_not_depend_on_the_number_of_labels(tmp_path: Path) -> None:
    made = []

    class Counting(RowStorage):
        def _mapped(self, shape, dtype):
            made.append(shape)
            return super()._mapped(shape, dtype)

    rooms = _rooms_in_files(Counting(str(tmp_path), least_bytes=1), 300, 1000)
    assert len(rooms) == 300
    assert len(made) == 2
    for number, room in enumerate(rooms):
        room.magnitude[:] = number
        room.sampled[:] = number % 2
    assert [float(room.magnitude.max()) for room in rooms] == list(np.arange(300.0))


@pytest.mark.slow
def test_rows_in_files_give_the_same_model(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(worker_state, "RowStorage", partial(RowStorage, least_bytes=1))
    data = make_data(300)
    settings = {"rounds": 4, "linear_rounds": 1, "leaves": 8, "family": "separate"}
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as c:
        found = DaskBoostedCRF(c, **settings, spill=str(tmp_path)).fit(cut(data, 150))
    local = BoostedCRF(**settings, spill=str(tmp_path)).fit(*data)
    assert stored(found.to_local()) == stored(local)
