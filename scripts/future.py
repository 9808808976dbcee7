"""Tables 5.4 and 5.5 of Hao (2009), section 5.4, beside what we reach: who sees the future.

All methods see one position (window 1) and stop by the same held-out part. CRFs are decoded by
forward-backward, as published; MEMMs by the most probable label sequence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import srsly
import typer

from scripts.prepare import provide
from spacy_treecrf import BoostedCRF, BoostedMEMM, FutureFeatureMEMM
from spacy_treecrf.cli.common import reports_errors, say
from spacy_treecrf.cli.tables import table
from spacy_treecrf.corpora import Record, find_corpus, load_corpus
from spacy_treecrf.corpora.future_bits import LAYER, bit_features, future_bits_splits
from spacy_treecrf.estimators import SequenceEstimator

Part = tuple[list[Any], list[list[str]]]  # X and y
Parts = dict[str, Part]
Methods = dict[str, SequenceEstimator]

SEEDS = 5
ORDERS = (1, 2, 3, 4)
# Test accuracy in per cent, as published.
PAPER_BITS = {
    "xor": [51.6, 50.7, 56.0, 57.3, 57.6, 58.4, 100.0],
    "or": [67.5, 66.5, 76.6, 85.9, 91.1, 93.9, 100.0],
    "extra": [84.4, 84.9, 87.1, 90.2, 92.5, 92.9, 100.0],
}
PAPER_STRESS = {
    "SW": 84.2,
    **dict(zip((f"MEMM-{k}" for k in ORDERS), (85.7, 87.1, 88.9, 89.0), strict=True)),
    **dict(zip((f"CRF-{k}" for k in ORDERS), (85.7, 90.4, 91.8, 91.4), strict=True)),
    **dict(zip((f"FF-MEMM-{k}" for k in ORDERS), (89.4, 90.4, 90.6, 90.3), strict=True)),
}
STRESSED = {"1", "2"}  # marks of NETtalk that are class 1, section 5.4.2


@dataclass
class Result:
    """Of one method on one problem, over seeds."""

    accuracies: list[float] = field(default_factory=list)  # per cent, on the test part
    seconds: list[float] = field(default_factory=list)  # of training

    @property
    def mean(self) -> float:
        return float(np.mean(self.accuracies))


def methods(
    orders: Iterable[int], bag: int, future: Iterable[int], step: str = "gradient"
) -> Methods:
    """The published ones: sliding window, MEMM and CRF of these orders, FF-MEMM of those.

    step: Of the trees of FF-MEMM.
    """
    orders = tuple(orders)
    crf = {"family": "joint", "predictor": "marginal"}
    return {
        "SW": BoostedMEMM(order=0),
        **{f"MEMM-{k}": BoostedMEMM(order=k) for k in orders},
        **{f"CRF-{k}": BoostedCRF(order=k, **crf) for k in orders},
        **{f"FF-MEMM-{k}": FutureFeatureMEMM(order=k, bag=bag, step=step) for k in future},
    }


def without(made: Methods, *names: str) -> Methods:
    """names: those of methods, or how they begin."""
    return {name: model for name, model in made.items() if not name.startswith(names)}


def bits(problem: str, seed: int) -> Parts:
    splits = future_bits_splits(problem, seed)
    return {
        part: ([bit_features(r) for r in records], [r.labels[LAYER] for r in records])
        for part, records in splits.items()
    }


def stress(binary: bool, seed: int) -> Parts:
    """NETtalk, 1000 words each for training, holding out and testing; a letter is all one sees."""

    def one(records: list[Record]) -> Part:
        X = [[{"letter": letter} for letter in record.words] for record in records]
        y = [record.labels["stress"] for record in records]
        if binary:
            y = [[str(int(mark in STRESSED)) for mark in marks] for marks in y]
        return X, y

    return {part: one(records) for part, records in load_corpus("nettalk", seed=seed).items()}


def compare(made: Methods, parts_of: Callable[[int], Parts], seeds: int) -> dict[str, Result]:
    results = {name: Result() for name in made}
    for seed in range(seeds):
        parts = parts_of(seed)
        for name, model in made.items():
            began = time.perf_counter()
            model.fit(*parts["train"], *parts["dev"])
            results[name].seconds.append(time.perf_counter() - began)
            results[name].accuracies.append(100 * model.score(*parts["test"]))
            say(f"  seed {seed}  {name:10} {results[name].accuracies[-1]:6.2f} %")
    return results


def compile_kernels() -> None:
    """Before anything is timed."""
    rng = np.random.default_rng(0)
    X = [[{"a": str(rng.integers(3))} for _ in range(5)] for _ in range(20)]
    y = [[item["a"] for item in x] for x in X]
    for model in methods((1,), 2, (1,)).values():
        model.set_params(rounds=8).fit(X, y, X, y).predict(X)


def show(results: dict[str, Result], paper: dict[str, float]) -> str:
    rows = [
        (
            name,
            f"{result.mean:.1f}",
            f"{min(result.accuracies):.1f}",
            f"{paper[name]:.1f}" if name in paper else "-",
            f"{np.mean(result.seconds):.1f}",
        )
        for name, result in results.items()
    ]
    return table(["method", "accuracy %", "lowest", "paper", "seconds"], rows)


@reports_errors
def future(
    quick: Annotated[bool, typer.Option(help="One seed, orders up to 2.")] = False,
    step: Annotated[str, typer.Option(help="Of FF-MEMM: gradient, as published, or newton.")] = (
        "gradient"
    ),
    output: Annotated[Path, typer.Option(help="Where the numbers go as JSON.")] = Path(
        "metrics/future.json"
    ),
) -> None:
    """Train and test every method, and print both tables beside the paper's."""
    provide(find_corpus("nettalk"), Path("project.yml"))
    seeds = 1 if quick else SEEDS
    orders = ORDERS[:2] if quick else ORDERS
    compile_kernels()
    found: dict[str, dict[str, Result]] = {}
    blocks = []
    for problem, numbers in PAPER_BITS.items():
        say(f"{problem}:")
        # the published table has MEMM of order 1 only
        made = without(methods(orders, 6, (0,), step), *(f"MEMM-{k}" for k in ORDERS[1:]))
        found[problem] = compare(made, partial(bits, problem), seeds)
        names = ["SW", "MEMM-1", *(f"CRF-{k}" for k in ORDERS), "FF-MEMM-0"]
        paper = dict(zip(names, numbers, strict=True))
        blocks.append(f"Table 5.4, {problem.upper()}\n\n{show(found[problem], paper)}")
    say("stress, two classes:")
    found["stress2"] = compare(methods(orders, 2, orders, step), partial(stress, True), seeds)
    shown = show(found["stress2"], PAPER_STRESS)
    blocks.append(f"Table 5.5, NETtalk stress in two classes, bag 2\n\n{shown}")
    say("stress, five classes:")
    made = without(methods(ORDERS[:2], 2, ORDERS[:2], step), "CRF")
    found["stress5"] = compare(made, partial(stress, False), seeds)
    shown = show(found["stress5"], {})
    blocks.append(f"NETtalk stress in all five classes, bag 2 (not in the paper)\n\n{shown}")
    typer.echo("\n" + "\n\n".join(blocks))
    typer.echo(f"\nMean and lowest of {seeds} seed{'s' if seeds > 1 else ''}; seconds of training.")
    output.parent.mkdir(parents=True, exist_ok=True)
    stored = {
        problem: {name: vars(result) for name, result in results.items()}
        for problem, results in found.items()
    }
    srsly.write_json(output, stored)


if __name__ == "__main__":
    typer.run(future)
