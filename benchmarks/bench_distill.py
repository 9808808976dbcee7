"""One model from an average of five: CoNLL-2000 chunks.

    TREECRF_CORPORA=DIR python benchmarks/bench_distill.py

Five models that differ by their seeds learn from the first sentences of the training file. Their
average labels these and further sentences, whose own labels nobody looks at, and one model of as
many trees as each of the five learns from what it says, edges included. "alone" is a model of the
student's settings on the annotated sentences. The gain of the average is over the mean of the five;
what counts is the share of it that the student has, on the second half of the test file. The first
half was looked at while the benchmark was written.
"""

from __future__ import annotations

import argparse
import json
import time

from spacy_treecrf import BoostedCRF

from corpora import read_conll2000, span_f1

ROUNDS = 40
SETTINGS = {"rounds": ROUNDS, "subsample": 0.5, "colsample": 0.5}
KNOWN, UNLABELLED = 1500, 6000  # sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a third of the sentences")
    share = 3 if parser.parse_args().quick else 1
    n_known, n_unlabelled = KNOWN // share, UNLABELLED // share
    X, y = read_conll2000("train", n_known + n_unlabelled)
    X_test, y_test = read_conll2000("test")
    half = len(X_test) // 2

    def score(name: str, model: BoostedCRF, began: float) -> float:
        predicted = model.predict(X_test)
        found = span_f1(y_test[half:], predicted[half:])
        values = {
            "model": name,
            "f1": round(found, 2),
            "first_half_f1": round(span_f1(y_test[:half], predicted[:half]), 2),
            "trees": model.model_.potentials.n_trees,
            "cpu_seconds": round(time.process_time() - began, 1),
        }
        print(json.dumps(values), flush=True)
        return found

    began = time.process_time()
    alone = BoostedCRF(rounds=ROUNDS).fit(X[:n_known], y[:n_known])
    score("alone", alone, began)
    models, scores = [], []
    for seed in range(5):
        began = time.process_time()
        models.append(BoostedCRF(seed=seed, **SETTINGS).fit(X[:n_known], y[:n_known]))
        scores.append(score(f"seed {seed}", models[-1], began))
    mean = sum(scores) / len(scores)
    teacher = BoostedCRF.average(models)
    gain = score("average", teacher, time.process_time()) - mean
    began = time.process_time()
    student = BoostedCRF(soft_labels="distill", rounds=ROUNDS).fit(X, teacher.predict_lattices(X))
    students = score("student", student, began) - mean
    found = {"gain": round(gain, 2), "students": round(students, 2)}
    print(json.dumps({**found, "share": round(students / gain, 2)}))


if __name__ == "__main__":
    main()
