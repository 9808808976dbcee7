"""Which rows each worker of a cluster is to have."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("distributed")

from spacy_treecrf.dask import crew as crews
from spacy_treecrf.dask.cluster_rows import share_out


def test_a_span_that_two_workers_have_stays_with_one() -> None:
    shared = share_out({"a": [0, 1], "b": [1]}, {0: 10, 1: 10})
    assert sorted(number for own in shared.values() for number in own) == [0, 1]


def test_lost_spans_go_to_those_with_least() -> None:
    assert share_out({"a": [0], "b": []}, {0: 10, 1: 10}) == {"a": [0], "b": [1]}


def test_workers_that_are_lost_again_and_again_end_the_training() -> None:
    class Client:
        """A cluster that has a worker whenever it is asked, and none that answers."""

        def __getattr__(self, name: str) -> Any:
            raise AssertionError("nothing is asked of it any more")

    crew = crews.Crew(Client())  # type: ignore[arg-type]
    crew._settled = crews.MOST_LOSSES
    with pytest.raises(ValueError, match="lost 20 times without a finished round"):
        crew.settle()
