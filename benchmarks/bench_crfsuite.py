"""CoNLL-2000 chunking, 21 plain columns: `BoostedCRF()` beside CRFsuite, in one run."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from corpora import Item, encode, read_conll2000, span_f1
from timing import best_seconds, cpu_timed, peak_megabytes, report, run_python, timed

QUICK_SENTENCES = 1500
QUICK_TEST_SENTENCES = 500
QUICK_ITERATIONS = 50
ITERATIONS = 200
COMPILE_SENTENCES = 100
# Few rounds of full steps. Chosen on the last tenth of the training sentences, with a model of the
# others: F1 is 94.63 there, that of CRFsuite 93.70. The test part has not been looked at.
FAST: dict[str, Any] = {"rounds": 13, "linear_rounds": 7, "shrinkage": 1.0}
# Smaller steps of trees that see a part of the rows and columns; two models, of BILUO and of IOE2
# labels, and spans that are more probable than not by their mean. Chosen on three fifths of the
# training sentences, each labelled by models of the other four: F1 is 94.67 there, that of
# BoostedCRF() with BIO labels 94.05.
SPANS: dict[str, Any] = {"rounds": 80, "shrinkage": 0.3, "subsample": 0.7, "colsample": 0.5}


@dataclass
class Corpus:
    """Training and test sentences."""

    X: list[list[Item]]
    y: list[list[str]]
    X_test: list[list[Item]]
    y_test: list[list[str]]

    @property
    def test_tokens(self) -> int:
        return sum(map(len, self.y_test))


def bench_crfsuite(corpus: Corpus, iterations: int) -> dict[str, Any]:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.select("lbfgs")
    trainer.set_params({"c1": 0.0, "c2": 1.0, "max_iterations": iterations, "feature.minfreq": 2})

    def append() -> None:
        for items, labels in zip(corpus.X, corpus.y, strict=True):
            trainer.append(items, labels)

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "crfsuite.model")
        _, appending = cpu_timed(append)
        _, training = cpu_timed(lambda: trainer.train(path))
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        sentences = [pycrfsuite.ItemSequence(items) for items in corpus.X_test]
        predicted = [tagger.tag(items) for items in sentences]
        tag_seconds = best_seconds(lambda: [tagger.tag(items) for items in sentences])
    return {
        **{name: appending[name] + training[name] for name in training},
        "append_seconds": appending["seconds"],
        "f1": span_f1(corpus.y_test, predicted),
        "tagged_per_second": corpus.test_tokens / tag_seconds,
    }


def bench_ours(corpus: Corpus, target: float) -> dict[str, Any]:
    """Train and time BoostedCRF.

    target: The F1 whose first round is looked for.
    """
    from spacy_treecrf import BoostedCRF
    from spacy_treecrf.engine.encoding.learned_columns import fit_columns
    from spacy_treecrf.engine.threads import Workers
    from spacy_treecrf.models.crf import CRF, new_crf
    from spacy_treecrf.models.predictor import Predictor

    few = slice(COMPILE_SENTENCES)
    tiny = BoostedCRF(rounds=3, linear_rounds=2)
    _, compile_seconds = timed(
        lambda: tiny.fit(corpus.X[few], corpus.y[few]).predict(corpus.X[few])
    )

    fast, of_fast = cpu_timed(lambda: BoostedCRF(**FAST).fit(corpus.X, corpus.y))
    model, of_fit = cpu_timed(lambda: BoostedCRF().fit(corpus.X, corpus.y))
    crf = model.model_
    min_count = model.min_count
    _, encode_seconds = timed(lambda: fit_columns(corpus.X, min_count=min_count))
    test = encode(crf.columns, crf.labels, corpus.X_test, corpus.y_test)

    def f1(crf: CRF) -> float:
        names = [crf.labels[i] for i in Predictor(crf, Workers(1)).labels(test)]
        return span_f1(corpus.y_test, [names[a:b] for a, b in pairwise(test.offsets)])

    def first_round_at_target() -> int | None:
        """The first round with the target F1; training in one go gives the same models."""
        train = encode(crf.columns, crf.labels, corpus.X, corpus.y)
        young = new_crf(crf.settings, crf.labels, crf.columns, train)
        with Workers() as workers:
            for rounds in range(1, model.rounds_ + 1):
                young = young.boosted(train, rounds, workers)
                if f1(young) >= target:
                    return rounds
        return None

    reached: dict[str, Any] | None = None
    if rounds := first_round_at_target():
        short, seconds = timed(lambda: BoostedCRF(rounds=rounds).fit(corpus.X, corpus.y))
        reached = {"rounds": rounds, "seconds": seconds, "f1": f1(short.model_)}

    predictor = Predictor(crf, Workers(1))
    tag_seconds = best_seconds(lambda: predictor.labels(test))
    return {
        "compile_seconds": compile_seconds,
        **of_fit,
        "encode_seconds": encode_seconds,
        "f1": f1(crf),
        "at_crfsuite_f1": reached,
        "fast": {"settings": FAST, **of_fast, "f1": f1(fast.model_)},
        "tagged_per_second": corpus.test_tokens / tag_seconds,
    }


def bench_fast(corpus: Corpus, iterations: int) -> dict[str, Any]:
    """Fast settings before and after a training of CRFsuite; ours is the mean of both."""
    from spacy_treecrf import BoostedCRF

    few = slice(COMPILE_SENTENCES)
    BoostedCRF(rounds=3, linear_rounds=2).fit(corpus.X[few], corpus.y[few]).predict(corpus.X[few])

    def fit() -> tuple[BoostedCRF, dict[str, float]]:
        return cpu_timed(lambda: BoostedCRF(**FAST).fit(corpus.X, corpus.y))

    _, before = fit()
    crfsuite = bench_crfsuite(corpus, iterations)
    model, after = fit()
    ours = {name: (before[name] + after[name]) / 2 for name in after}
    f1 = span_f1(corpus.y_test, model.predict(corpus.X_test))
    return {
        "crfsuite": crfsuite,
        "fast": {"settings": FAST, **ours, "f1": f1},
        "fast_f1_gain": f1 - crfsuite["f1"],
        "fast_times_as_fast": crfsuite["seconds"] / ours["seconds"],
        "fast_times_as_fast_cpu": crfsuite["cpu_seconds"] / ours["cpu_seconds"],
    }


def bench_spans(corpus: Corpus) -> dict[str, Any]:
    """F1 of a model of BILUO labels: its best labels, its probable spans, those of two models."""
    from spacy_treecrf import BoostedCRF
    from spacy_treecrf.labels.schemes import as_biluo, as_ioe2, spelled, to_bio

    def fit() -> list[BoostedCRF]:
        return [
            BoostedCRF(**SPANS).fit(corpus.X, [respell(labels) for labels in corpus.y])
            for respell in (as_biluo, as_ioe2)
        ]

    def f1_of_spans(beside: list[BoostedCRF]) -> float:
        found = biluo.predict_spans(corpus.X_test, beside=beside)
        labels = [
            spelled([span[:3] for span in own], len(gold), "BIO")
            for own, gold in zip(found, corpus.y_test, strict=True)
        ]
        return span_f1(corpus.y_test, labels)

    (biluo, ioe2), of_fit = cpu_timed(fit)
    best = [to_bio(labels) for labels in biluo.predict(corpus.X_test)]
    of_both, seconds = timed(lambda: f1_of_spans([ioe2]))
    return {
        "settings": SPANS,
        **of_fit,
        "f1_of_best_labels": span_f1(corpus.y_test, best),
        "f1_of_spans": f1_of_spans([]),
        "f1_of_spans_of_both": of_both,
        "spans_of_both_seconds": seconds,
    }


def training_memory(limit: int | None) -> dict[str, float]:
    """The peak memory of this process while it trains, and the part that feature dicts hold."""
    from spacy_treecrf import BoostedCRF

    before = peak_megabytes()
    X, y = read_conll2000("train", limit)
    dicts = peak_megabytes() - before
    BoostedCRF().fit(X, y)
    peak = peak_megabytes()
    return {"peak_megabytes": peak, "peak_megabytes_without_dicts": peak - dicts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a part of the data, under a minute")
    parser.add_argument("--memory", action="store_true", help="only train, and print peak memory")
    parser.add_argument("--fast", action="store_true", help="only fast settings and CRFsuite")
    parser.add_argument(
        "--spans", action="store_true", help="only two schemes of labels, the best F1"
    )
    options = parser.parse_args()
    limit = QUICK_SENTENCES if options.quick else None
    if options.memory:
        print(json.dumps(training_memory(limit)))
        return
    iterations = QUICK_ITERATIONS if options.quick else ITERATIONS
    test_limit = QUICK_TEST_SENTENCES if options.quick else None
    if options.fast:
        corpus = Corpus(*read_conll2000("train", limit), *read_conll2000("test", test_limit))
        report("crfsuite_fast", sentences=len(corpus.X), **bench_fast(corpus, iterations))
        return
    if options.spans:
        corpus = Corpus(*read_conll2000("train", limit), *read_conll2000("test", test_limit))
        report("crfsuite_spans", sentences=len(corpus.X), **bench_spans(corpus))
        return
    # This comes first, as a process starts with the peak of the one that made it.
    memory = run_python(__file__, "--memory", *(["--quick"] if options.quick else []))
    with tempfile.TemporaryDirectory() as cache:
        if not options.quick:  # so that the compile time is that of a first use
            os.environ["NUMBA_CACHE_DIR"] = cache
        corpus = Corpus(*read_conll2000("train", limit), *read_conll2000("test", test_limit))
        crfsuite = bench_crfsuite(corpus, iterations)
        ours = bench_ours(corpus, crfsuite["f1"]) | memory
    reached = ours["at_crfsuite_f1"]
    report(
        "crfsuite",
        sentences=len(corpus.X),
        crfsuite=crfsuite,
        ours=ours,
        f1_gain=ours["f1"] - crfsuite["f1"],
        time_ratio=ours["seconds"] / crfsuite["seconds"],
        time_ratio_at_crfsuite_f1=reached and reached["seconds"] / crfsuite["seconds"],
        fast_f1_gain=ours["fast"]["f1"] - crfsuite["f1"],
        fast_time_ratio=ours["fast"]["seconds"] / crfsuite["seconds"],
        cpu_ratio=ours["cpu_seconds"] / crfsuite["cpu_seconds"],
        fast_cpu_ratio=ours["fast"]["cpu_seconds"] / crfsuite["cpu_seconds"],
        tagging_ratio=ours["tagged_per_second"] / crfsuite["tagged_per_second"],
    )


if __name__ == "__main__":
    main()
