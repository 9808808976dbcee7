"""Output codes, and chains over plain labels, trained on one data set: a point for each of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scripts.prepare import provide
from scripts.reproduce.windows import labelled_items
from spacy_treecrf import SECOCCRF, BoostedCRF, PerceptronTagger
from spacy_treecrf.cli.shared.common import say
from spacy_treecrf.corpora import find_corpus, load_corpus
from spacy_treecrf.engine.codes.code_words import label_scores, least_bits
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.estimators import SequenceEstimator


@dataclass(frozen=True)
class Source:
    """A source of a data set, and the settings that suit it.

    Leaves and history were chosen by learning from two thirds of a training part and judging by the
    rest of it.

    leaves: The leaves of the trees of bits, the better of 8 and 64 for the published variants.
    history: The history of the cross-fitted cascade, the best of HISTORIES, which
        `python -m scripts.reproduce.secoc_points` tries.
    """

    corpus: str
    split: str
    layer: str
    width: int  # positions in the window
    leaves: int
    history: int | str


DATA = {
    "NETtalk, window 1": Source("nettalk", "small", "phoneme_stress", 1, 64, "all"),
    "NETtalk, window 7": Source("nettalk", "small", "phoneme_stress", 7, 64, 1),
    "transition, window 1": Source("synthetic", "transition", "tag", 1, 8, "all"),
    "both, window 3": Source("synthetic", "both", "tag", 3, 64, "all"),
}
LENGTHS = (8, 12, 16, 20)
HISTORIES = (1, 3, "all")
BEAMS = (2, 5, 10)
ROUNDS = 20  # for each boosted bit
QUICK_SEQUENCES = 100
QUICK_LENGTHS = (8, 10)
QUICK_ROUNDS = 4

PAPER = "paper"
OURS = "ours"
IID, INDEPENDENT = "iid", "i-SECOC"
JOINT = " + joint decoding"
CROSS_FITTED = "c-SECOC, cross-fitted"
TOGETHER = "joint training"
DEFAULT = "SECOCCRF()"
DIRECT = "BoostedCRF()"


@dataclass(frozen=True)
class Point:
    """One trained model, or the first bits of one."""

    data: str
    method: str
    bits: int | None  # None: no output code
    seed: int
    right: npt.NDArray[np.bool_]  # for each position of the test part
    cpu_seconds: float | None  # of training, on all threads; None: a part of a longer code
    by: str  # PAPER or OURS

    @property
    def accuracy(self) -> float:
        """The accuracy in percent."""
        return 100 * float(np.mean(self.right))


@dataclass(frozen=True)
class Task:
    """A data set and what is tried on it."""

    name: str
    seed: int
    train: tuple[Any, Any]
    test: tuple[Any, Any]
    lengths: tuple[int, ...]
    base: BoostedCRF  # learns the boosted bits
    history: int | str  # how many earlier bits the cross-fitted cascade sees

    def point(self, method: str, bits: int | None, right: Any, cpu: float | None, by: str) -> Point:
        point = Point(self.name, method, bits, self.seed, np.asarray(right, bool), cpu, by)
        length = "" if bits is None else f", {bits} bits"
        took = "" if cpu is None else f", {cpu:.1f} CPU s"
        say(f"{self.name}, seed {self.seed}: {method}{length}: {point.accuracy:.2f} %{took}")
        return point


def load_task(name: str, quick: bool, seed: int) -> Task:
    source = DATA[name]
    provide(find_corpus(source.corpus), Path("project.yml"))
    splits = load_corpus(source.corpus, split=source.split, seed=seed)
    n = QUICK_SEQUENCES if quick else None
    train, test = (
        labelled_items(splits[part][:n], source.layer, source.width) for part in ("train", "test")
    )
    n_labels = len({label for labels in train[1] for label in labels})
    lengths = QUICK_LENGTHS if quick else LENGTHS
    lengths = tuple(n for n in lengths if n >= least_bits(n_labels))
    base = BoostedCRF(rounds=QUICK_ROUNDS if quick else ROUNDS, leaves=source.leaves)
    return Task(name, seed, train, test, lengths, base, source.history)


def compared(task: Task) -> Iterator[Point]:
    """The methods that are compared over seeds."""
    longest = max(task.lengths)
    yield from published(task, task.base)
    yield from published(task, PerceptronTagger())
    yield from cross_fitted(task, CROSS_FITTED, task.history)
    yield direct(task, TOGETHER, SECOCCRF(bits=longest), OURS)
    yield direct(task, DEFAULT, SECOCCRF(), OURS)
    yield direct(task, DIRECT, BoostedCRF(family="separate"), OURS)


def drawn(task: Task) -> Iterator[Point]:
    """Points that tables and figures of one seed show besides, labels in a beam among them."""
    yield from cross_fitted(task, f"{INDEPENDENT}, cross-fitted", 0)
    for n in task.lengths[:-1]:
        yield direct(task, TOGETHER, SECOCCRF(bits=n), OURS)
    for beam in BEAMS:
        model = BoostedCRF(family="separate", beam=beam)
        yield direct(task, f"boosted, beam {beam}", model, PAPER)
        yield direct(task, f"perceptron, beam {beam}", PerceptronTagger(beam=beam), PAPER)
    yield direct(task, "perceptron, exact", PerceptronTagger(), PAPER)


def published(task: Task, base: BoostedCRF | PerceptronTagger) -> Iterator[Point]:
    """Points of iid, i-SECOC and c-SECOC(h): bits one by one, decoded by the L1 distance."""
    boosted = isinstance(base, BoostedCRF)
    alone = base.__class__(**{**base.get_params(), "order": 0})
    methods: dict[str, dict[str, Any]] = {IID: {"base": alone}, INDEPENDENT: {"base": base}}
    for h in HISTORIES:
        methods[f"c-SECOC({h})"] = {"base": base, "history": h, "cascade": "training"}
    for name, settings in methods.items():
        model = SECOCCRF(bits=max(task.lengths), decoding="l1", training="columns", **settings)
        cpu = trained(model, task)
        yield from by_length(model, task, name if boosted else f"{name}, perceptron", cpu, PAPER)


def cross_fitted(task: Task, name: str, history: int | str) -> Iterator[Point]:
    """Points of cross-fitted bits, decoded by the L1 distance and jointly."""
    bits = max(task.lengths)
    model = SECOCCRF(bits=bits, base=task.base, training="columns", history=history)
    cpu = trained(model, task)
    yield from by_length(model, task, name, cpu, OURS)
    yield task.point(name + JOINT, bits, hits(model, task), cpu, OURS)


def direct(task: Task, name: str, model: SequenceEstimator, by: str) -> Point:
    cpu = trained(model, task)
    bits = model.model_.n_bits if isinstance(model, SECOCCRF) else None
    return task.point(name, bits, hits(model, task), cpu, by)


def trained(model: SequenceEstimator, task: Task) -> float:
    """Train a model; returns the CPU seconds."""
    began = time.process_time()
    model.fit(*task.train)
    return time.process_time() - began


def hits(model: SequenceEstimator, task: Task) -> list[bool]:
    X, y = task.test
    pairs = zip(model.predict(X), y, strict=True)
    return [a == b for found, gold in pairs for a, b in zip(found, gold, strict=True)]


def by_length(model: SECOCCRF, task: Task, name: str, cpu: float, by: str) -> Iterator[Point]:
    """Points of the first n bits: the beginning of a random code is a random code."""
    learned = model.model_
    ids = {label: i for i, label in enumerate(learned.labels)}
    gold = np.array([ids.get(label, -1) for labels in task.test[1] for label in labels])
    with Workers() as workers:
        probabilities = learned.bit_probabilities(
            Sequences.unlabelled(*learned.columns.encode(task.test[0])), workers
        )
    for n in task.lengths:
        scores = label_scores(probabilities[:, :n], learned.code[:, :n], "l1")
        right = scores.argmax(axis=1) == gold
        yield task.point(name, n, right, cpu if n == learned.n_bits else None, by)


def held_out(name: str, history: int | str, seed: int) -> float:
    """The accuracy of the cross-fitted cascade on a third of a training part, held out."""
    task = load_task(name, quick=False, seed=seed)
    X, y = task.train
    n = len(X) * 2 // 3
    task = replace(task, train=(X[:n], y[:n]), test=(X[n:], y[n:]), lengths=task.lengths[-1:])
    return next(cross_fitted(task, f"history {history}", history)).accuracy


if __name__ == "__main__":
    for name in DATA:
        for history in HISTORIES:
            accuracy = np.mean([held_out(name, history, seed) for seed in (0, 1)])
            say(f"{name}: history {history}: {accuracy:.2f} % of held-out training positions")
