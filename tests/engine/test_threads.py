"""Workers: order of results, errors, number of threads."""

from __future__ import annotations

import pytest

from spacy_treecrf.engine.threads import Workers


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
