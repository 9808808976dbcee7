"""Output codes beside the direct chain: full NETtalk at windows 1 and 7, and 300 labels.

Both sides are trained in the same run, on the same rows, with their defaults; the published
variants have 30 bits and 20 rounds for each.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np

from scripts.reproduce.windows import labelled_items
from spacy_treecrf import SECOCCRF, BoostedCRF, PerceptronTagger
from spacy_treecrf.corpora import Synthetic, load_corpus
from spacy_treecrf.corpora.synthetic import SETTINGS, synthetic_model
from spacy_treecrf.estimators import SequenceEstimator

from corpora import corpus
from timing import report

SPLITS = 3
BITS = 30
BIT = {"rounds": 20}
PUBLISHED: dict[str, dict[str, Any]] = {
    "iid": {"base": BoostedCRF(**BIT, order=0)},
    "i_secoc": {"base": BoostedCRF(**BIT), "training": "columns"},
    "c_secoc_1": {"base": BoostedCRF(**BIT), "history": 1, "cascade": "training"},
    "c_secoc_3": {"base": BoostedCRF(**BIT), "history": 3, "cascade": "training"},
}
OURS: dict[str, dict[str, Any]] = {
    "i_secoc_joint_decoding": {"base": BoostedCRF(**BIT), "training": "columns", "bits": BITS},
    "c_secoc_3_joint_decoding": {**PUBLISHED["c_secoc_3"], "bits": BITS},
    "c_secoc_3_cross_fitted": {"base": BoostedCRF(**BIT), "history": 3, "bits": BITS},
    "defaults": {},
}
K300 = {"n_labels": 300, "n_observations": 300}


def measured(
    model: SequenceEstimator, train: tuple[Any, Any], test: tuple[Any, Any]
) -> dict[str, float]:
    """The accuracy in percent, and the seconds of training on the wall and on all cores."""
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(*train)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"accuracy": 100 * model.score(*test), "seconds": wall, "cpu_seconds": cpu}


def mean(runs: list[dict[str, float]]) -> dict[str, float]:
    found = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
    if len(runs) > 1:
        found["accuracy_sd"] = float(np.std([run["accuracy"] for run in runs], ddof=1))
    return found


def models(published: bool) -> dict[str, SequenceEstimator]:
    found: dict[str, SequenceEstimator] = {
        "direct": BoostedCRF(family="separate"),
        "perceptron": PerceptronTagger(),
    }
    if published:
        for name, settings in PUBLISHED.items():
            found[name] = SECOCCRF(bits=BITS, decoding="l1", **settings)
    for name, settings in OURS.items():
        if published or name == "defaults":
            found[name] = SECOCCRF(**settings)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1 split, a tenth of the data")
    parser.add_argument("--only", default="", help="nettalk or labels")
    parser.add_argument("--splits", type=int, default=SPLITS, help="of NETtalk")
    arguments = parser.parse_args()
    quick = arguments.quick
    n = 100 if quick else None
    small = Synthetic().sample(40)  # of 40 labels
    for model in models(True).values():  # compiles
        model.fit(*labelled_items(small, "tag", 3))

    folder = corpus("nettalk").parent if arguments.only != "labels" else None
    for window in (1, 7) if folder else ():
        runs: dict[str, list[dict[str, float]]] = {}
        for seed in range(1 if quick else arguments.splits):
            splits = load_corpus("nettalk", split="small", seed=seed, folder=folder)
            train, test = (
                labelled_items(splits[part][:n], "phoneme_stress", window)
                for part in ("train", "test")
            )
            for name, model in models(published=True).items():
                if isinstance(model, SECOCCRF) and model.bits and quick:
                    model.set_params(bits=12)
                found = measured(model, train, test)
                runs.setdefault(name, []).append(found)
                print(window, seed, name, found, file=sys.stderr, flush=True)
        report(
            "secoc_nettalk",
            window=window,
            splits=len(runs["direct"]),
            **{name: mean(of_name) for name, of_name in runs.items()},
        )

    for setting in SETTINGS if arguments.only != "nettalk" else ():
        source = synthetic_model(setting, **K300)
        train, test = (
            labelled_items(source.sample(n or 500, stream=part), "tag", 3)
            for part in ("train", "test")
        )
        found = {
            name: measured(model, train, test) for name, model in models(published=False).items()
        }
        report(
            "secoc_300_labels",
            setting=setting,
            labels_seen=len({label for labels in train[1] for label in labels}),
            **found,
            times_faster=found["direct"]["seconds"] / found["defaults"]["seconds"],
            times_less_cpu=found["direct"]["cpu_seconds"] / found["defaults"]["cpu_seconds"],
        )


if __name__ == "__main__":
    main()
