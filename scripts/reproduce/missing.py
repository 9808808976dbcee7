"""Hao (2009), table 4.1 and figure 4.1: four treatments of missing values, side by side.

A letter (or residue) that is missing is missing in every window that would show it. Five damaged
versions of the training part and five of the test part make 25 accuracies for each treatment and
rate. The size of the trees and the number of rounds are chosen for each treatment and rate by an
internal hold-out: two thirds of the first damaged training part against the last third.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from scripts.prepare import provide
from scripts.reproduce.logistic import fit_logistic
from scripts.reproduce.report import Comparison, Picture, Report, Table
from spacy_treecrf import BoostedCRF
from spacy_treecrf.cli.shared.common import say
from spacy_treecrf.corpora import LabelledSequence, find_corpus, load_corpus
from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.evaluation.plots import require_matplotlib

Part = tuple[list[Any], list[list[str]]]  # X and y
Task = TypeVar("Task")
Found = TypeVar("Found")

# The first one is the baseline of the regression.
METHODS = ("instance_weighting", "surrogate", "imputation", "indicator")
RIVALS = METHODS[1:]
EDGE = "<edge>"  # the value outside of the sequence, which is never damaged
TIED = 0.05  # treatments whose difference has a p from here on count as equally good
# The joint family is TreeCRF's. No linear rounds: there a missing value adds nothing to a score.
COMMON = {"family": "joint", "linear_rounds": 0, "predictor": "marginal", "threads": 1}


@dataclass(frozen=True)
class Problem:
    """A data set and what is tried on it.

    offsets: The offsets of the window.
    settings: Settings that all treatments have.
    rounds: The hold-out chooses a number of rounds up to this.
    leaves: The hold-out chooses one of these numbers of leaves.
    published: By per cent missing, the published coefficients of RIVALS.
    """

    name: str
    corpus: str
    layer: str
    offsets: range
    rounds: int
    leaves: tuple[int, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    published: dict[int, tuple[str, str, str]] = field(default_factory=dict)


PROBLEMS = {
    problem.corpus: problem
    for problem in (
        Problem(
            "protein",
            "protein",
            "structure",
            range(-5, 6),
            60,
            (16, 64),
            {"shrinkage": 0.1, "min_rows": 20, "penalty": 10.0},
            {
                5: ("-0.018", "-0.072*", "-0.028*"),
                10: ("-0.013", "-0.040*", "0.001"),
                20: ("-0.025*", "-0.074*", "-0.020*"),
                40: ("-0.041*", "-0.072*", "-0.020*"),
            },
        ),
        Problem(
            "NETtalk stress",
            "nettalk",
            "stress",
            range(-6, 7),
            80,
            (32, 128),
            {"shrinkage": 0.2, "penalty": 5.0},
            {
                5: ("-0.051*", "-0.066*", "-0.064*"),
                10: ("-0.051*", "-0.067*", "-0.059*"),
                20: ("-0.069*", "-0.057*", "-0.052*"),
                40: ("-0.080*", "-0.116*", "-0.111*"),
            },
        ),
        Problem(
            "hyphenation",
            "moby",
            "hyphen",
            range(-2, 4),  # three letters on either side of the hyphen that may follow
            100,
            (64, 256),
            {"shrinkage": 0.3, "penalty": 5.0},
            {
                5: ("0.036*", "0.007", "0.023"),
                10: ("-0.031*", "-0.022", "-0.027*"),
                20: ("-0.071*", "-0.049*", "-0.040*"),
                40: ("-0.024*", "-0.054*", "-0.047*"),
            },
        ),
    )
}


class Condition(NamedTuple):
    corpus: str
    per_cent: int  # how many of the letters are missing
    method: str


class Choice(NamedTuple):
    """The size of trees and the number of rounds that the hold-out has chosen."""

    leaves: int
    rounds: int


class Training(NamedTuple):
    condition: Condition
    version: int  # which damaged training part
    choice: Choice
    n_tests: int  # damaged test parts


QUICK_ROUNDS = 15
CHOSEN = (
    "Leaves and rounds of each treatment and rate were chosen on the last third of the first "
    "training part, by likelihood"
)
QUICKLY = f"Leaves are the fewest of the full run, rounds {QUICK_ROUNDS}"

# By training version and test version, the number of labels that are right.
Right = dict[Condition, list[list[int]]]


def run(quick: bool, folder: Path) -> Report:
    for corpus in PROBLEMS:
        provide(find_corpus(corpus), Path("project.yml"))
    rates = (20, 40) if quick else (5, 10, 20, 40)
    versions = 2 if quick else 5
    conditions = [Condition(*c) for c in itertools.product(PROBLEMS, rates, METHODS)]
    right = measure(conditions, versions, os.cpu_count() or 1, quick)
    accuracies = {c: _accuracy(c.corpus, counts) for c, counts in right.items()}
    file = "missing.png"
    draw(accuracies, folder / file)
    return Report(
        title="Hao (2009), table 4.1: missing values",
        tables=[t for corpus in PROBLEMS for t in tables(corpus, rates, right, accuracies)],
        comparisons=list(comparisons(rates, right)),
        pictures=[Picture(file, "Accuracy over the share of letters that is missing.")],
        remarks=[
            f"Accuracies are means over {versions} damaged training parts times {versions} damaged "
            f"test parts, labels predicted by forward-backward. {QUICKLY if quick else CHOSEN}; "
            "other settings are the same for all treatments.",
            "Coefficients: logistic regression of a label's being right on the treatment and the "
            "training part, as published: the change of the log odds against instance weighting. "
            "*: different from zero by Wald's test, p < 0.05. Instance weighting is called tied "
            "with a better treatment where p is 0.05 or more. The published accuracies are in a "
            "figure only.",
        ],
    )


def measure(
    conditions: Sequence[Condition], versions: int, processes: int, quick: bool = False
) -> Right:
    """Make the choices of each condition, train on all versions, and count what is right."""
    if quick:
        choices = {c: Choice(min(PROBLEMS[c.corpus].leaves), QUICK_ROUNDS) for c in conditions}
    else:
        say(f"  choosing leaves and rounds for {len(conditions)} conditions")
        choices = dict(zip(conditions, in_processes(choose, conditions, processes), strict=True))
    trainings = [Training(c, v, choices[c], versions) for c in conditions for v in range(versions)]
    right: Right = {condition: [] for condition in conditions}
    counts = in_processes(count_right, trainings, processes)
    for training, counted in zip(trainings, counts, strict=True):
        condition = training.condition
        right[condition].append(counted)
        if training.version == versions - 1:
            accuracy = _accuracy(condition.corpus, right[condition])
            name = f"{condition.corpus} {condition.per_cent:2} % {condition.method}"
            leaves, rounds = training.choice
            say(f"  {name:35} {accuracy:6.2f} %, {leaves} leaves, {rounds} rounds")
    return right


def in_processes(
    function: Callable[[Task], Found], tasks: Sequence[Task], processes: int
) -> Iterator[Found]:
    """The results of small trainings on one thread each, as many at a time as there are cores."""
    if processes == 1:
        yield from map(function, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        yield from pool.map(function, tasks)


def choose(condition: Condition) -> Choice:
    """The choice of best likelihood on the last third of the first damaged training part."""
    problem = PROBLEMS[condition.corpus]
    X, y = damaged_part(condition.corpus, "train", condition.per_cent, 0)
    cut = 2 * len(X) // 3
    found: dict[Choice, float] = {}
    for leaves in problem.leaves:
        seen: list[RoundInfo] = []
        model = estimator(condition, Choice(leaves, problem.rounds)).set_params(
            callback=seen.append
        )
        model.fit(X[:cut], y[:cut], X[cut:], y[cut:])
        likelihood = seen[model.rounds_ - 1].held_out_log_likelihood
        assert likelihood is not None  # there is a held-out part
        found[Choice(leaves, model.rounds_)] = likelihood
    return max(found, key=lambda choice: found[choice])


def count_right(training: Training) -> list[int]:
    """The number of right labels on each damaged test part, after training on one version."""
    corpus, per_cent, _ = training.condition
    model = estimator(training.condition, training.choice)
    model.fit(*damaged_part(corpus, "train", per_cent, training.version))
    right = []
    for version in range(training.n_tests):
        X, y = damaged_part(corpus, "test", per_cent, version)
        labels = zip(_flat(model.predict(X)), _flat(y), strict=True)
        right.append(sum(predicted == gold for predicted, gold in labels))
    return right


def estimator(condition: Condition, choice: Choice) -> BoostedCRF:
    settings = {**COMMON, **PROBLEMS[condition.corpus].settings, **choice._asdict()}
    return BoostedCRF(missing=condition.method, **settings)


@cache
def sequences_of(corpus: str) -> dict[str, list[LabelledSequence]]:
    return load_corpus(corpus, dev_share=0.0)


def damaged_part(corpus: str, part: str, per_cent: int, version: int) -> Part:
    """A part with letters missing at random; the same version always lacks the same letters."""
    problem = PROBLEMS[corpus]
    sequences = sequences_of(corpus)[part]
    rng = np.random.default_rng([version, per_cent, part == "test"])
    X = []
    for sequence in sequences:
        gone = rng.random(len(sequence.words)) < per_cent / 100
        letters = [None if g else w for g, w in zip(gone, sequence.words, strict=True)]
        X.append(windows(letters, problem.offsets))
    return X, [sequence.labels[problem.layer] for sequence in sequences]


def windows(letters: Sequence[str | None], offsets: range) -> list[dict[str, str | None]]:
    padded = [EDGE] * -offsets.start + list(letters) + [EDGE] * (offsets.stop - 1)
    return [{str(o): padded[t + o - offsets.start] for o in offsets} for t in range(len(letters))]


class Effect(NamedTuple):
    """The effect of a treatment, against instance weighting."""

    change: float  # in the log odds of a right label
    p: float

    def __str__(self) -> str:
        return f"{self.change:.3f}{'*' if self.p < TIED else ''}"


def effects(corpus: str, per_cent: int, right: Right) -> dict[str, Effect]:
    """Logistic regression on the treatment and the training part (Hao 2009, section 4.4)."""
    counts = np.array([right[Condition(corpus, per_cent, method)] for method in METHODS])
    n_methods, versions, n_tests = counts.shape
    method, version = (axis.ravel() for axis in np.indices((n_methods, versions)))
    design = np.concatenate([np.eye(n_methods)[method][:, 1:], np.eye(versions)[version]], axis=1)
    trials = np.full(len(design), float(n_tests * _test_size(corpus)))
    fit = fit_logistic(design, counts.sum(axis=2).ravel().astype(float), trials)
    return {m: Effect(float(fit.coefficients[i]), fit.p_value(i)) for i, m in enumerate(RIVALS)}


def tables(
    corpus: str, rates: Sequence[int], right: Right, accuracies: dict[Condition, float]
) -> list[Table]:
    problem = PROBLEMS[corpus]
    of_accuracies = []
    of_effects = []
    for rate in rates:
        row = [accuracies[Condition(corpus, rate, method)] for method in METHODS]
        of_accuracies.append([f"{rate} %", *(f"{accuracy:.2f}" for accuracy in row)])
        pairs = zip(effects(corpus, rate, right).values(), problem.published[rate], strict=True)
        of_effects.append([f"{rate} %", *(str(cell) for pair in pairs for cell in pair)])
    names = [method.replace("_", " ") for method in METHODS]
    head = ["missing", *(cell for name in names[1:] for cell in (name, "published"))]
    return [
        Table(f"{problem.name}: accuracy, per cent", ["missing", *names], of_accuracies),
        Table(f"{problem.name}: coefficients", head, of_effects),
    ]


def comparisons(rates: Sequence[int], right: Right) -> Iterator[Comparison]:
    """Comparisons: none should be significantly better than weighting where much is missing."""
    for corpus, problem in PROBLEMS.items():
        for rate in rates:
            if rate >= 20:
                rival, effect = max(effects(corpus, rate, right).items(), key=lambda e: e[1].change)
                yield Comparison(
                    f"{problem.name}, {rate} % missing, p of a tie of instance weighting with "
                    f"{rival} (tied from {TIED})",
                    effect.p if effect.change > 0 else 1.0,
                    TIED,
                )


def draw(accuracies: dict[Condition, float], path: Path) -> None:
    figure = require_matplotlib().Figure(figsize=(12, 4), layout="constrained")
    panels = figure.subplots(1, len(PROBLEMS), squeeze=False)[0]
    for axes, problem in zip(panels, PROBLEMS.values(), strict=True):
        for method in METHODS:
            points = [
                (condition.per_cent, accuracy)
                for condition, accuracy in accuracies.items()
                if (condition.corpus, condition.method) == (problem.corpus, method)
            ]
            axes.plot(*zip(*points, strict=True), marker="o", label=method.replace("_", " "))
        axes.set(xlabel="letters missing, %", ylabel="accuracy, %", title=problem.name)
    figure.axes[0].legend()
    figure.savefig(path, dpi=150)


def _accuracy(corpus: str, counts: list[list[int]]) -> float:
    return 100 * float(np.mean(counts)) / _test_size(corpus)


def _test_size(corpus: str) -> int:
    return sum(len(sequence.words) for sequence in sequences_of(corpus)["test"])


def _flat(sequences: list[list[str]]) -> Iterator[str]:
    return (label for sequence in sequences for label in sequence)
