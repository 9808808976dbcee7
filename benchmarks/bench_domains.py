"""Use on other text than training's: `BoostedCRF` beside CRFsuite on WNUT-17, in one run.

Training is on tweets and the test on comments of another kind, with the same plain columns for
both. "cross-calibrated" is `cross_calibrate` of the training data, "by new names" with folds whose
names are new to the models that judge them. Each is measured twice: by its best labels, and by the
spans that serve F1 best (`predict_spans(X, "f1")`). So are CRFsuite's models, which `from_crfsuite`
reads for that: it has no such spans itself.

Two options look at training data alone. `--choose` learns from nine tenths of the tweets, and tests
on the last tenth, and on CoNLL-2003's news, where persons and locations count. `--folds` tests on
all tweets, each fifth by models of the others: of all others ("tweets"), and of those without its
names ("new names"); and on news by a model of all tweets.
`--same` is about text that stays of one kind: chunks of CoNLL-2000, and names of CoNLL-2003, which
are learned from some training sentences and tested on those behind them.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora import (
    PAD,
    PREFIX,
    SUFFIX,
    Item,
    Labelled,
    corpus,
    read_conll2000,
    read_wnut17,
    shape,
    span_f1,
)
from entities import bio
from timing import cpu_timed, report

if TYPE_CHECKING:
    from spacy_treecrf import BoostedCRF

ITERATIONS = 200
RIDGES = (1.0, 0.1)  # of CRFsuite: its default, and the better one on held-out tweets
HELD_OUT = 10  # the last of so many parts of the training tweets is where choices are made
FOLDS = 5
NEWS_SENTENCES = 1500
SAME_TRAIN, SAME_TEST = 4000, 1000  # sentences
QUICK_SEQUENCES = 500
QUICK_ITERATIONS = 30
NEWS_TYPES = {"PER": "person", "LOC": "location"}
SURE = 0.9
WORD = "lower[0]"  # the key by which names are told to be new
# For text of another kind than the training data; chosen by `--choose`.
OTHER_TEXT: dict[str, Any] = {"rounds": 35, "linear_rounds": 20, "word_dropout": 0.3}
OURS: tuple[dict[str, Any], ...] = ({}, OTHER_TEXT)
WINDOW = range(-2, 3)
LOWER, SHAPE = ([(d, f"{name}[{d}]") for d in WINDOW] for name in ("lower", "shape"))

Marginals = list[list[dict[str, float]]]


@dataclass
class Part:
    """Sequences of feature dicts and BIO labels; only some types of entities may count."""

    X: list[list[Item]] = field(default_factory=list)
    y: list[list[str]] = field(default_factory=list)
    types: frozenset[str] | None = None

    def first(self, n: int) -> Part:
        return Part(self.X[:n], self.y[:n], self.types)

    def cut(self) -> tuple[Part, Part]:
        """All but the last of HELD_OUT parts, and that one."""
        n = len(self.X) - len(self.X) // HELD_OUT
        return self.first(n), Part(self.X[n:], self.y[n:], self.types)

    def counted(self, label: str) -> str:
        """The label, or O if its type does not count."""
        return label if self.types is None or label[2:] in self.types else "O"


def items_of(words: list[str]) -> list[Item]:
    """Feature dicts of words: lower-cased and shapes at -2..2, the word, its ends."""
    lower = [PAD, PAD, *(word.lower() for word in words), PAD, PAD]
    shapes = [PAD, PAD, *map(shape, words), PAD, PAD]
    return [
        {key: lower[t + 2 + d] for d, key in LOWER}
        | {key: shapes[t + 2 + d] for d, key in SHAPE}
        | {"word": word}
        | {key: word[:n] for n, key in PREFIX}
        | {key: word[-n:] for n, key in SUFFIX}
        for t, word in enumerate(words)
    ]


def tweets_of(name: str) -> Part:
    """The sequences of a file of WNUT-17."""
    documents = read_wnut17(name)
    return Part([items_of(own.words) for own in documents], [own.entities for own in documents])


def read_news() -> Part:
    """The first sentences of eng.train, whose persons and locations count."""
    X, y = read_names(NEWS_SENTENCES)
    named = [
        [f"{k[:2]}{NEWS_TYPES[k[2:]]}" if k[2:] in NEWS_TYPES else "O" for k in labels]
        for labels in y
    ]
    return Part(X, named, frozenset(NEWS_TYPES.values()))


def read_names(n: int) -> Labelled:
    """The first n sentences of eng.train, and the BIO labels of their names."""
    X, y = [], []
    for block in corpus("conll2003", "eng.train").read_text(encoding="latin-1").split("\n\n"):
        rows = [line.split() for line in block.splitlines() if line.strip()]
        if rows and rows[0][0] != "-DOCSTART-" and len(X) < n:
            X.append(items_of([row[0] for row in rows]))
            y.append(bio([row[-1] for row in rows]))
    return X, y


def figures(part: Part, predicted: list[list[str]], marginals: Marginals) -> dict[str, Any]:
    """F1 of spans, and how honest the probabilities of the predicted labels are."""
    from spacy_treecrf.evaluation.calibration import expected_calibration_error

    labels = [[part.counted(label) for label in own] for own in predicted]
    p, right, marks = [], [], []
    for gold, own, rows in zip(part.y, labels, marginals, strict=True):
        for true, label, row in zip(gold, own, rows, strict=True):
            p.append(sum(q for other, q in row.items() if part.counted(other) == label))
            right.append(true == label)
            marks.append(label != "O")
    sure = np.array(marks) & (np.array(p) >= SURE)
    error = expected_calibration_error(p, right)
    assert error is not None
    return {
        "f1": span_f1(part.y, labels),
        "calibration_error": 100.0 * error,
        "sure_labels": int(sure.sum()),  # other than O, of probability SURE or more
        "sure_right": 100.0 * float(np.mean(np.array(right)[sure])) if sure.any() else None,
    }


Tagged = Callable[[Part], tuple[list[list[str]], Marginals]]


def train_crfsuite(
    train: Part, ridge: float, iterations: int
) -> tuple[Tagged, BoostedCRF, dict[str, float]]:
    """A tagger of CRFsuite, the same model as ours, and the time to train it."""
    import pycrfsuite

    from spacy_treecrf import BoostedCRF

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.select("lbfgs")
    trainer.set_params({"c1": 0.0, "c2": ridge, "max_iterations": iterations})

    def fit(path: str) -> None:
        for items, labels in zip(train.X, train.y, strict=True):
            trainer.append(items, labels)
        trainer.train(path)

    tagger = pycrfsuite.Tagger()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "crfsuite.model")
        _, times = cpu_timed(lambda: fit(path))
        tagger.open(path)
        ours = BoostedCRF.from_crfsuite(path, numbers=())

    def tag(part: Part) -> tuple[list[list[str]], Marginals]:
        predicted, marginals = [], []
        for items in part.X:
            predicted.append(tagger.tag(items))
            places = range(len(items))
            marginals.append([{k: tagger.marginal(k, t) for k in tagger.labels()} for t in places])
        return predicted, marginals

    return tag, ours, times


def train_ours(train: Part, settings: dict[str, Any]) -> tuple[BoostedCRF, dict[str, float]]:
    from spacy_treecrf import BoostedCRF

    return cpu_timed(lambda: BoostedCRF(**settings).fit(train.X, train.y))


def tagged(
    model: BoostedCRF, part: Part, for_f1: bool = False
) -> tuple[list[list[str]], Marginals]:
    """What a model says. for_f1: Labels are those of the spans that serve F1 best."""
    from spacy_treecrf.labels.schemes import spelled

    predicted = model.predict(part.X)
    if for_f1:
        found = model.predict_spans(part.X, "f1")
        predicted = [
            spelled([span[:3] for span in own], len(items), "BIO")
            for items, own in zip(part.X, found, strict=True)
        ]
    return predicted, model.predict_marginals(part.X)


def parts(choosing: bool, folds: bool) -> tuple[Part, dict[str, Part]]:
    """What to train on, and what to test on."""
    train = tweets_of("wnut17train.conll")
    if folds:
        return train, {"news": read_news()}
    if not choosing:
        return train, {"wnut17_dev": tweets_of("emerging.dev.conll")}
    train, held_out = train.cut()
    return train, {"tweets": held_out, "news": read_news()}


def systems(train: Part, iterations: int) -> Iterator[tuple[str, Tagged, dict[str, float]]]:
    for ridge in RIDGES:
        tag, read, times = train_crfsuite(train, ridge, iterations)
        yield f"crfsuite c2={ridge:g}", tag, times
        yield f"crfsuite c2={ridge:g}, our spans for F1", partial(tagged, read, for_f1=True), times
    for settings in OURS:
        name = system_name(settings)
        model, times = train_ours(train, settings)
        yield name, partial(tagged, model), times
        for how, new in (("", None), (" by new names", WORD)):
            calibrated, more = cpu_timed(
                partial(copy(model).cross_calibrate, train.X, train.y, FOLDS, new)
            )
            both = {key: times[key] + more[key] for key in times}
            yield f"{name}, cross-calibrated{how}", partial(tagged, calibrated), both
            for_f1 = partial(tagged, calibrated, for_f1=True)
            yield f"{name}, cross-calibrated{how}, spans for F1", for_f1, both


def judge_text_of_one_kind(quick: bool) -> None:
    """Report on sentences behind those of the training."""
    n, m = (QUICK_SEQUENCES, QUICK_SEQUENCES) if quick else (SAME_TRAIN, SAME_TEST)
    for test, (X, y) in {
        "chunks": read_conll2000("train", n + m),
        "names": read_names(n + m),
    }.items():
        train, held_out = Part(X[:n], y[:n]), Part(X[n:], y[n:])
        model, _ = train_ours(train, {})
        calibrated = copy(model).cross_calibrate(train.X, train.y, FOLDS)
        for name, judge, for_f1 in (
            ("BoostedCRF()", model, False),
            ("BoostedCRF(), spans for F1", model, True),
            ("BoostedCRF(), cross-calibrated", calibrated, False),
            ("BoostedCRF(), cross-calibrated, spans for F1", calibrated, True),
        ):
            values = figures(held_out, *tagged(judge, held_out, for_f1))
            report("same_domain", system=name, test=test, **values)


def system_name(settings: dict[str, Any]) -> str:
    return f"BoostedCRF({', '.join(f'{key}={value}' for key, value in settings.items())})"


def judge_by_folds(train: Part, news: Part, settings: dict[str, Any]) -> None:
    """Report on tweets, on tweets with new names, and on news, by models that have not seen them.

    The calibration of a fold is learned from the other folds.
    """
    from spacy_treecrf.estimators.calibrating import Judged, correction_by, cross_fitted
    from spacy_treecrf.models.calibration.search import Wanted

    model, _ = train_ours(train, settings)
    ways: dict[str, list[Judged]] = {
        kind: list(cross_fitted(model, train.X, train.y, FOLDS, new))
        for kind, new in (("tweets", None), ("new names", WORD))
    }
    tests: dict[str, list[Judged]] = {**ways, "news": [(model, news.X, news.y)]}
    for way, test, outside in product((None, *ways), tests, (False, True)):
        if way is None and outside:
            continue
        corrected: list[tuple[BoostedCRF, Part]] = []
        for k, (judge, X, y) in enumerate(tests[test]):
            own = copy(judge)
            if way is not None:
                others = [one for j, one in enumerate(ways[way]) if j != k or test == "news"]
                own.model_ = own.model_.corrected(correction_by(others, Wanted(outside)))
            corrected.append((own, Part(list(X), list(y), news.types if test == "news" else None)))
        calibration = "none" if way is None else f"{way}{', with O' * outside}"
        for for_f1 in (False, True):
            values = _of_all(corrected, for_f1)
            spans = "for F1" if for_f1 else "best labels"
            report(
                "domain_folds",
                system=system_name(settings),
                test=test,
                calibrated_by=calibration,
                spans=spans,
                **values,
            )


def _of_all(judged: Sequence[tuple[BoostedCRF, Part]], for_f1: bool) -> dict[str, Any]:
    """The figures of all parts together, each judged by its own model."""
    whole = Part(types=judged[0][1].types)
    predicted: list[list[str]] = []
    marginals: Marginals = []
    for model, part in judged:
        labels, own = tagged(model, part, for_f1)
        whole.X += part.X
        whole.y += part.y
        predicted += labels
        marginals += own
    return figures(whole, predicted, marginals)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--choose", action="store_true", help="look at training data alone")
    parser.add_argument("--folds", action="store_true", help="the same, by cross-fitting")
    parser.add_argument("--same", action="store_true", help="text that stays of one kind")
    parser.add_argument("--quick", action="store_true", help="a part of the data, under a minute")
    options = parser.parse_args()
    if options.same:
        judge_text_of_one_kind(options.quick)
        return
    train, tests = parts(options.choose, options.folds)
    iterations = ITERATIONS
    if options.quick:
        iterations = QUICK_ITERATIONS
        train = train.first(QUICK_SEQUENCES)
        tests = {name: part.first(QUICK_SEQUENCES) for name, part in tests.items()}
    if options.folds:
        for settings in OURS:
            judge_by_folds(train, tests["news"], settings)
        return
    for name, tag, times in systems(train, iterations):
        for test, part in tests.items():
            report("domains", system=name, test=test, **figures(part, *tag(part)), **times)


if __name__ == "__main__":
    main()
