"""`spacy-treecrf train --scheduler` writes the file that `spacy-treecrf train` writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from distributed import Client, LocalCluster
from typer.testing import CliRunner

from spacy_treecrf.cli.app import app
from tests.dask.cluster_data import make_data

pytestmark = pytest.mark.slow

OPTIONS = ["--set", "rounds=6", "--set", "linear_rounds=2", "--set", "leaves=8"]


def write_parts(folder: Path, n_sequences: int, n_parts: int) -> None:
    X, y = make_data(n_sequences)
    texts = []
    for items, labels in zip(X, y, strict=True):
        rows = zip(items, labels, strict=True)
        texts.append("".join(f"{item['w']}\t{item['s']}\t{label}\n" for item, label in rows))
    for part in range(n_parts):
        some = texts[n_sequences * part // n_parts : n_sequences * (part + 1) // n_parts]
        (folder / f"part{part}.conll").write_text("\n".join(some), encoding="utf8")
    (folder / "all.txt").write_text("\n".join(texts), encoding="utf8")


def test_files_of_a_cluster_and_of_one_machine_are_equal(tmp_path: Path) -> None:
    write_parts(tmp_path, 800, 3)
    run = CliRunner().invoke
    local, there = tmp_path / "local.treecrf", tmp_path / "there.treecrf"
    done = run(app, ["train", str(tmp_path / "all.txt"), "-o", str(local), *OPTIONS])
    assert done.exit_code == 0, done.output
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        # an address of fsspec: no slash of it may get lost
        command = ["train", f"file://{tmp_path}/*.conll", "-o", str(there), *OPTIONS]
        done = run(app, [*command, "--scheduler", cluster.scheduler_address])
    assert done.exit_code == 0, done.output
    assert "800 sequences" in done.output
    assert there.read_bytes() == local.read_bytes()


def test_what_does_not_go_with_a_cluster_is_refused(tmp_path: Path) -> None:
    write_parts(tmp_path, 3, 1)
    command = ["train", str(tmp_path / "part0.conll"), "-o", str(tmp_path / "m.treecrf")]
    done = CliRunner().invoke(app, [*command, "--scheduler", "tcp://127.0.0.1:1", "--resume"])
    assert done.exit_code == 1
    done = CliRunner().invoke(app, [*command, "--scheduler", "tcp://127.0.0.1:1", *OPTIONS])
    assert done.exit_code == 1
    assert "no scheduler answers" in done.output
