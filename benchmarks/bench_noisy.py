"""Learning from a training set with 20 % of its entity spans spoiled: CoNLL-2003.

    TREECRF_CORPORA=DIR python benchmarks/bench_noisy.py

Spans of eng.train get another type, another boundary, or are dropped. Three trainings with the same
settings: on the clean labels, on the spoiled ones as they are, and on the spoiled ones as evidence.
Weights come from cross-fitted models: none judges a sentence that it has seen, and a label that two
of them together find improbable says nothing. They judge twice: the second time they have learned
only from labels that were believed the first time. Thresholds were chosen on the first half of the
sentences of eng.testa, with 300 documents; what counts is the F1 of the second half.
"""

from __future__ import annotations

import argparse
import json
import random
import time

from spacy_treecrf import BoostedCRF

from corpora import Labelled, chunking_items, corpus, span_f1, spans

SHARE = 0.2
FOLDS = 3
BELIEVED = (0.2, 0.1)  # P(label) that it needs, at first and then
# A model of trees and a linear one err in different places.
JUDGES = ({"rounds": 30}, {"rounds": 15, "linear_rounds": 15})
TYPES = ("LOC", "MISC", "ORG", "PER")


def read_sentences(part: str, documents: int | None) -> Labelled:
    """Feature dicts from words and tags, and BIO labels of the first documents."""
    X, y, n = [], [], 0
    for block in corpus("conll2003", part).read_text(encoding="latin-1").split("\n\n"):
        rows = [line.split() for line in block.splitlines() if line.strip()]
        if rows and rows[0][0] == "-DOCSTART-":
            n += 1
            rows = rows[1:]
        if documents is not None and n > documents:
            break
        if rows:
            X.append(chunking_items([row[0] for row in rows], [row[1] for row in rows]))
            y.append(_bio([row[-1] for row in rows]))
    return X, y


def _bio(labels: list[str]) -> list[str]:
    """IOB1 as BIO."""
    before = ["O", *labels]
    return [
        f"B-{label[2:]}" if label[:2] == "I-" and last[2:] != label[2:] else label
        for last, label in zip(before, labels, strict=False)
    ]


def spoiled(labels: list[str], share: float, rng: random.Random) -> list[str]:
    """The labels with a share of the spans of another type, with another boundary, or dropped."""
    new = list(labels)
    for first, last, type_ in spans(labels):
        if rng.random() >= share:
            continue
        kind = rng.choice(["type", "boundary", "dropped"])
        if kind == "type":
            _write(new, first, last, rng.choice([t for t in TYPES if t != type_]))
            continue
        new[first:last] = ["O"] * (last - first)
        moved = _moved(new, first, last)
        if kind == "boundary" and moved:
            _write(new, *rng.choice(moved), type_)
    return new


def _moved(labels: list[str], first: int, last: int) -> list[tuple[int, int]]:
    """Spans that have one boundary elsewhere, by a token."""
    found = [(first + 1, last), (first, last - 1)] if last - first > 1 else []
    if first > 0 and labels[first - 1] == "O":
        found.append((first - 1, last))
    if last < len(labels) and labels[last] == "O":
        found.append((first, last + 1))
    return found


def _write(labels: list[str], first: int, last: int, type_: str) -> None:
    labels[first:last] = [f"B-{type_}"] + [f"I-{type_}"] * (last - first - 1)


def judged(X: list, y: list, believed: list) -> list[list[float]]:
    """P(label) of each label of y, as models see it that have not learned from its sentence.

    believed: What they learn from.
    """
    found: list[list[float]] = [[] for _ in X]
    for fold in range(FOLDS):
        seen = [s for s in range(len(X)) if s % FOLDS != fold]
        unseen = [s for s in range(len(X)) if s % FOLDS == fold]
        models = [
            BoostedCRF(**judge).fit([X[s] for s in seen], [believed[s] for s in seen])
            for judge in JUDGES
        ]
        marginals = [model.predict_marginals([X[s] for s in unseen]) for model in models]
        for s, *of_models in zip(unseen, *marginals, strict=True):
            found[s] = [
                sum(p.get(label, 0.0) for p in position) / len(models)
                for label, position in zip(y[s], zip(*of_models, strict=True), strict=True)
            ]
    return found


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="300 documents")
    documents = 300 if parser.parse_args().quick else None
    X, clean = read_sentences("eng.train", documents)
    X_test, y_test = read_sentences("eng.testa", None)
    half = len(X_test) // 2
    rng = random.Random(0)
    noisy = [spoiled(labels, SHARE, rng) for labels in clean]
    began = time.process_time()
    weighed: list = noisy
    for least in BELIEVED:
        weighed = [
            [(label, float(p >= least)) for label, p in zip(own, ps, strict=True)]
            for own, ps in zip(noisy, judged(X, noisy, weighed), strict=True)
        ]
    say(sentences=len(X), judging_cpu_seconds=round(time.process_time() - began, 1))
    scores = {}
    for name, y in (("clean", clean), ("plain", noisy), ("evidence", weighed)):
        began = time.process_time()
        predicted = BoostedCRF().fit(X, y).predict(X_test)
        scores[name] = span_f1(y_test[half:], predicted[half:])
        say(
            training=name,
            f1=round(scores[name], 2),
            first_half_f1=round(span_f1(y_test[:half], predicted[:half]), 2),
            cpu_seconds=round(time.process_time() - began, 1),
        )
    say(evidence_over_plain=round(scores["evidence"] - scores["plain"], 2))


if __name__ == "__main__":
    main()
