"""F1 over annotated tokens where `suggest` chooses sentences, beside random choice (simulated).

    TREECRF_CORPORA=DIR python benchmarks/bench_suggest.py --plot suggest.png

"oracle" knows the labels of the pool: it takes the sentences in which the model errs most per
token, as no strategy can. What it needs tells how much there is to gain by looking for errors. With
--choose, the last fifth of eng.train is the test data, and the pool is the rest.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.columnar.template import Template
from spacy_treecrf.corpora.conll import read_conll2003
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.spans import span_scores, total_score
from spacy_treecrf.labels.schemes import as_biluo
from spacy_treecrf.models.crf import CRF, new_crf
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.suggest.selection import Candidate, Choice, choose
from spacy_treecrf.suggest.uncertainty import COMMITTEE, STRATEGIES, doubt, uncertainties

from corpora import corpus, letter_items, read_nettalk_stress
from timing import cpu_timed, report

Labels = Sequence[Sequence[str]]
GOAL = 0.95  # of the figure that all data reach
GROWTH = 1.35  # of the annotated tokens, from step to step
RANDOM, ORACLE = "random", "oracle"
HELD_OUT = 5  # the last of so many parts of eng.train is where choices are made
KNOWN = (*STRATEGIES, ORACLE)
COMMITTEE_SEEDS = 3
TICKS = (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000)


@dataclass(frozen=True)
class Task:
    """A pool to choose from, whose labels are told when a sequence is chosen, and test data."""

    name: str
    figure: str
    pool: Sequences
    words: list[list[str]]
    labels: list[str]
    columns: Columns
    test: Sequences
    score: Callable[[Labels], float]  # of predicted labels of the test data, in percent
    first: int  # tokens that are annotated before any model exists
    settings: Settings


def encoded(
    X: Any, y: Labels, labels: list[str], columns: Columns | None = None
) -> tuple[Sequences, Columns]:
    if columns is None:
        columns, offsets, feature_ids, numeric = fit_columns(X, min_count=2)
    else:
        offsets, feature_ids, numeric = columns.encode(X)
    ids = {label: i for i, label in enumerate(labels)}
    flat = np.array([ids.get(label, -1) for own in y for label in own], np.int32)
    return Sequences(offsets, feature_ids, numeric, flat, np.ones(len(flat), np.float32)), columns


def conll2003(quick: bool, choosing: bool) -> Task:
    """Sentences of eng.train with words, tags and chunks; F1 of spans on eng.testa."""
    template = Template(("word", "value", "value", "label"))
    training = read_conll2003(corpus("conll2003", "eng.train"))
    testing = [] if choosing else read_conll2003(corpus("conll2003", "eng.testa"))
    if choosing:
        first = len(training) - len(training) // HELD_OUT
        training, testing = training[:first], training[first:]
    parts = []
    for part, limit in ((training, 2000), (testing, 800)):
        sentences = part[: limit if quick else None]
        layers = [(s.words, s.labels["tag"], s.labels["chunk"]) for s in sentences]
        rows = [[list(row) for row in zip(*own, strict=True)] for own in layers]
        X = list(template.features(rows, lambda s, t: f"sentence {s}"))
        y = [[str(label) for label in as_biluo(s.labels["ner"])] for s in sentences]
        parts.append((sentences, X, y))
    (train, X, y), (_, X_test, y_test) = parts
    labels = sorted({label for own in y for label in own})
    pool, columns = encoded(X, y, labels)
    test, _ = encoded(X_test, y_test, labels, columns)
    words = [[word.lower() for word in s.words] for s in train]

    def f1(predicted: Labels) -> float:
        return 100.0 * total_score(span_scores(y_test, predicted)).f1

    settings = Settings(constraints="biluo", rounds=40)
    return Task("conll2003", "F1", pool, words, labels, columns, test, f1, 1500, settings)


def nettalk(quick: bool, choosing: bool) -> Task:
    """Words of NETtalk as letters with their stress; accuracy of letters on 2,000 other words."""
    stresses = read_nettalk_stress()
    spellings = np.random.default_rng(0).permutation(sorted(stresses)).tolist()
    size = 2000 if quick else 8000 if choosing else 10_000
    train, test_words = spellings[:size], spellings[size : size + 2000]
    X, X_test = ([letter_items(word) for word in part] for part in (train, test_words))
    y, y_test = ([list(stresses[word][0]) for word in part] for part in (train, test_words))
    labels = sorted({label for own in y for label in own})
    pool, columns = encoded(X, y, labels)
    test, _ = encoded(X_test, y_test, labels, columns)
    gold = [label for own in y_test for label in own]

    def accuracy(predicted: Labels) -> float:
        flat = [label for own in predicted for label in own]
        return 100.0 * float(np.mean([a == b for a, b in zip(gold, flat, strict=True)]))

    # Neighbouring letters, as words are for sentences.
    words = [[f"_{word}_"[i : i + 3] for i in range(len(word))] for word in train]
    settings = Settings(rounds=40)
    return Task("nettalk", "accuracy", pool, words, labels, columns, test, accuracy, 1000, settings)


class Simulation:
    """Annotation of a pool, step by step, by one strategy."""

    def __init__(self, task: Task, workers: Workers, choice: Choice, growth: float) -> None:
        self.task = task
        self.workers = workers
        self.choice = choice
        self.growth = growth
        self.lengths = np.diff(task.pool.offsets)

    def model(self, chosen: npt.NDArray[np.int64], seed: int = 0) -> CRF:
        data = self.task.pool.subset(chosen)
        settings = replace(self.task.settings, seed=seed, subsample=0.8 if seed else 1.0)
        crf = new_crf(settings, self.task.labels, self.task.columns, data)
        assert crf.settings.rounds is not None
        return crf.boosted(data, crf.settings.rounds, self.workers)

    def figure(self, crf: CRF) -> float:
        ids = Predictor(crf, self.workers).labels(self.task.test)
        names = [self.task.labels[i] for i in ids.tolist()]
        bounds = pairwise(self.task.test.offsets.tolist())
        return self.task.score([names[a:b] for a, b in bounds])

    def curve(
        self, strategy: str, seed: int, goal: float, most: int | None = None
    ) -> list[tuple[int, float]]:
        """(tokens, figure) after each step, until the goal or so many tokens are reached."""
        order = np.random.default_rng(seed).permutation(len(self.lengths))
        first = int(np.searchsorted(np.cumsum(self.lengths[order]), self.task.first)) + 1
        chosen = order[:first]
        points: list[tuple[int, float]] = []
        while True:
            crf = self.model(chosen)
            tokens = int(self.lengths[chosen].sum())
            points.append((tokens, self.figure(crf)))
            at_end = len(chosen) == len(order) or (most is not None and tokens >= most)
            if points[-1][1] >= goal or at_end:
                return points
            budget = int((self.growth - 1.0) * tokens)
            left = order[~np.isin(order, chosen)]
            chosen = np.concatenate([chosen, self._next(strategy, crf, chosen, left, budget)])

    def _next(
        self,
        strategy: str,
        crf: CRF,
        chosen: npt.NDArray[np.int64],
        left: npt.NDArray[np.int64],
        budget: int,
    ) -> npt.NDArray[np.int64]:
        if strategy == RANDOM:
            n = int(np.searchsorted(np.cumsum(self.lengths[left]), budget)) + 1
            return left[:n]
        data = self.task.pool.subset(left)
        scored = Predictor(crf, self.workers).apply(data)
        others = []
        if strategy == COMMITTEE:
            for seed in range(1, COMMITTEE_SEEDS):
                other = Predictor(self.model(chosen, seed), self.workers)
                others.append(other.apply(data).marginals())
        if strategy == ORACLE:
            doubts = (scored.labels() != data.labels).astype(float)
            values = np.add.reduceat(doubts, data.offsets[:-1])
        else:
            values = uncertainties(strategy, scored, self.task.labels, others)
            doubts = doubt(scored)
        candidates = [
            Candidate(float(values[i]), self.task.words[s], doubts[a:b].tolist())
            for i, (s, (a, b)) in enumerate(
                zip(left.tolist(), pairwise(data.offsets.tolist()), strict=True)
            )
        ]
        picked = choose(candidates, replace(self.choice, budget=budget))
        return left[[i for i, _ in picked]]


def tokens_needed(points: Sequence[tuple[int, float]], goal: float) -> float | None:
    """Tokens at which the curve reaches the goal, on a line between the steps around it."""
    for (a, low), (b, high) in pairwise(points):
        if high >= goal:
            return a + (b - a) * (goal - low) / (high - low) if low < goal else float(a)
    return None


def points_between(curves: dict[str, list[list[tuple[int, float]]]], n: int) -> bool:
    """Whether so many tokens lie within the curves."""
    tokens = [x for own in curves.values() for points in own for x, _ in points]
    return min(tokens) <= n <= max(tokens)


def draw(path: Path, results: Sequence[dict[str, Any]]) -> None:
    """The curves of all tasks, side by side."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import NullLocator

    figure, axes = pyplot.subplots(1, len(results), figsize=(5.5 * len(results), 4), squeeze=False)
    for axis, result in zip(axes[0], results, strict=True):
        for strategy, curves in result["curves"].items():
            dashed = "--" if strategy == RANDOM else "-"
            for i, points in enumerate(curves):
                name = strategy if i == 0 else None
                colour = f"C{list(result['curves']).index(strategy)}"
                axis.plot(*zip(*points, strict=True), dashed, label=name, color=colour, lw=1.4)
        axis.axhline(result["goal"], color="gray", lw=0.8, ls=":")
        axis.set_xscale("log")
        axis.set_xticks([n for n in TICKS if points_between(result["curves"], n)])
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xlabel("annotated tokens")
        axis.set_ylabel(f"{result['figure']} %")
        axis.set_title(result["task"])
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def run(
    task: Task, strategies: Sequence[str], seeds: int, choice: Choice, growth: float
) -> dict[str, Any]:
    with Workers() as workers:
        simulation = Simulation(task, workers, choice, growth)
        whole = simulation.figure(simulation.model(np.arange(len(simulation.lengths))))
        goal = GOAL * whole
        curves: dict[str, list[list[tuple[int, float]]]] = {}
        for strategy in (RANDOM, *strategies):
            curves[strategy] = []
            for seed in range(seeds):
                points = simulation.curve(strategy, seed, goal)
                report("suggest", task=task.name, goal=goal, strategy=strategy, curve=points)
                curves[strategy].append(points)
    needed = {
        strategy: [tokens_needed(points, goal) for points in own]
        for strategy, own in curves.items()
    }
    means = {s: float(np.mean([n for n in own if n is not None])) for s, own in needed.items()}
    return {
        "task": task.name,
        "figure": task.figure,
        "pool_tokens": int(task.pool.n_rows),
        "whole": whole,
        "goal": goal,
        "tokens_needed": means,
        "share_of_random": {s: n / means[RANDOM] for s, n in means.items()},
        "tokens_of_each": needed,
        "curves": curves,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a part of the data")
    parser.add_argument("--only", choices=("conll2003", "nettalk"), help="one task alone")
    parser.add_argument("--seeds", type=int, default=2, help="first samples")
    parser.add_argument("--strategies", nargs="+", default=["entropy", ORACLE], choices=KNOWN)
    parser.add_argument("--choose", action="store_true", help="parts of the training data alone")
    parser.add_argument("--growth", type=float, default=GROWTH, help="of tokens, step by step")
    parser.add_argument("--diversity", type=float, default=Choice.diversity)
    parser.add_argument("--by-token", type=float, default=Choice.by_token)
    parser.add_argument("--plot", type=Path, help="picture of the curves")
    options = parser.parse_args()
    choice = Choice(None, options.diversity, options.by_token)
    results = []
    for make in (conll2003, nettalk):
        if options.only in (None, make.__name__):
            task = make(options.quick, options.choose)
            work = partial(run, task, options.strategies, options.seeds, choice, options.growth)
            result, times = cpu_timed(work)
            results.append(result)
            report("suggest", **{**result, "curves": None}, **times)
    if options.plot:
        draw(options.plot, results)


if __name__ == "__main__":
    main()
