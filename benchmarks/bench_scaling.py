"""How the time of a round grows when rows, columns, labels, ... double, on synthetic data.

The last line is about a million rows with 100 labels: seconds of its rounds, and memory.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.crf import CRF, new_crf
from spacy_treecrf.models.predictor import Predictor

from timing import peak_megabytes, report, timed

LINEAR_ROUNDS, TREE_ROUNDS = 3, 5
DOUBLINGS = 2
REPEATS = 3  # trainings, of whose rounds the fastest count
NOISE = 0.3  # share of random labels: keeps rows in play while the model learns
KINDS = 32  # values of a column, whatever its vocabulary, fall into so many kinds
LONG = 100_000


@dataclass(frozen=True)
class Size:
    """The size of a synthetic data set; `vocabulary` is that of one column."""

    rows: int = 40_000
    columns: int = 10
    labels: int = 8
    length: int = 20
    vocabulary: int = 2000
    threads: int = 1
    zipf: bool = True  # frequency ~ 1/rank as of words; otherwise ~ 1/sqrt(rank)


LARGE = Size(rows=1_000_000, columns=10, labels=100, threads=2)
QUICK_LARGE = replace(LARGE, rows=20_000)

# The field that doubles, and the size that it starts from.
AXES = {
    "rows": ("rows", Size()),
    "columns": ("columns", Size()),
    "labels": ("labels", Size()),
    "length": ("length", Size()),
    "vocabulary": ("vocabulary", Size(rows=80_000)),
    "flat vocabulary": ("vocabulary", Size(rows=80_000, zipf=False)),
    "threads": ("threads", Size(rows=80_000)),
}


def synthetic(size: Size, seed: int = 0) -> tuple[Columns, Sequences]:
    """Random values, frequent ones first; labels follow two columns and the previous label."""
    rng = np.random.default_rng(seed)
    uniform = rng.random((size.rows, size.columns))
    ranks = size.vocabulary**uniform - 1 if size.zipf else size.vocabulary * uniform**2
    values = ranks.astype(np.int64)
    keys = values + size.vocabulary * np.arange(size.columns)

    distinct, where, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] >= Settings.min_count]
    new_id = np.full(len(distinct), -1, np.int32)
    new_id[order] = np.arange(len(order))
    column_of = (distinct[order] // size.vocabulary).astype(np.int32)
    names = [f"{c}" for c in range(size.columns)]
    columns = Columns(
        feature_names=[f"{k // size.vocabulary}={k % size.vocabulary}" for k in distinct[order]],
        counts=counts[order],
        column_of=column_of,
        slot_range=np.stack([column_of, column_of + 1], axis=1),
        slot_keys=names,
        n_shared_slots=0,
        column_names=names,
        numeric_names=[],
        bin_edges=[],
        bin_values=np.zeros((0, 256)),
    )

    kinds = (KINDS * uniform[:, :2]).astype(np.int64)
    votes = rng.normal(size=(2, KINDS, size.labels))
    labels = (votes[0, kinds[:, 0]] + votes[1, kinds[:, 1]]).argmax(axis=1)
    labels[1:] = np.where(rng.random(size.rows - 1) < NOISE, labels[:-1], labels[1:])
    random = rng.random(size.rows) < NOISE
    labels[random] = rng.integers(size.labels, size=int(random.sum()))
    return columns, Sequences(
        offsets=np.append(np.arange(0, size.rows, size.length), size.rows),
        feature_ids=new_id[where].reshape(keys.shape),
        numeric=np.zeros((size.rows, 0), np.uint8),
        labels=labels.astype(np.int32),
        weights=np.ones(size.rows, np.float32),
    )


def untrained(size: Size, columns: Columns, data: Sequences) -> CRF:
    settings = Settings(family="separate", linear_rounds=LINEAR_ROUNDS, threads=size.threads)
    return new_crf(settings, [f"{k}" for k in range(size.labels)], columns, data)


def seconds_per_round(size: Size) -> tuple[float, float, int]:
    """Seconds of the fastest linear round and the fastest round of trees; number of features."""
    columns, data = synthetic(size)
    rounds = []
    with Workers(size.threads) as workers:
        for _ in range(REPEATS):
            ends = [0.0]
            untrained(size, columns, data).boosted(
                data,
                LINEAR_ROUNDS + TREE_ROUNDS,
                workers,
                callback=lambda info, ends=ends: ends.append(info.seconds),
            )
            rounds.append(np.diff(ends))
    fastest = np.min(rounds, axis=0)
    linear, trees = fastest[:LINEAR_ROUNDS], fastest[LINEAR_ROUNDS:]
    return float(linear.min()), float(trees.min()), len(columns.counts)


def bench_axis(axis: str, doublings: int) -> None:
    field, start = AXES[axis]
    sizes = [getattr(start, field) * 2**i for i in range(doublings + 1)]
    trials = [seconds_per_round(replace(start, **{field: size})) for size in sizes]
    linear, trees, features = (list(column) for column in zip(*trials, strict=True))
    extra: dict[str, Any] = {"features": features} if field == "vocabulary" else {}
    report(
        "scaling",
        axis=axis,
        sizes=sizes,
        linear_seconds=linear,
        linear_factors=[b / a for a, b in pairwise(linear)],
        tree_seconds=trees,
        tree_factors=[b / a for a, b in pairwise(trees)],
        **extra,
    )


def bench_long_sequence() -> None:
    """One sequence of 100,000 positions: everything stays finite, and it learns."""
    size = Size(rows=LONG, length=LONG, columns=4, threads=2)
    columns, data = synthetic(size)
    likelihoods: list[float] = []
    with Workers(size.threads) as workers:
        crf, train_seconds = timed(
            lambda: untrained(size, columns, data).boosted(
                data,
                LINEAR_ROUNDS + TREE_ROUNDS,
                workers,
                callback=lambda info: likelihoods.append(info.log_likelihood),
            )
        )
        predictor = Predictor(crf, workers)
        labels, decode_seconds = timed(lambda: predictor.labels(data))
        marginals = predictor.marginals(data)
    sums = marginals.sum(axis=1)
    report(
        "scaling",
        axis="one sequence",
        positions=LONG,
        train_seconds=train_seconds,
        decode_seconds=decode_seconds,
        finite=bool(np.isfinite(likelihoods).all() and np.isfinite(marginals).all()),
        marginals_add_up=bool(np.allclose(sums, 1.0, atol=1e-6)),
        log_likelihood=likelihoods[-1],
        accuracy=float((labels == data.labels).mean()),
    )


def bench_large(size: Size) -> None:
    """Many rows and labels: seconds of the rounds, and the memory that they take.

    Few rounds, as one of them takes minutes; peak_per_pair is the memory of training beyond the
    data, in bytes for each row and label: 4 of them are the scores. The peak is that of the
    process: a run of all axes reaches it here, where the data are by far the largest.
    """
    columns, data = synthetic(size)
    before = peak_megabytes()
    ends = [0.0]
    settings = Settings(family="separate", linear_rounds=1, threads=size.threads)
    crf = new_crf(settings, [f"{k}" for k in range(size.labels)], columns, data)
    with Workers(size.threads) as workers:
        crf.boosted(data, 3, workers, callback=lambda info: ends.append(info.seconds))
    peak = peak_megabytes()
    report(
        "scaling",
        axis="large",
        rows=size.rows,
        labels=size.labels,
        round_seconds=np.diff(ends).tolist(),
        peak_megabytes=peak,
        peak_megabytes_of_data=before,
        peak_per_pair=(peak - before) * 1e6 / (size.rows * size.labels),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="double each axis only once; few rows at the end"
    )
    parser.add_argument("--axis", choices=[*AXES, "one sequence"], help="only this one")
    parser.add_argument("--large", action="store_true", help="only a million rows, 100 labels")
    parser.add_argument("--rows", type=int, help="of the last line, instead of a million")
    parser.add_argument("--labels", type=int, default=LARGE.labels, help="of the last line")
    options = parser.parse_args()
    seconds_per_round(Size(rows=1000, vocabulary=50))  # compiles
    large = replace(QUICK_LARGE if options.quick else LARGE, labels=options.labels)
    large = replace(large, rows=options.rows or large.rows)
    if options.large:
        bench_large(large)
        return
    for axis in AXES:
        if options.axis in (None, axis):
            bench_axis(axis, 1 if options.quick or axis == "threads" else DOUBLINGS)
    if options.axis in (None, "one sequence"):
        bench_long_sequence()
    if options.axis is None:
        bench_large(large)


if __name__ == "__main__":
    main()
