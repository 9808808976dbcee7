"""Learning from a training set with 20 % of its entity spans spoiled: CoNLL-2003.

    TREECRF_CORPORA=DIR python benchmarks/bench_noisy.py

Spans of eng.train get another type, another boundary, or are dropped. Trainings with the same
settings: on the spoiled labels as they are, on what `denoise_sequences` makes of them, and on the
clean ones. "fewer rounds" is plain training that has less time to learn errors by heart.
What counts is the F1 on eng.testa, which is clean. Parameters of `denoise_sequences` were chosen
with --choose, which knows parts of eng.train only.
"""

from __future__ import annotations

import argparse
import random

from spacy_treecrf import BoostedCRF
from spacy_treecrf.audit import denoise_sequences

from corpora import span_f1
from entities import spoiled, training_and_test
from timing import cpu_timed, report

SHARE = 0.2
FEWER_ROUNDS = 20
QUICK_DOCUMENTS = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="300 documents")
    parser.add_argument("--choose", action="store_true", help="the last fifth of eng.train as test")
    parser.add_argument("--seed", type=int, default=0, help="seed of the errors")
    parser.add_argument("--sharpness", type=float, default=2.0)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--members", type=int, default=3)
    options = parser.parse_args()
    train, test = training_and_test(options.choose)
    if options.quick:
        train = train.of(set(range(QUICK_DOCUMENTS)))
    rng = random.Random(options.seed)
    noisy = [spoiled(labels, SHARE, rng) for labels in train.y]
    how = {name: getattr(options, name) for name in ("sharpness", "folds", "members")}
    denoised, times = cpu_timed(lambda: denoise_sequences(train.X, noisy, **how))
    report("noisy", sentences=len(train.X), seed=options.seed, **how, **times)
    scores = {}
    for name, y, settings in (
        ("plain", noisy, {}),
        ("plain, fewer rounds", noisy, {"rounds": FEWER_ROUNDS}),
        ("denoised", denoised, {"soft_labels": "distill"}),
        ("clean", train.y, {}),
    ):
        fit = lambda y=y, settings=settings: BoostedCRF(**settings).fit(train.X, y)  # noqa: E731
        model, times = cpu_timed(fit)
        scores[name] = span_f1(test.y, model.predict(test.X))
        report("noisy", training=name, f1=scores[name], **times)
    gains = {name: scores[name] - scores["plain"] for name in ("denoised", "clean")}
    report("noisy", over_plain=gains)


if __name__ == "__main__":
    main()
