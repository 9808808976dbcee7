"""Going on is as if training had never stopped: the models are equal, bit for bit.

A stop is a Ctrl-C after some rounds, which every kind of training can meet. Training then goes on
in memory, or from a file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import (
    SECOCCRF,
    BoostedCRF,
    BoostedMEMM,
    FutureFeatureMEMM,
    PerceptronTagger,
    estimators,
)
from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.estimators.base import SequenceEstimator
from spacy_treecrf.models.model import TrainingInterrupted
from spacy_treecrf.models.secoc.recipe import SECOC
from spacy_treecrf.storage import container
from tests.tiny import tiny_data

LABELS = ("A", "B", "C", "D", "E")
X, Y = tiny_data(40, LABELS)
SMALL: dict[str, Any] = {"rounds": 10, "min_rows": 1, "min_count": 1}
BASE: dict[str, Any] = {**SMALL, "linear_rounds": 2, "rounds": 3}


def crf(**changes: Any) -> Callable[[], SequenceEstimator]:
    return lambda: BoostedCRF(**{**SMALL, "linear_rounds": 2, **changes})


def bits(**changes: Any) -> Callable[[], SequenceEstimator]:
    return lambda: SECOCCRF(**{"base": BoostedCRF(**BASE), "bits": 13, **changes})


def joint(**changes: Any) -> Callable[[], SequenceEstimator]:
    return lambda: SECOCCRF(base=BoostedCRF(**SMALL), bits=8, **changes)


def future(**changes: Any) -> Callable[[], SequenceEstimator]:
    small = {"min_rows": 1, "min_count": 1, "leaves": 3, "bag": 2, "patience": 1}
    return lambda: FutureFeatureMEMM(**{**small, "detector_rounds": 3, "rounds": 10, **changes})


KINDS: dict[str, Callable[[], SequenceEstimator]] = {
    "crf": crf(),
    "crf, separate": crf(family="separate"),
    "crf, order 2": crf(family="joint", order=2),
    "crf, order 0": crf(order=0),
    "crf, linear rounds": crf(linear_rounds=8),
    "crf, gradient": crf(step="gradient", linear_rounds=0),
    "crf, conjugate": crf(step="conjugate", linear_rounds=0),
    "crf, conjugate, separate": crf(step="conjugate", family="separate"),
    "crf, mixing": crf(gamma="mixing"),
    "crf, unbiased": crf(unbiased=True),
    "crf, drawn": crf(subsample=0.5, colsample=0.5, node_colsample=0.5, seed=5),
    "crf, pseudo": crf(pseudo_rounds=6, line_search=True),
    "secoc, joint": joint(),
    "secoc, joint, drawn": lambda: SECOCCRF(
        base=BoostedCRF(**SMALL, subsample=0.5, colsample=0.5), bits=8, seed=3
    ),
    "secoc, columns": bits(training="columns"),
    "secoc, columns, l1": bits(training="columns", decoding="l1"),
    "secoc, cascade": bits(history=2),
    "secoc, published cascade": bits(history="all", cascade="training", decoding="likelihood"),
    "secoc, perceptron": bits(base=PerceptronTagger(rounds=3), history=1),
    "perceptron": lambda: PerceptronTagger(rounds=10, min_count=1),
    "perceptron, voted": lambda: PerceptronTagger(rounds=10, min_count=1, method="voted", voters=2),
    "memm": lambda: BoostedMEMM(**SMALL, dev_share=0.0),
    "future": future(),
    "future, order 2": future(order=2, dev_share=0.0, step="newton"),
    "future, right to left": future(order=1, right_to_left=True, bag=None),
    "future, drawn": future(subsample=0.5, colsample=0.5, seed=5, max_alpha=1e5, max_eta=1e5),
}


def test_every_estimator_is_tried() -> None:
    assert {type(make()).__name__ for make in KINDS.values()} == set(estimators.MODULES) - {
        "Lattice"
    }


def stopped(
    model: SequenceEstimator, rounds: int, X: Any = X, Y: Any = Y, *held_out: Any
) -> SequenceEstimator:
    """The model after a Ctrl-C when this many rounds were done, or all that there are."""

    def stop(info: RoundInfo) -> None:
        if info.round >= rounds:
            raise KeyboardInterrupt

    model.set_params(callback=stop)
    with contextlib.suppress(TrainingInterrupted):
        model.fit(X, Y, *held_out)
    return model.set_params(callback=None, warm_start=True)


def of_rounds(make: Callable[[], SequenceEstimator], rounds: int) -> SequenceEstimator:
    """An estimator of fewer rounds; those of joint training are its base's."""
    model = make()
    if isinstance(model, SECOCCRF):
        return model.set_params(base=BoostedCRF(**{**SMALL, "rounds": rounds}))
    return model.set_params(rounds=rounds)


