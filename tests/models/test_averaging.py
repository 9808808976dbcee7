"""The average of several CRFs against its definition."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import BoostedCRF, PerceptronTagger
from tests.refusals import assert_refused
from tests.tiny import new, tiny_data

X, Y = tiny_data(30)
NEW_X, _ = tiny_data(12, seed=1)
KINDS: dict[str, dict[str, Any]] = {
    "separate": {},
    "order 2": {"family": "joint", "order": 2},
    "constrained": {"constraints": "observed"},
    "conjugate": {"step": "conjugate", "linear_rounds": 0},
    "missing": {"missing": "instance_weighting"},
}


def several(n: int = 3, **settings: Any) -> list[BoostedCRF]:
    return [new(subsample=0.7, seed=seed, threads=1, **settings).fit(X, Y) for seed in range(n)]


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_normalised_geometric_means(kind: str) -> None:
    models = several(**KINDS[kind])
    average = BoostedCRF.average(models)
    short = [x for x in NEW_X if len(x) <= 4]
    assert short
    for x in short:
        found = probabilities(average, x)
        means = {
            path: np.prod([probabilities(m, x)[path] for m in models]) ** (1 / 3) for path in found
        }
        total = sum(means.values())
        assert found == pytest.approx(
            {path: mean / total for path, mean in means.items()}, abs=1e-5
        )
        assert tuple(average.predict([x])[0]) == max(means, key=lambda path: means[path])


def probabilities(model: BoostedCRF, x: list[Any]) -> dict[tuple[str, ...], float]:
    """P(labels) of all label sequences; impossible ones have 0."""
    found = dict.fromkeys(itertools.product(model.classes_, repeat=len(x)), 0.0)
    for path, probability in model.predict_nbest([x], len(found))[0]:
        found[tuple(path)] = probability
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_average_is_a_model_like_any_other(kind: str, tmp_path: Path) -> None:
    average = BoostedCRF.average(several(**KINDS[kind]))
    average.save(tmp_path / "model")
    loaded = BoostedCRF.load(tmp_path / "model")
    assert loaded.predict_marginals(NEW_X) == average.predict_marginals(NEW_X)
    loaded.set_params(warm_start=True, rounds=average.rounds_ + 2).fit(X, Y)
    assert loaded.rounds_ == average.rounds_ + 2


def test_one_model_is_its_own_average() -> None:
    (model,) = several(1)
    assert BoostedCRF.average([model]).predict_marginals(NEW_X) == model.predict_marginals(NEW_X)


def test_models_may_have_stopped_at_different_rounds() -> None:
    short, long = new(rounds=2).fit(X, Y), new(rounds=5).fit(X, Y)
    assert BoostedCRF.average([short, long]).rounds_ == 5


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (new(family="joint").fit(X, Y), "family is 'separate' and 'joint'"),
        (new(min_count=30).fit(X, Y), "columns differ"),
        (new().fit(X, [["A" for _ in y] for y in Y]), "labels differ"),
        (new().fit(X[:5], Y[:5]), "columns differ"),
    ],
)
def test_models_of_other_data_are_refused(other: BoostedCRF, message: str) -> None:
    with pytest.raises(ValueError, match=f"models 1 and 2 cannot be averaged: .*{message}"):
        BoostedCRF.average([new().fit(X, Y), other])


def test_nothing_and_unfitted_models_are_refused() -> None:
    with pytest.raises(ValueError, match="no model to average"):
        BoostedCRF.average([])
    with pytest.raises(ValueError, match="not fitted yet"):
        BoostedCRF.average([new()])


@pytest.mark.parametrize("other", [3, None, "crf", BoostedCRF, PerceptronTagger()], ids=repr)
def test_what_is_no_boosted_crf_is_refused_by_its_place(other: Any) -> None:
    crf = new().fit(X, Y)
    if isinstance(other, PerceptronTagger):
        other.fit(X, Y)
    name = type(other).__name__
    with pytest.raises(ValueError, match=rf"^treecrf: model 2 is a {name}; only fitted BoostedCRF"):
        BoostedCRF.average([crf, other])


@pytest.mark.parametrize("models", [None, 3, new(), BoostedCRF], ids=["None", "3", "one", "class"])
def test_what_is_no_list_of_models_is_refused(models: Any) -> None:
    with pytest.raises(ValueError, match=r"^treecrf: models is a .*; use a list of fitted"):
        BoostedCRF.average(models)


def test_any_iterable_of_models_is_averaged() -> None:
    crf = new().fit(X, Y)
    assert BoostedCRF.average(each for each in [crf]).predict(X) == crf.predict(X)


def test_calibrated_models_have_the_mean_calibration_and_curves_are_refused() -> None:
    first, second = several(2)
    first.model_ = first.model_.cooled(1.5)
    average = BoostedCRF.average([first, second])
    assert average.temperature_ == pytest.approx(1.5**0.5)
    first.calibrate(X, Y, curve=True)
    assert_refused(
        lambda: BoostedCRF.average([first, second]), "by a curve", "average models first"
    )
