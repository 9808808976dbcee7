"""NETtalk stress: accuracy and training time over random splits that share no spelling."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from spacy_treecrf import BoostedCRF

from corpora import nettalk_split, read_nettalk_stress
from timing import report, timed

SPLITS = 10
VARIANTS: dict[str, dict[str, Any]] = {"rounds=150": {"rounds": 150}, "defaults": {}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 splits instead of 10")
    splits = 2 if parser.parse_args().quick else SPLITS
    stresses = read_nettalk_stress()
    (X, y), _ = nettalk_split(stresses, seed=0)
    BoostedCRF(rounds=3, linear_rounds=2).fit(X[:50], y[:50]).predict(X[:50])  # compiles

    results: dict[str, Any] = {}
    for name, parameters in VARIANTS.items():
        accuracies, seconds = [], []
        for seed in range(splits):
            train, test = nettalk_split(stresses, seed)
            model, fit_seconds = timed(lambda: BoostedCRF(**parameters).fit(*train))  # noqa: B023
            accuracies.append(100 * model.score(*test))
            seconds.append(fit_seconds)
        results[name] = {
            "accuracy": float(np.mean(accuracies)),
            "accuracy_sd": float(np.std(accuracies, ddof=1)),
            "seconds": float(np.mean(seconds)),
        }
    report("nettalk", splits=splits, **results)


if __name__ == "__main__":
    main()
