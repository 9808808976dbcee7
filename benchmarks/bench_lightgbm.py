"""Growing trees, order 0: `BoostedCRF(order=0, linear_rounds=0)` beside LightGBM's multiclass.

CoNLL-2000 with the same 21 columns, one-hot, features of fewer than 2 rows left out, the same
leaves and rounds. LightGBM runs with our penalty and rows per leaf, and with its own defaults.
All train on four fifths of the training sentences; the log-loss on the last fifth picks the best
learning rate.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.crf import CRF, new_crf
from spacy_treecrf.models.predictor import Predictor

from corpora import encode, read_conll2000
from timing import report, timed

ROUNDS, QUICK_ROUNDS = 40, 5
QUICK_SENTENCES = 1000
THREADS = 2
OURS = Settings(order=0, linear_rounds=0, leaves=31)
OUR_RATES = (OURS.shrinkage, 0.5, 0.3)
ITS_DEFAULTS = {"num_leaves": OURS.leaves}
# Without a penalty LightGBM's log-loss grows at rates above 0.1.
SAME_LIMITS = ITS_DEFAULTS | {"min_data_in_leaf": OURS.min_rows, "lambda_l2": OURS.penalty}
ITS_RATES = (0.1, 0.2, 0.3)

Probabilities = Callable[[Sequences], npt.NDArray[np.float64]]


def one_hot(data: Sequences, n_features: int) -> csr_matrix:
    present = data.feature_ids >= 0
    first = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    ids = np.sort(np.where(present, data.feature_ids, n_features), axis=1)
    ids = ids[ids < n_features]
    shape = (data.n_rows, n_features)
    return csr_matrix((np.ones(len(ids), np.float32), ids, first), shape=shape)


def train_lightgbm(
    dataset: lightgbm.Dataset, parameters: dict[str, Any], rate: float, rounds: int
) -> tuple[Probabilities, list[float]]:
    """Probabilities under the model, and the seconds of each round."""
    booster = lightgbm.Booster(parameters | {"learning_rate": rate}, dataset)
    seconds = [timed(booster.update)[1] for _ in range(rounds)]

    def probabilities(data: Sequences) -> npt.NDArray[np.float64]:
        return np.asarray(booster.predict(one_hot(data, dataset.num_feature())))

    return probabilities, seconds


def train_ours(untrained: CRF, train: Sequences, rounds: int) -> tuple[Probabilities, list[float]]:
    ends = [0.0]
    with Workers(THREADS) as workers:
        crf = untrained.boosted(
            train, rounds, workers, callback=lambda info: ends.append(info.seconds)
        )
    return Predictor(crf, Workers(1)).marginals, np.diff(ends).tolist()


def log_loss(probabilities: Probabilities, data: Sequences) -> float:
    known = np.flatnonzero(data.labels != UNKNOWN_LABEL)
    right = probabilities(data)[known, data.labels[known]]
    return float(-np.log(np.maximum(right, 1e-15)).mean())


def compare_rates(
    train_at: Callable[[float], tuple[Probabilities, list[float]]],
    rates: tuple[float, ...],
    held_out: Sequences,
    test: Sequences,
) -> dict[str, Any]:
    """Time and log-loss at the first rate, and at the best one on the held-out sentences."""
    trials = []
    for rate in rates:
        probabilities, seconds = train_at(rate)
        trial = {
            "rate": rate,
            "seconds_per_round": float(np.median(seconds)),
            "seconds": sum(seconds),
            "held_out_log_loss": log_loss(probabilities, held_out),
            "test_log_loss": log_loss(probabilities, test),
        }
        trials.append(trial)
    return {"default": trials[0], "best": min(trials, key=lambda trial: trial["held_out_log_loss"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a part of the data, few rounds")
    parser.add_argument("--rounds", type=int)
    options = parser.parse_args()
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)

    X, y = read_conll2000("train", QUICK_SENTENCES if options.quick else None)
    shuffled = np.random.default_rng(0).permutation(len(X)).tolist()
    parts = shuffled[: len(X) * 4 // 5], shuffled[len(X) * 4 // 5 :]
    (X_train, y_train), (X_held_out, y_held_out) = (
        ([X[s] for s in part], [y[s] for s in part]) for part in parts
    )
    labels = sorted({label for sequence in y_train for label in sequence})
    (columns, *_), encode_seconds = timed(lambda: fit_columns(X_train, min_count=OURS.min_count))
    train = encode(columns, labels, X_train, y_train)
    held_out = encode(columns, labels, X_held_out, y_held_out)
    test = encode(columns, labels, *read_conll2000("test"))
    matrix = one_hot(train, len(columns.counts))

    def bench_lightgbm(limits: dict[str, Any], rates: tuple[float, ...]) -> dict[str, Any]:
        parameters = limits | {
            "objective": "multiclass",
            "num_class": len(labels),
            "num_threads": THREADS,
            "verbose": -1,
        }
        dataset = lightgbm.Dataset(matrix, train.labels, params=parameters)
        _, seconds = timed(dataset.construct)
        results = compare_rates(
            lambda rate: train_lightgbm(dataset, parameters, rate, rounds),
            rates,
            held_out,
            test,
        )
        return {"dataset_seconds": seconds, **results}

    def bench_ours() -> dict[str, Any]:
        untrained = new_crf(OURS, labels, columns, train)
        train_ours(untrained, train.subset(np.arange(50)), rounds=2)  # compiles

        def train_at(rate: float) -> tuple[Probabilities, list[float]]:
            settings = replace(OURS, shrinkage=rate)
            return train_ours(replace(untrained, settings=settings), train, rounds)

        results = compare_rates(train_at, OUR_RATES, held_out, test)
        return {"encode_seconds": encode_seconds, **results}

    ours = bench_ours()
    same = bench_lightgbm(SAME_LIMITS, ITS_RATES)
    defaults = bench_lightgbm(ITS_DEFAULTS, ITS_RATES[:1])
    our_time, same_time, default_time = (
        side["default"]["seconds_per_round"] for side in (ours, same, defaults)
    )
    report(
        "lightgbm",
        rows=train.n_rows,
        features=len(columns.counts),
        rounds=rounds,
        ours=ours,
        lightgbm_same_limits=same,
        lightgbm_defaults=defaults,
        time_ratio=our_time / same_time,
        time_ratio_to_its_defaults=our_time / default_time,
        log_loss_ratio=ours["default"]["test_log_loss"] / same["best"]["test_log_loss"],
    )


if __name__ == "__main__":
    main()