def state(model: SequenceEstimator) -> bytes:
    return container.dump(model.model_.to_state())


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "from a file"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_training_that_goes_on_makes_the_model_of_one_go(
    kind: str, stored: bool, tmp_path: Path
) -> None:
    whole = KINDS[kind]().fit(X, Y)
    for stops in ([5], [1, 9]):
        model = KINDS[kind]()
        for rounds in stops:
            model = stopped(model, rounds)
            if stored:
                model.save(tmp_path / "model")
                model = type(model).load(tmp_path / "model").set_params(warm_start=True)
        model.fit(X, Y)
        assert model.rounds_ == whole.rounds_
        assert model.predict_marginals(X) == whole.predict_marginals(X)
        assert state(model) == state(whole)


# Rounds of bits are those of the code, which cannot change.
IN_ROUNDS = [kind for kind in KINDS if "secoc" not in kind or kind == "secoc, joint"]


@pytest.mark.parametrize("held_out", [False, True], ids=["", "held out"])
@pytest.mark.parametrize("kind", IN_ROUNDS)
def test_twice_as_many_rounds_are_the_model_of_one_go(
    kind: str, held_out: bool, tmp_path: Path
) -> None:
    """What was held out may have another round as its best: there, training goes on."""
    dev = tiny_data(10, LABELS, seed=1) if held_out else ()
    whole = KINDS[kind]().fit(X, Y, *dev)
    of_rounds(KINDS[kind], 5).fit(X, Y, *dev).save(tmp_path / "model")
    model = type(whole).load(tmp_path / "model")
    model.set_params(**whole.get_params()).set_params(warm_start=True).fit(X, Y, *dev)
    assert model.rounds_ == whole.rounds_
    assert model.predict_marginals(X) == whole.predict_marginals(X)
    assert state(model) == state(whole)


@pytest.mark.parametrize("kind", ["crf", "secoc, cascade", "secoc, joint", "perceptron", "memm"])
@pytest.mark.parametrize("rounds", [2, 6, 9])
def test_ctrl_c_keeps_the_best_round_of_held_out_data(kind: str, rounds: int) -> None:
    """As `fit` of so many rounds does; rounds after it are learned again."""
    dev = tiny_data(10, LABELS, seed=1)
    whole = KINDS[kind]().fit(X, Y, *dev)
    model = stopped(KINDS[kind](), rounds, X, Y, *dev)
    assert state(model.fit(X, Y, *dev)) == state(whole)


def test_a_training_that_lacks_bits_goes_on_with_other_data() -> None:
    model = stopped(KINDS["secoc, cascade"](), 5)
    other_x, other_y = tiny_data(30, LABELS, seed=2)
    model.fit(other_x, other_y)
    assert model.rounds_ == 13
    assert "cross_fitted" not in model.model_.to_state()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("factor", np.full(5, 1.5), r"'course\.factor': expected values from 0\.0 to 1\.0"),
        ("factor", np.full(4, 1.0), r"'course\.factor': expected an array of shape \(5,\)"),
        ("edge_speed", np.zeros((2, 2)), r"'course\.edge_speed': expected an array of shape"),
        ("edges", np.ones((6, 5), np.float32), r"'course\.edges': expected what the model's edges"),
        (
            "has_momentum",
            np.zeros(5, np.uint8),
            r"'course\.has_momentum': expected an array of bool",
        ),
    ],
)
def test_a_course_of_other_steps_is_refused(field: str, value: Any, message: str) -> None:
    found = stopped(KINDS["secoc, joint"](), 5).model_.to_state()
    found["course"][field] = value
    with pytest.raises(ValueError, match=message):
        SECOC.from_state(found)


def test_a_course_of_more_rounds_than_trees_is_refused() -> None:
    found = stopped(KINDS["secoc, joint"](), 5).model_.to_state()
    found["course"]["has_momentum"] = np.zeros(4000, np.bool_)
    found["course"]["factor"] = np.zeros(4000)
    found["rounds"] = 4005
    with pytest.raises(ValueError, match="a step for each round that has a tree for each bit"):
        SECOC.from_state(found)


def test_cross_fitted_bits_that_are_no_probabilities_are_refused() -> None:
    found = stopped(KINDS["secoc, cascade"](), 5).model_.to_state()
    found["cross_fitted"]["probabilities"][0, 0] = 1.5
    with pytest.raises(ValueError, match=r"'cross_fitted\.probabilities': expected values from 0"):
        SECOC.from_state(found)
