"""Calls with feature dicts, one sentence or many: `BoostedCRF` beside python-crfsuite, by turns.

Both label the same sentences in one thread of one process: addresses of about ten tokens with few
features, and sentences of CoNLL-2000 with 21 columns. Seconds are those of the processor, so that
a busy machine disturbs less; `--wall` takes wall time.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corpora import read_conll2000, span_f1
from timing import report

TURNS = 15  # of all sentences, for throughput
CALLS = 2000  # of one sentence
QUICK_SENTENCES = 1000
ITERATIONS = 100

STREETS = ["Oak", "Elm", "Main", "Park", "High", "Church", "Station", "Mill", "Bridge", "Garden"]
KINDS = ["Street", "St", "Road", "Rd", "Avenue", "Ave", "Lane", "Way", "Close", "Drive"]
CITIES = ["Leeds", "York", "Bath", "Derby", "Exeter", "Hull", "Luton", "Oxford", "Truro", "Ely"]
NAMES = ["Ada", "Bob", "Carla", "Dan", "Eve", "Frank", "Gina", "Hal", "Ines", "Jon", "Kim", "Lee"]

Item = dict[str, Any]


@dataclass
class Task:
    """Sentences to learn from and to label."""

    X: list[list[Item]]
    y: list[list[str]]
    X_test: list[list[Item]]
    y_test: list[list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="learn from a part of the data")
    parser.add_argument("--wall", action="store_true", help="wall time, for a quiet machine")
    options = parser.parse_args()
    clock = time.perf_counter if options.wall else time.process_time
    limit = QUICK_SENTENCES if options.quick else None
    tasks = {
        "addresses": addresses(),
        "conll2000": Task(*read_conll2000("train", limit), *read_conll2000("test", limit)),
    }
    for name, task in tasks.items():
        bench(name, task, clock)


def bench(name: str, task: Task, clock: Callable[[], float]) -> None:
    """Report on both sides: single calls, and all sentences at once."""
    from spacy_treecrf import BoostedCRF

    model = BoostedCRF(threads=1).fit(task.X, task.y)
    with tempfile.TemporaryDirectory() as folder:
        tagger = crfsuite_tagger(task, Path(folder) / "crfsuite.model")
        single: dict[str, Callable[[list[Item]], Any]] = {
            "ours": model.predict_single,
            "ours_marginals": model.predict_marginals_single,
            "crfsuite": tagger.tag,
        }
        whole: dict[str, Callable[[list[list[Item]]], Any]] = {
            "ours": model.predict,
            "crfsuite": lambda X: [tagger.tag(items) for items in X],
        }
        microseconds = single_calls(single, task.X_test, clock)
        seconds = all_sentences(whole, task.X_test, clock)
        f1 = {side: span_f1(task.y_test, label(task.X_test)) for side, label in whole.items()}
    n_tokens = sum(map(len, task.X_test))
    rates = {side: n_tokens / best for side, best in seconds.items()}
    report(
        "calls",
        task=name,
        tokens_in_a_sentence=n_tokens / len(task.X_test),
        microseconds=microseconds,
        tokens_per_second=rates,
        f1=f1,
        ratio_of_p50=microseconds["ours"]["p50"] / microseconds["crfsuite"]["p50"],
        p99_by_crfsuite_p50=microseconds["ours"]["p99"] / microseconds["crfsuite"]["p50"],
        ratio_of_tokens_per_second=rates["ours"] / rates["crfsuite"],
    )


def single_calls(
    sides: dict[str, Callable[[list[Item]], Any]],
    sentences: Sequence[list[Item]],
    clock: Callable[[], float],
) -> dict[str, dict[str, float]]:
    """The p50 and p99 of calls with one sentence in microseconds; each sentence is new to a side.

    Sides take turns, and the order of turns changes, so that none always finds a cold cache.
    """
    for call in sides.values():  # compiles, and fills tables
        call(sentences[0])
    taken: dict[str, list[float]] = {side: [] for side in sides}
    order = list(sides)
    for sentence in (sentences * (CALLS // len(sentences) + 1))[:CALLS]:
        for side in order:
            began = clock()
            sides[side](sentence)
            taken[side].append(1e6 * (clock() - began))
        order = order[1:] + order[:1]
    return {
        side: {"p50": float(np.percentile(t, 50)), "p99": float(np.percentile(t, 99))}
        for side, t in taken.items()
    }


def all_sentences(
    sides: dict[str, Callable[[list[list[Item]]], Any]],
    sentences: list[list[Item]],
    clock: Callable[[], float],
) -> dict[str, float]:
    """The fewest seconds of each side for all sentences."""
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(TURNS):
        for side, label in sides.items():
            began = clock()
            label(sentences)
            best[side] = min(best[side], clock() - began)
    return best


def crfsuite_tagger(task: Task, path: Path) -> Any:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.select("lbfgs")
    trainer.set_params({"c1": 0.0, "c2": 1.0, "max_iterations": ITERATIONS, "feature.minfreq": 2})
    for items, labels in zip(task.X, task.y, strict=True):
        trainer.append(items, labels)
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


def addresses() -> Task:
    """Made-up addresses of about ten tokens, with a few texts and flags for each token."""
    draw = random.Random(0)
    X, y = [], []
    for _ in range(3000):
        words, labels = zip(*_address(draw), strict=True)
        X.append([_address_item(words, t) for t in range(len(words))])
        y.append(list(labels))
    return Task(X[:2000], y[:2000], X[2000:], y[2000:])


def _address(draw: random.Random) -> list[tuple[str, str]]:
    """The words of an address and their labels."""
    words = [(draw.choice(NAMES), "B-name"), (draw.choice(NAMES) + "son", "I-name"), (",", "O")]
    words += [(str(draw.randrange(1, 300)), "B-road"), (draw.choice(STREETS), "I-road")]
    words += [(draw.choice(KINDS), "I-road"), (",", "O"), (draw.choice(CITIES), "B-city")]
    code = draw.choice("ABDEGHLMNS") + str(draw.randrange(1, 30))
    return [*words, (code, "B-code"), (f"{draw.randrange(10)}{draw.choice('ABDE')}", "I-code")]


def _address_item(words: Sequence[str], t: int) -> Item:
    word = words[t]
    return {
        "word": word.lower(),
        "before": words[t - 1].lower() if t else "<s>",
        "after": words[t + 1].lower() if t + 1 < len(words) else "</s>",
        "suffix": word[-3:],
        "digit": word.isdigit(),
        "title": word.istitle(),
        "bias": 1.0,
    }


if __name__ == "__main__":
    main()
