"""Workers that are killed in any phase, and drivers that are killed, lose nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from spacy_treecrf import BoostedCRF
from spacy_treecrf.dask import DaskBoostedCRF
from spacy_treecrf.dask import crew as crews
from spacy_treecrf.dask.worker_state import WorkerState
from tests.dask.cluster_data import cut, make_data, stored

pytestmark = pytest.mark.slow

SETTINGS = {"rounds": 7, "linear_rounds": 3, "leaves": 12, "family": "separate", "seed": 1}


def own_pid() -> int:
    return os.getpid()


class Killer:
    """Kills a worker when a method has been asked for some times, or some seconds later."""

    def __init__(self, client: Client, method: str, times: int, seconds: float) -> None:
        self.method, self.left, self.seconds = method, times, seconds
        self.pids = client.run(own_pid)
        self.submit = crews.Crew._submit
        self.killed = False

    def __call__(self, crew: crews.Crew, member: str, method: str, *args: Any) -> Any:
        future = self.submit(crew, member, method, *args)
        if method == self.method and member in self.pids:
            self.left -= 1
            if not self.left and not self.killed:
                self.killed = True
                time.sleep(self.seconds)
                os.kill(self.pids[member], signal.SIGKILL)
        return future


# While trees grow, workers wait for mail of each other: of one that is gone from the start, and of
# one that goes in between.
@pytest.mark.parametrize(
    ("method", "times", "seconds"),
    [
        ("tally", 2, 0.0),
        ("assemble", 1, 0.0),
        ("bound_linear", 3, 0.0),
        ("outgoing", 2, 0.0),
        ("move", 4, 0.0),
        ("grow", 1, 0.0),
        ("grow", 4, 0.1),
    ],
)
def test_a_killed_worker_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, method: str, times: int, seconds: float
) -> None:
    data = make_data(1200)
    expected = stored(BoostedCRF(**SETTINGS).fit(*data))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        killer = Killer(client, method, times, seconds)
        monkeypatch.setattr(crews.Crew, "_submit", lambda crew, *args: killer(crew, *args))
        found = DaskBoostedCRF(client, **SETTINGS).fit(cut(data, 300, 600, 900))
        assert killer.killed
        assert stored(found.to_local()) == expected


def fail(*_: Any) -> None:
    raise RuntimeError("no luck")


def break_growing() -> None:
    WorkerState.whole_grow = WorkerState.grow  # type: ignore[attr-defined]
    WorkerState.grow = fail  # type: ignore[method-assign, assignment]


def mend_growing() -> None:
    WorkerState.grow = WorkerState.whole_grow  # type: ignore[attr-defined, method-assign]


@pytest.mark.parametrize("which", [0, 1])
def test_an_error_of_any_worker_ends_the_training_and_frees_the_others(which: int) -> None:
    data = make_data(1200)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        broken = [sorted(client.nthreads())[which]]
        client.run(break_growing, workers=broken)
        with pytest.raises(RuntimeError, match="no luck"):
            DaskBoostedCRF(client, **SETTINGS).fit(cut(data, 600))
        client.run(mend_growing, workers=broken)
        found = DaskBoostedCRF(client, **SETTINGS).fit(cut(data, 600))
        assert stored(found.to_local()) == stored(BoostedCRF(**SETTINGS).fit(*data))


def when_round(n: int, act: Callable[[], object]) -> Callable[[Any], None]:
    return lambda info: act() if info.round == n else None  # type: ignore[return-value]


def test_a_worker_that_joins_is_used_and_changes_nothing() -> None:
    data, dev = make_data(1200), make_data(60, seed=2)
    expected = stored(BoostedCRF(**SETTINGS).fit(*data, *dev))
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):

        def join() -> None:
            cluster.scale(2)
            client.wait_for_workers(2)

        found = DaskBoostedCRF(client, **SETTINGS, callback=when_round(2, join))
        found.fit(cut(data, 300, 600, 900), cut(dev, 30))
        assert stored(found.to_local()) == expected
        assert found.traffic_[1].worker_bytes == 0
        assert found.traffic_[-1].worker_bytes > 0


DRIVER = """
    import os, signal, sys
    from tests.dask.cluster_data import cut, make_data
    from tests.dask.test_faults import SETTINGS
    from spacy_treecrf.dask import DaskBoostedCRF

    def stop(info):
        if info.round == 5:
            os.kill(os.getpid(), signal.SIGKILL)

    if __name__ == "__main__":
        crf = DaskBoostedCRF(sys.argv[1], **SETTINGS, callback=stop)
        dev = cut(make_data(60, seed=2), 30)
        crf.fit(cut(make_data(1200), 600), dev, checkpoint=sys.argv[2], checkpoint_rounds=2)
"""


def test_a_killed_driver_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    data, dev = make_data(1200), make_data(60, seed=2)
    expected = stored(BoostedCRF(**SETTINGS).fit(*data, *dev))
    script = tmp_path / "driver.py"
    script.write_text(textwrap.dedent(DRIVER), encoding="utf8")
    checkpoint = tmp_path / "so_far.treecrf"
    root = Path(__file__).parents[2]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        command = [sys.executable, str(script), cluster.scheduler_address, str(checkpoint)]
        env = {**os.environ, "PYTHONPATH": str(root)}
        run = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True)
        assert run.returncode == -signal.SIGKILL, run.stderr
        assert checkpoint.is_file()
        crf = DaskBoostedCRF(client, **SETTINGS)
        crf.fit(cut(data, 100, 130), cut(dev, 10), checkpoint=checkpoint, checkpoint_rounds=2)
        assert len(crf.traffic_) == SETTINGS["rounds"] - 4
        assert stored(crf.to_local()) == expected
        with pytest.raises(ValueError, match="is of a training on"):
            crf.fit(cut(make_data(30)), checkpoint=checkpoint)
        with pytest.raises(ValueError, match="with other settings"):
            DaskBoostedCRF(client, **{**SETTINGS, "leaves": 3}).fit(
                cut(data), checkpoint=checkpoint
            )
