"""One model from an average of five: entities of CoNLL-2003.

    TREECRF_CORPORA=DIR python benchmarks/bench_distill.py

Documents of eng.train are drawn at random, and five models that differ by their seeds learn from
them. Their average labels these and the other documents of eng.train, whose own labels nobody looks
at, and one model of as many trees as each of the five learns from what it says, edges included.
"alone" is a model of the student's settings on the annotated documents. The gain of the average is
over the mean of the five; what counts is the share of it that the student has, on eng.testa.
Settings were chosen with --choose, which knows parts of eng.train only.
"""

from __future__ import annotations

import argparse
import random

import numpy as np

from spacy_treecrf import BoostedCRF

from corpora import span_f1
from entities import Sentences, training_and_test
from timing import cpu_timed, report

ROUNDS = 40
SETTINGS = {"rounds": ROUNDS, "subsample": 0.5, "colsample": 0.5}
MODELS = 5
ANNOTATED, UNLABELLED = 150, 600  # documents


def run(train: Sentences, test: Sentences, annotated: int, seed: int) -> dict[str, float]:
    """F1 of all models of one draw."""
    order = random.Random(seed).sample(range(train.n_documents), annotated + UNLABELLED)
    known = train.of(set(order[:annotated]))
    texts = train.of(set(order)).X
    scores: dict[str, float] = {}

    def score(name: str, model: BoostedCRF) -> None:
        scores[name] = span_f1(test.y, model.predict(test.X))
        trees = model.model_.potentials.n_trees
        report("distill", draw=seed, model=name, f1=scores[name], trees=trees)

    score("alone", BoostedCRF(rounds=ROUNDS).fit(known.X, known.y))
    models = []
    for i in range(MODELS):
        models.append(BoostedCRF(seed=MODELS * seed + i, **SETTINGS).fit(known.X, known.y))
        score(f"member {i}", models[-1])
    scores["mean"] = float(np.mean([scores[f"member {i}"] for i in range(MODELS)]))
    teacher = BoostedCRF.average(models)
    score("average", teacher)
    student = BoostedCRF(soft_labels="distill", rounds=ROUNDS)
    score("student", student.fit(texts, teacher.predict_lattices(texts)))
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one draw")
    parser.add_argument("--choose", action="store_true", help="the last fifth of eng.train as test")
    parser.add_argument("--draws", type=int, default=3, help="draws of the annotated documents")
    parser.add_argument("--documents", type=int, default=ANNOTATED, help="annotated documents")
    options = parser.parse_args()
    train, test = training_and_test(options.choose)
    shares = []
    for seed in range(1 if options.quick else options.draws):
        work = lambda seed=seed: run(train, test, options.documents, seed)  # noqa: E731
        scores, times = cpu_timed(work)
        gain, students = (scores[name] - scores["mean"] for name in ("average", "student"))
        shares.append((gain, students))
        report("distill", draw=seed, gain=gain, students=students, share=students / gain, **times)
    gain, students = np.mean(shares, axis=0).tolist()
    report("distill", draws=len(shares), gain=gain, students=students, share=students / gain)


if __name__ == "__main__":
    main()
