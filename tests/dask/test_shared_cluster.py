"""Trainings that share a cluster: at the same time, and after a driver that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from spacy_treecrf import BoostedCRF
from spacy_treecrf.dask import DaskBoostedCRF, mail
from spacy_treecrf.dask import crew as crews
from spacy_treecrf.dask.worker_state import WorkerState
from tests.dask.cluster_data import cut, make_data, stored

pytestmark = pytest.mark.slow

SETTINGS = {"rounds": 4, "linear_rounds": 1, "leaves": 8, "seed": 1}
WAIT = 240.0  # seconds: kernels may have to be compiled


class Interlocked:
    """Lets the first trees of two trainings come to two workers in opposite orders."""

    def __init__(self) -> None:
        self.submit = crews.Crew._submit
        self.asked: dict[str, int] = {}
        self.lock = threading.Lock()
        self.first_of_one, self.both_of_other = threading.Event(), threading.Event()

    def __call__(self, crew: crews.Crew, member: str, method: str, *args: Any) -> Any:
        if method != "grow":
            return self.submit(crew, member, method, *args)
        with self.lock:
            times = self.asked[crew.training] = self.asked.get(crew.training, 0) + 1
            is_one = next(iter(self.asked)) == crew.training
        if is_one and times == 2:
            assert self.both_of_other.wait(WAIT)
        if not is_one and times == 1:
            assert self.first_of_one.wait(WAIT)
        future = self.submit(crew, member, method, *args)
        if is_one:
            self.first_of_one.set()
        elif times == 2:
            self.both_of_other.set()
        return future


def test_two_trainings_at_once_do_not_lock_workers_of_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = make_data(1200)
    interlocked = Interlocked()
    monkeypatch.setattr(crews.Crew, "_submit", lambda crew, *args: interlocked(crew, *args))

    def train(client: Client) -> bytes:
        return stored(DaskBoostedCRF(client, **SETTINGS).fit(cut(data, 600)).to_local())

    with (
        ThreadPoolExecutor(2) as threads,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as one,
        Client(cluster) as other,
    ):
        tasks = [threads.submit(train, client) for client in (one, other)]
        found = [task.result(timeout=WAIT) for task in tasks]
    assert interlocked.both_of_other.is_set()
    assert found == [stored(BoostedCRF(**SETTINGS).fit(*data))] * 2


DRIVER = """
    import sys
    from tests.dask.cluster_data import cut, make_data
    from tests.dask.test_shared_cluster import SETTINGS
    from spacy_treecrf.dask import DaskBoostedCRF

    if __name__ == "__main__":
        DaskBoostedCRF(sys.argv[1], **SETTINGS).fit(cut(make_data(1200), 600))
"""


def stand_still() -> None:
    """Let this worker send the others no sums of trees."""
    WorkerState.whole_grow = WorkerState.grow  # type: ignore[attr-defined]
    WorkerState.grow = lambda *_: time.sleep(3)  # type: ignore[method-assign, assignment]


def go_on() -> None:
    WorkerState.grow = WorkerState.whole_grow  # type: ignore[attr-defined, method-assign]


def kept() -> tuple[int, int]:
    """How many trainings this worker knows, and how much mail it has."""
    return len(crews._STATES), len(mail._MAILBOX._mail)


def growing(dask_worker: Any) -> bool:
    return any(key.startswith("treecrf-grow") for key in map(str, dask_worker.state.tasks))


def until(what: Any) -> None:
    end = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_workers_let_go_of_a_training_whose_driver_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(textwrap.dedent(DRIVER), encoding="utf8")
    root = Path(__file__).parents[2]
    data = make_data(1200)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        silent = sorted(client.nthreads())[:1]
        client.run(stand_still, workers=silent)
        command = [sys.executable, str(script), cluster.scheduler_address]
        env = {**os.environ, "PYTHONPATH": str(root)}
        with subprocess.Popen(command, cwd=root, env=env) as driver:
            until(lambda: all(client.run(growing).values()))
            assert all(n_trainings for n_trainings, _ in client.run(kept).values())
            driver.send_signal(signal.SIGKILL)
        until(lambda: set(client.run(kept).values()) == {(0, 0)})
        until(lambda: not any(client.run(growing).values()))
        client.run(go_on, workers=silent)
        found = DaskBoostedCRF(client, **SETTINGS).fit(cut(data, 600))
        assert stored(found.to_local()) == stored(BoostedCRF(**SETTINGS).fit(*data))
        assert set(client.run(kept).values()) == {(0, 0)}
