"""A small fitted estimator of every kind that can be explained."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from spacy_treecrf import (
    SECOCCRF,
    BoostedCRF,
    BoostedMEMM,
    FutureFeatureMEMM,
    PerceptronTagger,
)
from spacy_treecrf.engine.chain.temperature_curve import TemperatureCurve
from spacy_treecrf.estimators import SequenceEstimator
from spacy_treecrf.models.averaging import pooled
from spacy_treecrf.models.crf import CRF as LearnedCRF
from tests.tiny import tiny_data

X, Y = tiny_data(30)
TREES: dict[str, Any] = {"rounds": 6, "leaves": 6, "min_rows": 1, "min_count": 1, "threads": 1}
CRF: dict[str, Any] = TREES | {"linear_rounds": 2}
MISSING = ("absent", "instance_weighting", "surrogate", "imputation", "indicator")

CRFS: dict[str, dict[str, Any]] = {
    "crf separate": {"family": "separate"},
    "crf order 0": {"order": 0},
    "crf joint": {"family": "joint"},
    "crf joint order 2": {"family": "joint", "order": 2},
    "crf joint order 3": {"family": "joint", "order": 3, "rounds": 3},
    "crf trees alone": {"family": "joint", "linear_rounds": 0},
    "crf linear alone": {"family": "separate", "linear_rounds": 6},
    "crf gradient": {"step": "gradient", "family": "separate"},
    "crf conjugate": {"step": "conjugate", "family": "separate"},
    "crf conjugate joint": {"step": "conjugate", "family": "joint"},
    "crf trimmed": {"trim": 0.2, "subsample": 0.7, "family": "joint"},
    "crf beam": {"beam": 2, "family": "separate"},
    **{f"crf {m}": {"missing": m, "family": "separate"} for m in MISSING},
    **{f"crf joint {m}": {"missing": m, "family": "joint"} for m in MISSING[1:3]},
}
MEMMS: dict[str, dict[str, Any]] = {
    "memm": {},
    "memm order 0": {"order": 0},
    "memm order 2": {"order": 2},
    "memm right to left": {"right_to_left": True, "order": 2},
    "memm linear": {"linear_rounds": 3},
}
FUTURES: dict[str, dict[str, Any]] = {
    "ff-memm": {},
    "ff-memm right to left": {"right_to_left": True},
}
# Labels of these are found by a beam search.
SEARCHING = ("memm searching", "ff-memm searching")
# Scores of these are no sums over features.
NO_SUMS = ("perceptron voted", "secoc bits", "secoc cascade")
SUMS = (
    *CRFS,
    "crf average",
    "crf curved",
    "crf joint curved",
    "crf integers",
    "perceptron",
    "perceptron order 0",
    *MEMMS,
    *FUTURES,
    "secoc joint",
)
EXACT = (*SUMS, *NO_SUMS)
ALL = (*EXACT, *SEARCHING)


@lru_cache
def fitted(kind: str) -> SequenceEstimator:
    """An estimator of this kind, fitted to small data; not to be changed."""
    if kind == "crf average":
        one, other = (BoostedCRF(**CRF, seed=seed, subsample=0.6).fit(X, Y) for seed in (0, 1))
        one.model_ = pooled([one.model_, other.model_])  # type: ignore[list-item]
        return one
    if kind in ("crf curved", "crf joint curved"):
        curved = BoostedCRF(**CRF, family="joint" if "joint" in kind else "separate").fit(X, Y)
        assert isinstance(curved.model_, LearnedCRF)
        curved.model_ = curved.model_.cooled(3.0).curved(TemperatureCurve(-0.2, 0.9, -0.3))
        return curved
    if kind == "crf integers":
        numbers = [["ABC".index(label) + 10 for label in labels] for labels in Y]
        return BoostedCRF(**CRF, family="joint").fit(X, numbers)
    return _new(kind).fit(X, Y)


def _new(kind: str) -> SequenceEstimator:
    if kind in CRFS:
        return BoostedCRF(**CRF | CRFS[kind])
    if kind in MEMMS:
        return BoostedMEMM(**TREES | MEMMS[kind])
    if kind in FUTURES:
        return FutureFeatureMEMM(**TREES | {"rounds": 8, "bag": 3} | FUTURES[kind])
    base = BoostedCRF(rounds=3, leaves=4, min_rows=1, min_count=1, linear_rounds=1)
    others: dict[str, Any] = {
        "memm searching": lambda: BoostedMEMM(**TREES, order=2, search="beam", beam_width=3),
        "ff-memm searching": lambda: FutureFeatureMEMM(**TREES, search="beam", beam_width=3),
        "perceptron": lambda: PerceptronTagger(rounds=3, threads=1, min_count=1),
        "perceptron order 0": lambda: PerceptronTagger(rounds=3, threads=1, order=0),
        "perceptron voted": lambda: PerceptronTagger(rounds=2, threads=1, method="voted"),
        "secoc joint": lambda: SECOCCRF(base=base, training="joint", bits=3, threads=1),
        "secoc bits": lambda: SECOCCRF(base=base, training="columns", bits=3, threads=1),
        "secoc cascade": lambda: SECOCCRF(
            base=base, training="columns", bits=3, history=2, folds=2, threads=1
        ),
    }
    estimator: SequenceEstimator = others[kind]()
    return estimator
