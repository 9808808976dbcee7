"""Output codes, and chains over plain labels, trained on one data set: a point for each of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scripts.prepare import provide
from spacy_treecrf import SECOCCRF, BoostedCRF, PerceptronTagger
from spacy_treecrf.cli.common import say
from spacy_treecrf.corpora import find_corpus, load_corpus
from spacy_treecrf.corpora.items import labelled_items
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.estimators import SequenceEstimator
from spacy_treecrf.models.codes import label_scores, least_bits

# name of the data set: corpus, split, layer of the labels, width of the window, leaves of a bit's
# trees. Leaves are the better ones of 8 and 64 for the published variants, learned from two thirds
# of the training part and judged by the rest of it.
DATA = {
    "NETtalk, window 1": ("nettalk", "small", "phoneme_stress", 1, 64),
    "NETtalk, window 7": ("nettalk", "small", "phoneme_stress", 7, 64),
    "transition, window 1": ("synthetic", "transition", "tag", 1, 8),
    "both, window 3": ("synthetic", "both", "tag", 3, 64),
}
LENGTHS = (8, 12, 16, 20)
HISTORIES = (1, 3, "all")
BEAMS = (2, 5, 10)
ROUNDS = 20  # of a boosted bit
QUICK_RECORDS = 100
QUICK_LENGTHS = (8, 10)
QUICK_ROUNDS = 4

PAPER = "paper"
OURS = "ours"
IID, INDEPENDENT = "iid", "i-SECOC"
JOINT = " + joint decoding"
CROSS_FITTED = "c-SECOC(3), cross-fitted"
TOGETHER = "joint training"
DEFAULT = "SECOCCRF()"
DIRECT = "BoostedCRF()"


@dataclass(frozen=True)
class Point:
    """One trained model, or the first columns of one."""

    data: str
    method: str
    bits: int | None  # None: no output code
    seed: int
    right: npt.NDArray[np.bool_]  # for each position of the test part
    cpu_seconds: float | None  # of training, on all threads; None: columns of a longer code
    by: str  # PAPER or OURS

    @property
    def accuracy(self) -> float:
        """In percent."""
        return 100 * float(np.mean(self.right))


@dataclass(frozen=True)
class Task:
    """A data set and what is tried on it."""

    name: str
    seed: int
    train: tuple[Any, Any]
    test: tuple[Any, Any]
    lengths: tuple[int, ...]
    base: BoostedCRF  # of boosted bits

    def point(self, method: str, bits: int | None, right: Any, cpu: float | None, by: str) -> Point:
        point = Point(self.name, method, bits, self.seed, np.asarray(right, bool), cpu, by)
        length = "" if bits is None else f", {bits} bits"
        took = "" if cpu is None else f", {cpu:.1f} CPU s"
        say(f"{self.name}, seed {self.seed}: {method}{length}: {point.accuracy:.2f} %{took}")
        return point


def load_task(name: str, quick: bool, seed: int) -> Task:
    corpus, split, layer, width, leaves = DATA[name]
    provide(find_corpus(corpus), Path("project.yml"))
    splits = load_corpus(corpus, split=split, seed=seed)
    n = QUICK_RECORDS if quick else None
    train, test = (labelled_items(splits[part][:n], layer, width) for part in ("train", "test"))
    n_labels = len({label for labels in train[1] for label in labels})
    lengths = QUICK_LENGTHS if quick else LENGTHS
    lengths = tuple(n for n in lengths if n >= least_bits(n_labels))
    base = BoostedCRF(rounds=QUICK_ROUNDS if quick else ROUNDS, leaves=leaves)
    return Task(name, seed, train, test, lengths, base)


def compared(task: Task) -> Iterator[Point]:
    """The methods that are compared over seeds."""
    yield from published(task, task.base)
    yield from published(task, PerceptronTagger())
    yield from ours(task)
    yield direct(task, DIRECT, BoostedCRF(family="separate"), OURS)


def drawn(task: Task) -> Iterator[Point]:
    """What figures show besides: joint training of shorter codes, and labels inside of a beam."""
    for n in task.lengths[:-1]:
        yield direct(task, TOGETHER, SECOCCRF(bits=n, base=BoostedCRF()), OURS)
    for beam in BEAMS:
        model = BoostedCRF(family="separate", beam=beam)
        yield direct(task, f"boosted, beam {beam}", model, PAPER)
        yield direct(task, f"perceptron, beam {beam}", PerceptronTagger(beam=beam), PAPER)
    yield direct(task, "perceptron, exact", PerceptronTagger(), PAPER)


def published(task: Task, base: BoostedCRF | PerceptronTagger) -> Iterator[Point]:
    """iid, i-SECOC and c-SECOC(h): columns one by one, decoded by the L1 distance."""
    boosted = isinstance(base, BoostedCRF)
    alone = base.__class__(**{**base.get_params(), "order": 0})
    methods: dict[str, dict[str, Any]] = {IID: {"base": alone}, INDEPENDENT: {"base": base}}
    for h in HISTORIES:
        methods[f"c-SECOC({h})"] = {"base": base, "history": h, "cascade": "training"}
    for name, settings in methods.items():
        model = SECOCCRF(bits=max(task.lengths), decoding="l1", training="columns", **settings)
        cpu = trained(model, task)
        yield from by_length(model, task, name if boosted else f"{name}, perceptron", cpu, PAPER)


def ours(task: Task) -> Iterator[Point]:
    """Cross-fitted columns, with and without joint decoding, and joint training."""
    longest = max(task.lengths)
    for name, settings in {
        f"{INDEPENDENT}, cross-fitted": {"training": "columns"},
        CROSS_FITTED: {"history": 3},
    }.items():
        model = SECOCCRF(bits=longest, base=task.base, **settings)
        cpu = trained(model, task)
        yield from by_length(model, task, name, cpu, OURS)
        yield task.point(name + JOINT, longest, hits(model, task), cpu, OURS)
    yield direct(task, TOGETHER, SECOCCRF(bits=longest), OURS)
    yield direct(task, DEFAULT, SECOCCRF(), OURS)


def direct(task: Task, name: str, model: SequenceEstimator, by: str) -> Point:
    cpu = trained(model, task)
    bits = model.model_.n_bits if isinstance(model, SECOCCRF) else None
    return task.point(name, bits, hits(model, task), cpu, by)


def trained(model: SequenceEstimator, task: Task) -> float:
    """CPU seconds of a training."""
    began = time.process_time()
    model.fit(*task.train)
    return time.process_time() - began


def hits(model: SequenceEstimator, task: Task) -> list[bool]:
    X, y = task.test
    pairs = zip(model.predict(X), y, strict=True)
    return [a == b for found, gold in pairs for a, b in zip(found, gold, strict=True)]


def by_length(model: SECOCCRF, task: Task, name: str, cpu: float, by: str) -> Iterator[Point]:
    """Points of the first n columns: the beginning of a random code is a random code."""
    learned = model.model_
    ids = {label: i for i, label in enumerate(learned.labels)}
    gold = np.array([ids.get(label, -1) for labels in task.test[1] for label in labels])
    with Workers() as workers:
        probabilities = learned.bit_probabilities(model._encode(task.test[0]), workers)
    for n in task.lengths:
        scores = label_scores(probabilities[:, :n], learned.code[:, :n], "l1")
        right = scores.argmax(axis=1) == gold
        yield task.point(name, n, right, cpu if n == learned.n_bits else None, by)
