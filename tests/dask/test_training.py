"""Models that a cluster of processes trains equal the local ones, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.bag
import pytest
from distributed import Client, LocalCluster

from spacy_treecrf import BoostedCRF
from spacy_treecrf.dask import DaskBoostedCRF, crew
from tests.dask.cluster_data import cut, make_data, stored

pytestmark = pytest.mark.slow

SMALL = {"rounds": 6, "linear_rounds": 2, "leaves": 12, "seed": 3}
KINDS: dict[str, dict[str, Any]] = {
    "separate": {"family": "separate"},
    "joint": {"family": "joint"},
    "order 0": {"order": 0},
    "mixing": {"family": "separate", "gamma": "mixing"},
    "gradient": {"family": "joint", "step": "gradient"},
    "unbiased": {"family": "joint", "unbiased": True},
    "drawn": {"family": "separate", "subsample": 0.7, "colsample": 0.7, "node_colsample": 0.7},
    "missing indicator": {"family": "separate", "missing": "indicator"},
    "missing imputation": {"family": "separate", "missing": "imputation"},
    "observed": {"family": "separate", "constraints": "observed"},
    "line search": {"family": "separate", "line_search": True},
}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("kind", KINDS)
def test_two_workers_learn_what_one_machine_learns(client: Client, kind: str) -> None:
    settings = {**SMALL, **KINDS[kind]}
    data = make_data(700, unknown=0.05)
    found = DaskBoostedCRF(client, **settings).fit(cut(data, 3, 3, 200, 450, 460))
    assert stored(found.to_local()) == stored(BoostedCRF(**settings).fit(*data))


@pytest.mark.parametrize("n_workers", [1, 3])
def test_no_number_of_workers_and_no_cutting_changes_a_model(n_workers: int) -> None:
    data = make_data(900)
    expected = stored(BoostedCRF(**SMALL, family="separate").fit(*data))
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=2, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        for cuts in ([], [899], list(range(50, 900, 50))):
            found = DaskBoostedCRF(client, **SMALL, family="separate").fit(cut(data, *cuts))
            assert stored(found.to_local()) == expected, cuts
        partial, dev = make_data(600, unknown=0.05), make_data(60, seed=1)
        for kind in ("joint", "drawn", "missing indicator", "missing imputation"):
            settings = {**SMALL, "rounds": 4, "patience": 1, **KINDS[kind]}
            found = DaskBoostedCRF(client, **settings).fit(cut(partial, 7, 7, 400), cut(dev, 20))
            local = BoostedCRF(**settings).fit(*partial, *dev)
            assert stored(found.to_local()) == stored(local), kind


def test_held_out_parts_stop_at_the_same_round(client: Client) -> None:
    data, dev = make_data(400), make_data(150, seed=1)
    settings = {**SMALL, "rounds": 25, "patience": 2, "family": "separate", "shrinkage": 1.0}
    local = BoostedCRF(**settings).fit(*data, *dev)
    found = DaskBoostedCRF(client, **settings).fit(cut(data, 100, 170), cut(dev, 40, 90))
    assert found.to_local().rounds_ == local.rounds_ < 25
    assert stored(found.to_local()) == stored(local)


def test_bags_and_column_files_are_read_where_they_will_live(
    client: Client, tmp_path: Path
) -> None:
    X, y = make_data(120)
    pairs = dask.bag.from_sequence(list(zip(X, y, strict=True)), npartitions=5)
    found = DaskBoostedCRF(client, **SMALL).fit(pairs)
    local = BoostedCRF(**SMALL).fit(X, y)
    assert stored(found.to_local()) == stored(local)
    bag = dask.bag.from_sequence(X, npartitions=3)
    assert found.predict(bag).compute() == local.predict(X)
    delayed = found.predict_marginals([dask.delayed(X[:20]), dask.delayed(X[20:])])
    first, second = dask.compute(*delayed)
    assert first + second == local.predict_marginals(X)
    files = []
    for part in range(3):
        rows = [
            "\n".join(
                f"{item['w']}\t{item['s']}\t{label}" for item, label in zip(*pair, strict=True)
            )
            for pair in zip(X[part::3], y[part::3], strict=True)
        ]
        path = tmp_path / f"part{part}.conll"
        path.write_text("\n\n".join(rows) + "\n", encoding="utf8")
        files.append(path)
    from_files = DaskBoostedCRF(client, **SMALL).fit(str(tmp_path / "*.conll"))
    assert from_files.to_local().classes_ == local.classes_


def test_integer_labels_and_labels_of_one_part_only(client: Client) -> None:
    X, y = make_data(200)
    labels = [[int(str(label)[1:]) for label in some] for some in y]
    labels[-1] = [77] * len(labels[-1])
    settings = {**SMALL, "family": "separate"}
    local = BoostedCRF(**settings).fit(X, labels)
    found = DaskBoostedCRF(client, **settings).fit(cut((X, labels), 60, 199))
    assert found.classes_ == local.classes_
    assert stored(found.to_local()) == stored(local)


def test_bytes_and_messages_of_each_round_are_counted(client: Client) -> None:
    found = DaskBoostedCRF(client, **SMALL).fit(cut(make_data(700), 350))
    assert len(found.traffic_) == SMALL["rounds"]
    assert all(each.messages and each.driver_bytes for each in found.traffic_)
    assert found.traffic_[-1].worker_bytes > 0


def test_results_may_come_when_the_waiting_for_them_ends(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "POLL_SECONDS", 2e-4)
    data = make_data(300)
    for _ in range(2):
        found = DaskBoostedCRF(client, **SMALL).fit(cut(data, 100))
    assert stored(found.to_local()) == stored(BoostedCRF(**SMALL).fit(*data))
