"""Models that CRFsuite trains in the tests, on made-up addresses and a part of CoNLL-2000."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pycrfsuite

Item = Any  # a dict of features or a list of attributes
STREETS = ["Mill Lane", "High Street", "Park Road", "Station Road", "Elm Grove", "Queen Street"]
CITIES = ["Leeds", "York", "Bath", "Milton Keynes", "Poole", "Queen Camel"]

# Every algorithm, with and without weights for what the training data do not show.
TRAININGS: list[tuple[str, dict[str, Any]]] = [
    ("lbfgs", {"c1": 0.0, "c2": 1.0, "max_iterations": 30}),
    ("lbfgs", {"c1": 0.5, "c2": 0.01, "max_iterations": 30}),
    ("lbfgs", {"max_iterations": 20, "feature.possible_states": True}),
    ("lbfgs", {"max_iterations": 20, "feature.possible_transitions": True, "feature.minfreq": 2}),
    ("l2sgd", {"c2": 0.1, "max_iterations": 20}),
    ("ap", {"max_iterations": 10, "feature.possible_states": True}),
    ("pa", {"max_iterations": 10, "feature.possible_transitions": True}),
    ("arow", {"max_iterations": 10}),
]


def address(draw: random.Random) -> tuple[list[str], list[str]]:
    """Words, and the part that each of them belongs to."""
    parts = [("STREET", draw.choice(STREETS)), ("CITY", draw.choice(CITIES))]
    parts.insert(draw.choice([0, 1]), ("NUMBER", str(draw.randint(1, 240))))
    if draw.random() < 0.5:
        parts.append(("POSTCODE", str(draw.randint(10000, 99999))))
    words = [(word, part) for part, text in parts for word in text.split()]
    return [word for word, _ in words], [part for _, part in words]


def features(words: list[str]) -> list[Item]:
    """Everything that python-crfsuite takes: texts, flags, numbers, lists, sets, nested dicts."""
    items: list[Item] = []
    for t, word in enumerate(words):
        item: dict[str, Any] = {
            "bias": 1.0,
            "word": word.lower(),
            "title": word.istitle(),
            "length": len(word),
            "vowels": sum(c in "aeiou" for c in word) / len(word) - 0.25,
            "letters": list(word.lower()),  # with repetitions
            "ends": {word[-1:], word[-2:]},
            "a:b": word[:1],
            "a": {"b": word[:1]},  # the same attribute again
            "none": "",
        }
        if t:
            item["-1"] = {"word": words[t - 1].lower(), "digit": words[t - 1].isdigit()}
        if t + 1 < len(words):
            item["+1:word"] = words[t + 1].lower()
        items.append(item)
    return items


def addresses(n: int, seed: int) -> tuple[list[list[Item]], list[list[str]]]:
    draw = random.Random(seed)
    made = [address(draw) for _ in range(n)]
    return [features(words) for words, _ in made], [parts for _, parts in made]


def train_crfsuite(
    path: Path,
    X: list[list[Item]],
    y: list[list[str]],
    algorithm: str = "lbfgs",
    parameters: dict[str, Any] | None = None,
) -> pycrfsuite.Tagger:
    """Train a model, write it to the path, and return CRFsuite's own reader of it."""
    trainer = pycrfsuite.Trainer(algorithm=algorithm, params=parameters or {}, verbose=False)
    for items, labels in zip(X, y, strict=True):
        trainer.append(items, labels)
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


def marginals(tagger: pycrfsuite.Tagger, items: list[Item]) -> list[dict[str, float]]:
    tagger.set(items)
    labels = tagger.labels()
    return [{label: tagger.marginal(label, t) for label in labels} for t in range(len(items))]
