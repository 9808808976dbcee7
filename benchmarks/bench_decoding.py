"""Does the time that MEMMs take to decode grow with the length of a sequence, and no faster?

One sequence of bits whose labels depend on later positions is decoded, and another twice as long.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import pairwise

from scripts.reproduce.future_bits import LAYER, FutureBits, bit_features
from spacy_treecrf import BoostedMEMM, FutureFeatureMEMM
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.estimators import SequenceEstimator
from spacy_treecrf.models.predictor import Predictor

from timing import best_seconds, report

SHORTEST = 4_000
DOUBLINGS = 3
MODELS: dict[str, SequenceEstimator] = {
    "sliding window": BoostedMEMM(order=0),
    "MEMM-2, exact": BoostedMEMM(order=2, search="exact"),
    "MEMM-4, beam": BoostedMEMM(order=4, search="beam"),
    "FF-MEMM-0": FutureFeatureMEMM(order=0, bag=6),
    "FF-MEMM-0, bag to the end": FutureFeatureMEMM(order=0, bag=None),
    "FF-MEMM-2, exact": FutureFeatureMEMM(order=2, bag=6, search="exact"),
    "FF-MEMM-2, greedy": FutureFeatureMEMM(order=2, bag=6, search="greedy"),
    "FF-MEMM-4, beam": FutureFeatureMEMM(order=4, bag=6, search="beam"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="double the length only once")
    quick = parser.parse_args().quick
    sequences = FutureBits("or").sample(100)
    X, y = [bit_features(sequence) for sequence in sequences], [r.labels[LAYER] for r in sequences]
    lengths = [SHORTEST * 2**i for i in range(2 if quick else DOUBLINGS + 1)]
    (whole,) = FutureBits("or", length=lengths[-1]).sample(1, stream="test")
    features = bit_features(whole)
    for name, model in MODELS.items():
        model.set_params(threads=1).fit(X, y, X, y)
        # Encoding of dicts would hide the time of decoding.
        encoded = [
            Sequences.unlabelled(*model.model_.columns.encode([features[:length]]))
            for length in lengths
        ]
        with Workers(1) as workers:
            predictor = Predictor(model.model_, workers)
            seconds = [best_seconds(partial(predictor.labels, data)) for data in encoded]
        report(
            "decoding",
            model=name,
            lengths=lengths,
            seconds=seconds,
            factors=[b / a for a, b in pairwise(seconds)],
        )


if __name__ == "__main__":
    main()
