"""Independent trainings as tasks of a cluster of processes: what they learn is what one would."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from spacy_treecrf import SECOCCRF, BoostedCRF
from spacy_treecrf.dask import DaskBoostedCRF, average, independent_calls, output_code
from spacy_treecrf.tuning.journal import Journal, Result
from spacy_treecrf.tuning.search import Plan, search
from spacy_treecrf.tuning.training import load_config
from tests.cli.calls import good
from tests.dask.cluster_data import cut, make_data, stored
from tests.tuning.tiny_config import LEAVES, write_config, write_docs

pytestmark = pytest.mark.slow

SMALL = {"rounds": 4, "linear_rounds": 2, "leaves": 6, "subsample": 0.6}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_an_average_of_seeds_is_that_of_local_models(client: Client) -> None:
    data, dev = make_data(80), make_data(20, seed=1)
    found = average(*data, *dev, seeds=[3, 1, 2], client=client, **SMALL)
    local = [BoostedCRF(**SMALL, seed=seed).fit(*data, *dev) for seed in (3, 1, 2)]
    assert stored(found) == stored(BoostedCRF.average(local))


def test_nothing_to_do_is_done_at_once(client: Client) -> None:
    with independent_calls(client) as run_all:
        assert list(run_all([])) == []


def test_wrong_averages_are_refused(client: Client) -> None:
    data = make_data(5)
    with pytest.raises(ValueError, match=r"^treecrf: seeds is empty"):
        average(*data, seeds=[], client=client)
    with pytest.raises(ValueError, match=r"^treecrf: setting 'leaves' is 0"):
        average(*data, seeds=[1], client=client, leaves=0)
    with pytest.raises(ValueError, match=r"^treecrf: X holds 5 sequences, y holds 4"):
        average(data[0], data[1][:4], seeds=[1, 2], client=client)


@pytest.mark.parametrize(
    "settings",
    [
        {"base": BoostedCRF(order=0, rounds=3, leaves=4), "training": "columns", "bits": 11},
        {"base": BoostedCRF(rounds=3, leaves=4), "decoding": "l1", "code": "exhaustive"},
        {"base": "perceptron", "bits": 9, "seed": 5},
    ],
    ids=["cross-fitted", "whole", "perceptron"],
)
def test_an_output_code_of_independent_bits_is_the_local_one(
    client: Client, settings: dict[str, Any]
) -> None:
    data, dev = make_data(60, unknown=0.05), make_data(20, seed=1)
    for given in (data, (*data, *dev)):
        found = output_code(*given, client=client, **settings)
        assert type(found) is SECOCCRF
        local = SECOCCRF(**settings).fit(*given)
        assert stored(found) == stored(local)
        assert found.predict(dev[0]) == local.predict(dev[0])


def test_early_stopping_of_an_output_code_leaves_no_task(client: Client) -> None:
    def with_more_labels(X: list[Any], y: list[Any]) -> list[list[str]]:
        pairs = [zip(items, labels, strict=True) for items, labels in zip(X, y, strict=True)]
        return [[f"{label}.{len(item['w'])}" for item, label in own] for own in pairs]

    (X, y), (X_dev, y_dev) = make_data(60), make_data(20, seed=1)
    wrong = [list(reversed(labels)) for labels in with_more_labels(X_dev, y_dev)]
    given = (X, with_more_labels(X, y), X_dev, wrong)
    base = BoostedCRF(order=0, rounds=2, leaves=4, patience=1)
    settings: dict[str, Any] = {"base": base, "decoding": "l1", "bits": 60}
    local = SECOCCRF(**settings).fit(*given)
    found = output_code(*given, client=client, **settings)
    assert found.model_.rounds == local.model_.rounds < 60
    assert stored(found) == stored(local)
    for _ in range(500):  # the client forgets them in a thread of its own
        if client.futures:
            time.sleep(0.02)
    assert not client.futures


def test_bits_that_depend_on_each_other_are_refused() -> None:
    data = make_data(5)
    with pytest.raises(ValueError, match=r"'training' is 'joint'.*'columns' on a cluster"):
        output_code(*data)
    with pytest.raises(ValueError, match=r"'history' is 2.*0 on a cluster"):
        output_code(*data, history=2)
    with pytest.raises(ValueError, match=r"'warm_start' is True"):
        output_code(*data, training="columns", warm_start=True)


def test_a_search_on_a_cluster_finds_what_a_local_one_finds(client: Client, tmp_path: Path) -> None:
    config = load_config(write_config(tmp_path))
    train = write_docs(tmp_path / "train.spacy", repeats=6)
    trials: list[dict[str, Any]] = [{LEAVES: 2}, {LEAVES: 0}, {LEAVES: 4}]
    plan = Plan(config, trials, train, None, folds=2, hold_out=0.2, seed=0)
    seen: list[Result | None] = []
    local = search(plan, Journal(tmp_path / "local.jsonl", plan.about()))
    with independent_calls(client) as run_all:
        journal = Journal(tmp_path / "cluster.jsonl", plan.about())
        found = search(plan, journal, seen.append, run_all)
        again = search(plan, journal, None, run_all)

    def of_result(result: Result) -> dict[str, Any]:
        """A result without what depends on the machine."""
        scores = {name: own for name, own in result.scores.items() if name != "speed"}
        return {**asdict(result), "scores": scores, "seconds": 0}

    def plain(trials: list[Any]) -> list[Any]:
        rows = [(trial.settings, [of_result(own) for own in trial.results]) for trial in trials]
        return sorted(rows, key=lambda row: json.dumps(row[0]))

    assert plain(found) == plain(local) == plain(again)
    assert [trial.score for trial in found] == [trial.score for trial in local]
    assert len(seen) == 6
    assert len(journal) == 6


def test_tune_writes_the_same_model_with_a_scheduler(client: Client, tmp_path: Path) -> None:
    X, y = make_data(60)
    rows = [
        "\n".join(f"{item['w']} {label}" for item, label in zip(items, labels, strict=True))
        for items, labels in zip(X, y, strict=True)
    ]
    data = tmp_path / "train.conll"
    data.write_text("\n\n".join(rows) + "\n", encoding="utf-8")
    asked = ["tune", data, "--set", "leaves=2,6", "--set", "rounds=3", "--folds", "2", "--json"]
    local = good(*asked, "-o", tmp_path / "local.treecrf")
    address = client.scheduler_info()["address"]
    found = good(*asked, "-o", tmp_path / "cluster.treecrf", "--scheduler", address)
    assert json.loads(found)["trials"] == json.loads(local)["trials"]
    models = [(tmp_path / f"{name}.treecrf").read_bytes() for name in ("local", "cluster")]
    assert models[0] == models[1]


def test_an_unreachable_scheduler_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match=r"^treecrf: no scheduler answers at 'tcp:"),
        independent_calls("tcp://127.0.0.1:9"),
    ):
        pass


def test_workers_spill_and_learn_the_same_model(client: Client, tmp_path: Path) -> None:
    data, dev = make_data(1500, unknown=0.05), make_data(100, seed=1)
    for family in ("separate", "joint"):
        settings = {**SMALL, "family": family}
        spilled = DaskBoostedCRF(client, **settings, spill=tmp_path)
        spilled.fit(cut(data, 3, 700, 900), cut(dev, 40))
        assert stored(spilled.to_local()) == stored(BoostedCRF(**settings).fit(*data, *dev))
        assert list(tmp_path.iterdir()) == []
    missing = DaskBoostedCRF(client, **SMALL, spill=tmp_path / "missing")
    with pytest.raises(ValueError, match=r"^treecrf: part parts\[0\]: there is no folder .*"):
        missing.fit(cut(data, 700))
