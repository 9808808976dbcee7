"""What cannot be learned from is refused with the part or the worker that it is about."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster

from spacy_treecrf.dask import DaskBoostedCRF
from spacy_treecrf.dask.crew import _STATES
from tests.dask.cluster_data import cut, make_data

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def unreadable() -> Any:
    raise OSError("the disk is gone")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (([[{"a": "b"}]], [["X", "Y"]]), r"part parts\[1\]: X\[0\] has 1 positions"),
        (([[{"a": object()}]], [["X"]]), r"part parts\[1\]: X\[0\]\[0\]\['a'\] is of type object"),
        ((1, 2, 3), r"part parts\[1\]: the part is a tuple; expected a pair"),
        (([[{"a": "b"}]], [[7]]), "some parts have labels that are strings"),
    ],
)
def test_malformed_parts_are_named(client: Client, part: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DaskBoostedCRF(client, rounds=1).fit([*cut(make_data(5)), dask.delayed(part)])
    assert not any(client.run(lambda: len(_STATES)).values()), "something was left"


def test_parts_that_cannot_be_read_are_refused(client: Client) -> None:
    message = r"part parts\[1\] cannot be read: OSError: the disk is gone"
    with pytest.raises(ValueError, match=message):
        DaskBoostedCRF(client, rounds=1).fit([*cut(make_data(5)), dask.delayed(unreadable)()])


def test_no_labels_no_parts_and_no_files_are_refused(client: Client, tmp_path: Path) -> None:
    X, y = make_data(5)
    nothing = [[None] * len(labels) for labels in y]
    crf = DaskBoostedCRF(client, rounds=1)
    with pytest.raises(ValueError, match="holds no label at all"):
        crf.fit(cut((X, nothing), 2))
    with pytest.raises(ValueError, match="parts holds no parts"):
        crf.fit([])
    with pytest.raises(ValueError, match="parts is a int; use a dask bag"):
        crf.fit(3)
    with pytest.raises(ValueError, match="no file is called"):
        crf.fit(str(tmp_path / "*.conll"))
    (tmp_path / "bad.conll").write_text("a\tB\n\nc\n", encoding="utf8")
    (tmp_path / "a.conll").write_text("a\tB\n\nc\tD\n", encoding="utf8")
    with pytest.raises(ValueError, match=r"bad\.conll.*bad\.conll:3"):
        crf.fit([str(tmp_path / "a.conll"), str(tmp_path / "bad.conll")])


def find_distributions_in(folder: str) -> None:
    sys.path.insert(0, folder)


def forget_distributions_in(folder: str) -> None:
    sys.path.remove(folder)


def test_a_worker_with_another_version_is_named(client: Client, tmp_path: Path) -> None:
    found = tmp_path / "spacy_treecrf-0.0.7.dist-info"
    found.mkdir()
    (found / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: spacy-treecrf\nVersion: 0.0.7\n", encoding="utf8"
    )
    client.run(find_distributions_in, str(tmp_path))
    try:
        with pytest.raises(ValueError, match=r"worker tcp://\S+ has spacy-treecrf 0\.0\.7, and"):
            DaskBoostedCRF(client, rounds=1).fit(cut(make_data(5)))
    finally:
        client.run(forget_distributions_in, str(tmp_path))
    DaskBoostedCRF(client, rounds=1).fit(cut(make_data(5)))


def folder_of_others(folder: Path) -> Path:
    """Links to all packages of this environment but the one that is tested."""
    folder.mkdir()
    for place in map(Path, sys.path):
        if place.name == "site-packages":
            for entry in place.iterdir():
                ours = entry.name.startswith(("spacy_treecrf", "__editable__"))
                link = folder / entry.name
                if not ours and entry.suffix != ".pth" and not link.exists():
                    link.symlink_to(entry)
    return folder


def test_a_worker_without_the_package_is_named(tmp_path: Path) -> None:
    others = folder_of_others(tmp_path / "others")
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        command = [sys.executable, "-S", "-m", "distributed.cli.dask_worker"]
        command += [cluster.scheduler_address, "--no-nanny", "--no-dashboard", "--nthreads=1"]
        env = {**os.environ, "PYTHONPATH": str(others)}
        with subprocess.Popen(command, cwd=tmp_path, env=env) as worker:
            try:
                (known,) = client.nthreads()
                client.wait_for_workers(2, timeout=120)
                (new,) = set(client.nthreads()) - {known}
                message = rf"worker {new} does not have spacy-treecrf; install version"
                with pytest.raises(ValueError, match=message):
                    DaskBoostedCRF(client, rounds=1).fit(cut(make_data(5)))
            finally:
                worker.kill()
        assert not any(client.run(lambda: len(_STATES), workers=[known]).values())


@pytest.mark.parametrize(
    "settings",
    [
        {"step": "conjugate"},
        {"pseudo_rounds": 2},
        {"word_dropout": 0.2},
        {"missing": "surrogate"},
        {"warm_start": True},
    ],
)
def test_settings_that_a_cluster_cannot_have_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="on a cluster"):
        DaskBoostedCRF(**settings)


def test_a_scheduler_that_does_not_answer_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no scheduler answers at 'tcp://127.0.0.1:1'"):
        DaskBoostedCRF("tcp://127.0.0.1:1", rounds=1).fit(cut(make_data(5)))
