"""Training on a Dask cluster of this machine: one worker, two workers, and no cluster at all.

`--picture FILE` fits the cost model of the guide instead, and draws it.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import dask
import numpy as np

from spacy_treecrf import BoostedCRF
from spacy_treecrf.dask import DaskBoostedCRF
from spacy_treecrf.dask.connecting import connected
from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.storage import container

from dask_costs import Size, draw, fit, pays_from
from timing import peak_megabytes, report, run_python, timed

LENGTH = 24  # rows of a sequence
KINDS = 32  # values of a column, whatever its vocabulary, fall into so many kinds
NOISE = 0.2  # share of random labels

Part = tuple[int, int, int, int, int]  # rows, columns, labels, vocabulary, seed
Labelled = tuple[list[list[dict[str, str]]], list[list[str]]]


def make_part(n_rows: int, n_columns: int, n_labels: int, vocabulary: int, seed: int) -> Labelled:
    """Random texts, frequent ones first; labels follow two columns and the label before."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    names = [f"c{c}" for c in range(n_columns)]
    for _ in range(n_rows // LENGTH):
        ranks = (vocabulary ** rng.random((LENGTH, n_columns)) - 1).astype(int)
        noise, drawn = rng.random(LENGTH) < NOISE, rng.integers(0, n_labels, LENGTH)
        before, labels = 0, []
        for t in range(LENGTH):
            kind = int(ranks[t, 0] % KINDS + 3 * (ranks[t, 1] % 7) + before)
            before = int(drawn[t]) if noise[t] else kind % n_labels
            labels.append(f"L{before}")
        X.append([dict(zip(names, map(str, row), strict=True)) for row in ranks.tolist()])
        y.append(labels)
    return X, y


def digest(crf: BoostedCRF) -> str:
    return hashlib.blake2b(container.dump(crf.model_.to_state()), digest_size=8).hexdigest()


def cpu_seconds() -> float:
    """Of this process, all threads together: what counts on a busy machine."""
    return time.process_time()


def on_cluster(parts: list[Part], n_workers: int, settings: dict[str, Any]) -> dict[str, Any]:
    """One training on workers of one thread each; they make their parts themselves."""
    marks: list[tuple[float, list[float]]] = []
    delayed = [dask.delayed(make_part, pure=False)(*part) for part in parts]
    with connected(None, n_workers) as client:
        # Each worker has rows, and mail: a training of few rows would stay on one of them.
        small = [dask.delayed(make_part, pure=False)(9600, *part[1:]) for part in parts[:n_workers]]
        warm = {**settings, "rounds": settings["linear_rounds"] + 2}
        DaskBoostedCRF(client, **warm).fit(small)  # compiles kernels

        def note(info: RoundInfo) -> None:
            marks.append((info.seconds, list(client.run(cpu_seconds).values())))

        crf = DaskBoostedCRF(client, **settings, callback=note)
        before, driver = client.run(cpu_seconds), cpu_seconds()
        _, total = timed(lambda: crf.fit(delayed))
        driver = cpu_seconds() - driver
        after = client.run(cpu_seconds)
        workers = client.run(peak_megabytes)
    n_linear = settings["linear_rounds"]
    trees = crf.traffic_[n_linear:]
    (_, last_linear), (_, last) = marks[n_linear - 1], marks[-1]
    of_trees = max(b - a for a, b in zip(last_linear, last, strict=True))
    return {
        "side": f"{n_workers} workers of one thread",
        "seconds": total,
        "rounds_seconds": marks[-1][0],
        "linear_seconds": marks[n_linear - 1][0] / n_linear,
        "tree_seconds": (marks[-1][0] - marks[n_linear - 1][0]) / len(trees),
        "tree_cpu_seconds": of_trees / len(trees),
        "features": len(crf.to_local().model_.columns.counts),
        "worker_cpu_seconds": sorted(after[worker] - before[worker] for worker in after),
        "driver_cpu_seconds": driver,
        "model": digest(crf.to_local()),
        "messages_per_round": sum(each.messages for each in trees) / len(trees),
        "exchanges_per_round": sum(each.exchanges for each in trees) / len(trees),
        "driver_bytes_per_round": sum(each.driver_bytes for each in trees) / len(trees),
        "worker_bytes_per_round": sum(each.worker_bytes for each in trees) / len(trees),
        "driver_megabytes": peak_megabytes(),
        "worker_megabytes": sorted(workers.values()),
    }


def on_this_machine(parts: list[Part], threads: int, settings: dict[str, Any]) -> dict[str, Any]:
    """The same training without a cluster; `seconds` are with the making of the parts."""
    seconds: list[float] = []
    made, making = timed(lambda: [make_part(*part) for part in parts])
    X, y = [x for part in made for x in part[0]], [labels for part in made for labels in part[1]]
    del made
    crf_settings = {**settings, "callback": lambda info: seconds.append(info.seconds)}
    warm = {**settings, "rounds": settings["linear_rounds"] + 2}
    BoostedCRF(**warm).fit(X[:100], y[:100])
    crf = BoostedCRF(**crf_settings, threads=threads)
    before = cpu_seconds()
    _, fitting = timed(lambda: crf.fit(X, y))
    return {
        "side": f"no cluster, {threads} threads",
        "seconds": making + fitting,
        "rounds_seconds": seconds[-1],
        "cpu_seconds": cpu_seconds() - before,
        "model": digest(crf),
        "megabytes": peak_megabytes(),
    }


def in_child(options: argparse.Namespace, side: str, rows: int) -> dict[str, Any]:
    """One side in a process of its own, so that its memory is its own."""
    names = ("columns", "labels", "vocabulary", "parts", "rounds", "linear_rounds")
    chosen = [f"--{name.replace('_', '-')}={getattr(options, name)}" for name in names]
    found: dict[str, Any] = run_python(__file__, f"--side={side}", f"--rows={rows}", *chosen)
    del found["benchmark"], found["cores"]
    report("dask", rows=rows, **found)
    return found


def compare(options: argparse.Namespace, rows: int) -> None:
    """All sides, and how they compare."""
    one, two = (in_child(options, str(n), rows) for n in (1, 2))
    ratios: dict[str, Any] = {
        "one_worker_beside_two": one["seconds"] / two["seconds"],
        "one_worker_beside_two_in_rounds": one["rounds_seconds"] / two["rounds_seconds"],
    }
    models = {one["model"], two["model"]}
    if not options.no_local:
        local = in_child(options, "0", rows)
        models.add(local["model"])
        ratios["two_workers_beside_two_threads"] = two["seconds"] / local["seconds"]
        ratios["two_workers_beside_two_threads_in_rounds"] = (
            two["rounds_seconds"] / local["rounds_seconds"]
        )
    half = in_child(options, "2", rows // 2)
    for name, of_half, of_all in (
        ("driver", half["driver_megabytes"], two["driver_megabytes"]),
        ("worker", half["worker_megabytes"][-1], two["worker_megabytes"][-1]),
    ):
        ratios[f"{name}_megabytes_of_half_and_all_rows"] = [of_half, of_all]
    report("dask", **ratios, models_are_equal=len(models) == 1)


def model_costs(options: argparse.Namespace, rows: int) -> None:
    """Fit the cost model to runs of an eighth and a quarter of the rows, and check it on half."""

    def run(n_rows: int, n_workers: int) -> tuple[Size, dict[str, Any]]:
        found = in_child(options, str(n_workers), n_rows)
        leaves = BoostedCRF().leaves
        size = (n_rows, options.columns, options.labels, leaves, found["features"], n_workers)
        return Size(*size), found

    runs = [run(rows // part, n) for part in (8, 4) for n in (1, 2)]
    checked = run(rows // 2, 2)
    n_trees = options.rounds - options.linear_rounds
    for explained in ("tree_seconds", "tree_cpu_seconds"):
        costs = fit(runs, explained)
        size, found = checked
        pays = {n: pays_from(costs, replace(size, workers=n), 100, 30) for n in (2, 4, 8)}
        report(
            "dask costs",
            explained=explained,
            **asdict(costs),
            checked_rows=size.rows,
            bytes_modelled_and_measured=[
                costs.bytes_of_round(size),
                found["worker_bytes_per_round"],
            ],
            round_modelled_and_measured=[costs.tree_round(size), found[explained]],
            training_modelled_and_measured=[
                costs.training(size, n_trees, options.linear_rounds),
                found["seconds"],
            ],
            half_as_fast_again_from_rows=pays,
        )
    draw(fit(runs, options.draw), [*runs, checked], options.picture, options.draw)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=21)
    parser.add_argument("--labels", type=int, default=22)
    parser.add_argument("--vocabulary", type=int, default=5000, help="of a column")
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--linear-rounds", type=int, default=3)
    parser.add_argument("--side", help="one side alone: so many workers; 0: no cluster")
    parser.add_argument("--no-local", action="store_true")
    parser.add_argument("--picture", type=Path, help="fit the cost model, and draw it here")
    parser.add_argument(
        "--draw",
        choices=("tree_seconds", "tree_cpu_seconds"),
        default="tree_seconds",
        help="what to draw; processor seconds where the machine has other things to do",
    )
    parser.add_argument("--quick", action="store_true", help="a part of the data")
    options = parser.parse_args()
    rows = options.rows // 40 if options.quick else options.rows
    if options.side is None:
        (model_costs if options.picture else compare)(options, rows)
        return
    size = (options.columns, options.labels, options.vocabulary)
    parts = [(rows // options.parts, *size, seed) for seed in range(options.parts)]
    settings = {
        "rounds": options.rounds,
        "linear_rounds": options.linear_rounds,
        "family": "separate",
    }
    n_workers = int(options.side)
    if n_workers:
        report("dask", **on_cluster(parts, n_workers, settings))
    else:
        report("dask", **on_this_machine(parts, 2, settings))


if __name__ == "__main__":
    main()
