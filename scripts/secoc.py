"""The figures of Hao and Fern (2007) with our learners: accuracy over code length and CPU seconds.

Writes metrics/secoc.json, metrics/secoc.md and the pictures metrics/secoc_*.png. Each accuracy is
of a test part that no model has seen; all models of a data set are trained in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import srsly
import typer

from scripts.prepare import provide
from spacy_treecrf import SECOCCRF, BoostedCRF, PerceptronTagger
from spacy_treecrf.cli.common import reports_errors, say
from spacy_treecrf.cli.tables import table
from spacy_treecrf.corpora import find_corpus, load_corpus
from spacy_treecrf.corpora.items import labelled_items
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.estimators import SequenceEstimator
from spacy_treecrf.evaluation.plots import require_matplotlib
from spacy_treecrf.models.codes import label_scores, least_bits

FOLDER = Path("metrics")
# name of the data set: corpus, split, layer of the labels, width of the window
DATA = {
    "NETtalk, window 1": ("nettalk", "small", "phoneme_stress", 1),
    "NETtalk, window 7": ("nettalk", "small", "phoneme_stress", 7),
    "transition, window 1": ("synthetic", "transition", "tag", 1),
    "both, window 3": ("synthetic", "both", "tag", 3),
}
LENGTHS = (10, 15, 20, 30, 40)
HISTORIES = (1, 3, "all")
BEAMS = (2, 5, 10, 20)
ROUNDS = 20  # of a boosted bit
QUICK_RECORDS = 120
QUICK_LENGTHS = (8, 10)


@dataclass(frozen=True)
class Point:
    """One trained model, or the first columns of one."""

    data: str
    method: str
    bits: int | None  # None: no output code
    accuracy: float  # percent of the test positions
    cpu_seconds: float | None  # of training, on all threads; None: columns of a longer code
    published: bool  # a method of the paper, not one of ours


@dataclass(frozen=True)
class Task:
    """A data set and what is tried on it."""

    name: str
    train: tuple[Any, Any]
    test: tuple[Any, Any]
    lengths: tuple[int, ...]
    rounds: int


@reports_errors
def main(
    quick: Annotated[bool, typer.Option(help="Few records and bits: does it run?")] = False,
    data: Annotated[str, typer.Option(help="Only data sets whose name starts so.")] = "",
    seed: Annotated[int, typer.Option(help="Of the splits and of synthetic data.")] = 0,
) -> None:
    """Train all methods on all data sets, and draw."""
    figures = require_matplotlib()
    points: list[Point] = []
    for name in DATA:
        if name.startswith(data):
            points += run(load(name, quick, seed))
    if not points:
        raise ValueError(f"treecrf: no data set starts with {data!r}; there are {', '.join(DATA)}")
    FOLDER.mkdir(exist_ok=True)
    srsly.write_json(FOLDER / "secoc.json", [asdict(point) for point in points])
    text = "\n\n".join(tables(points))
    (FOLDER / "secoc.md").write_text(f"```\n{text}\n```\n", encoding="utf-8")
    for path in draw(points, figures):
        say(f"wrote {path}")
    typer.echo(text)


def load(name: str, quick: bool, seed: int) -> Task:
    corpus, split, layer, width = DATA[name]
    provide(find_corpus(corpus), Path("project.yml"))
    splits = load_corpus(corpus, split=split, seed=seed)
    n = QUICK_RECORDS if quick else None
    train, test = (labelled_items(splits[part][:n], layer, width) for part in ("train", "test"))
    n_labels = len({label for labels in train[1] for label in labels})
    lengths = QUICK_LENGTHS if quick else LENGTHS
    lengths = tuple(n for n in lengths if n >= least_bits(n_labels))
    return Task(name, train, test, lengths, 4 if quick else ROUNDS)


def run(task: Task) -> Iterator[Point]:
    yield from run_published(task)
    yield from run_ours(task)
    yield from run_beams(task)


def run_published(task: Task) -> Iterator[Point]:
    """iid, i-SECOC and c-SECOC(h): columns one by one, L1 decoding."""
    longest = max(task.lengths)
    for name, base in (("boosted", boosted(task)), ("perceptron", PerceptronTagger())):
        parts: dict[str, dict[str, Any]] = {
            "iid": {"base": base.__class__(**{**base.get_params(), "order": 0})},
            "i-SECOC": {"base": base},
        }
        parts |= {f"c-SECOC({h})": {"base": base, "history": h} for h in HISTORIES}
        for method, settings in parts.items():
            model = SECOCCRF(
                bits=longest, decoding="l1", cascade="training", training="columns", **settings
            )
            seconds = fit(model, task)
            for n, accuracy in by_length(model, task):
                cpu = seconds if n == longest else None
                yield shown(Point(task.name, f"{method} {name}", n, accuracy, cpu, True))


def run_ours(task: Task) -> Iterator[Point]:
    """Joint decoding, the cross-fitted cascade, and joint training."""
    longest = max(task.lengths)
    base = boosted(task)
    for method, settings in {
        "i-SECOC + joint decoding": {"training": "columns"},
        "c-SECOC(3) cross-fitted": {"history": 3, "decoding": "l1"},
        "c-SECOC(3) cross-fitted + joint decoding": {"history": 3},
        "c-SECOC(3) + joint decoding": {"history": 3, "cascade": "training"},
        "c-SECOC(all) + joint decoding": {"history": "all", "cascade": "training"},
    }.items():
        model = SECOCCRF(bits=longest, base=base, **settings)
        seconds = fit(model, task)
        accuracy = 100 * model.score(*task.test)
        yield shown(Point(task.name, method, longest, accuracy, seconds, False))
    for n in (*task.lengths, None):
        model = SECOCCRF(bits=n, base=BoostedCRF(rounds=task.rounds if n and n < 12 else None))
        seconds = fit(model, task)
        accuracy = 100 * model.score(*task.test)
        bits = model.model_.n_bits
        yield shown(Point(task.name, "joint training", bits, accuracy, seconds, False))


def run_beams(task: Task) -> Iterator[Point]:
    """Labels without codes, exactly and inside a beam."""
    for beam in (*BEAMS, None):
        within = f"beam {beam}" if beam else "exact"
        for name, model in {
            f"boosted, {within}": BoostedCRF(family="separate", beam=beam),
            f"perceptron, {within}": PerceptronTagger(beam=beam),
        }.items():
            seconds = fit(model, task)
            accuracy = 100 * model.score(*task.test)
            yield shown(Point(task.name, name, None, accuracy, seconds, True))


def boosted(task: Task) -> BoostedCRF:
    return BoostedCRF(rounds=task.rounds)


def fit(model: SequenceEstimator, task: Task) -> float:
    """CPU seconds of a training."""
    began = time.process_time()
    model.fit(*task.train)
    return time.process_time() - began


def by_length(model: SECOCCRF, task: Task) -> Iterator[tuple[int, float]]:
    """Accuracies of the first n columns: the beginning of a random code is a random code."""
    learned = model.model_
    ids = {label: i for i, label in enumerate(learned.labels)}
    gold = np.array([ids.get(label, -1) for labels in task.test[1] for label in labels])
    with Workers() as workers:
        probabilities = learned.bit_probabilities(model._encode(task.test[0]), workers)
    for n in task.lengths:
        scores = label_scores(probabilities[:, :n], learned.code[:, :n], "l1")
        yield n, 100 * float(np.mean(scores.argmax(axis=1) == gold))


def shown(point: Point) -> Point:
    seconds = "" if point.cpu_seconds is None else f", {point.cpu_seconds:.1f} CPU s"
    bits = "" if point.bits is None else f", {point.bits} bits"
    say(f"{point.data}: {point.method}{bits}: {point.accuracy:.2f} %{seconds}")
    return point


def tables(points: list[Point]) -> Iterator[str]:
    """For each data set a line for each method, by falling accuracy."""
    for name in dict.fromkeys(point.data for point in points):
        best: dict[str, Point] = {}
        for point in points:
            if point.data == name and point.cpu_seconds is not None:
                other = best.get(point.method)
                if other is None or point.accuracy > other.accuracy:
                    best[point.method] = point
        rows = [
            (
                p.method,
                "" if p.bits is None else str(p.bits),
                f"{p.accuracy:.2f}",
                f"{p.cpu_seconds:.1f}",
                "paper" if p.published else "ours",
            )
            for p in sorted(best.values(), key=lambda p: -p.accuracy)
        ]
        yield table([name, "bits", "accuracy %", "CPU s", ""], rows)


def draw(points: list[Point], figures: Any) -> Iterator[Path]:
    for name in dict.fromkeys(point.data for point in points):
        here = [point for point in points if point.data == name]
        figure = figures.Figure(figsize=(11, 4.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        coded = dict.fromkeys(p.method for p in here if p.bits is not None)
        for method in coded:
            line = [(p.bits, p.accuracy) for p in here if p.method == method]
            style = "o-" if len(line) > 1 else "s"
            left.plot(*zip(*line, strict=True), style, label=method, markersize=4)
        left.set_xlabel("length of code words")
        for method in dict.fromkeys(p.method for p in here):
            line = [
                (p.cpu_seconds, p.accuracy)
                for p in here
                if p.method == method and p.cpu_seconds is not None
            ]
            marker = "x" if method.startswith(("boosted", "perceptron")) else "o"
            right.plot(*zip(*line, strict=True), marker, label=method, markersize=5)
        right.set_xscale("log")
        right.set_xlabel("CPU seconds of training")
        for axes in (left, right):
            axes.set_ylabel("accuracy %")
            axes.set_title(name)
            axes.legend(fontsize=5)
        path = FOLDER / f"secoc_{name.replace(', ', '_').replace(' ', '_')}.png"
        figure.savefig(path, dpi=150)
        yield path


if __name__ == "__main__":
    typer.run(main)
