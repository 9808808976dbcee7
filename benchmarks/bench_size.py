"""Sizes of model files on CoNLL-2000: ours whole, compact and pruned, beside CRFsuite's with c1.

Both sides learn from the same sentences; the last tenth of the training part is held out, and
chooses the weights that pruning drops.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from spacy_treecrf import BoostedCRF
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.storage import container
from spacy_treecrf.taggers.pruning import best_trial, try_thresholds

from corpora import Item, Labelled, encode, read_conll2000, span_f1
from timing import report

C1, C2 = 1.0, 1e-3
ITERATIONS, QUICK_ITERATIONS = 100, 30
QUICK_SENTENCES = 1000
HELD_OUT = 0.1


def crfsuite_file(train: Labelled, X_test: list[list[Item]], iterations: int) -> dict[str, Any]:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.select("lbfgs")
    trainer.set_params({"c1": C1, "c2": C2, "max_iterations": iterations})
    for items, labels in zip(*train, strict=True):
        trainer.append(items, labels)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        trainer.train(str(path))
        tagger = pycrfsuite.Tagger()
        tagger.open(str(path))
        return {"bytes": path.stat().st_size, "predicted": [tagger.tag(x) for x in X_test]}


def f1_of(crf: CRF, data: Labelled) -> float:
    rows = encode(crf.columns, crf.labels, *data)
    names = [crf.labels[i] for i in Predictor(crf, Workers(1)).labels(rows)]
    return span_f1(data[1], [names[a:b] for a, b in pairwise(rows.offsets)])


def size_of(crf: CRF) -> int:
    return len(container.dump(crf.to_state(), small=crf.compact))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a part of the data, under a minute")
    options = parser.parse_args()
    X, y = read_conll2000("train", QUICK_SENTENCES if options.quick else None)
    test = read_conll2000("test", QUICK_SENTENCES if options.quick else None)
    n = round(len(X) * (1.0 - HELD_OUT))
    train, dev = (X[:n], y[:n]), (X[n:], y[n:])
    iterations = QUICK_ITERATIONS if options.quick else ITERATIONS
    theirs = crfsuite_file(train, test[0], iterations)
    whole = BoostedCRF().fit(*train).model_
    assert isinstance(whole, CRF)
    best = best_trial(list(try_thresholds(whole, lambda crf: f1_of(crf, dev))))
    ours = {"whole": whole, "compact": whole.compacted(), "pruned": best.crf.compacted()}
    report(
        "size",
        sentences=n,
        crfsuite={"bytes": theirs["bytes"], "f1": span_f1(test[1], theirs["predicted"])},
        threshold=best.threshold,
        **{
            name: {"bytes": size_of(crf), "f1": f1_of(crf, test)}
            | {"ratio": size_of(crf) / theirs["bytes"]}
            for name, crf in ours.items()
        },
    )


if __name__ == "__main__":
    main()
