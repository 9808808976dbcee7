"""Bad and extreme parameters: refused by name, or a model that works."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import BoostedCRF
from tests.estimators.small_estimators import KINDS, X, Y, assert_works, new
from tests.refusals import assert_refused


@pytest.fixture(scope="module")
def model() -> BoostedCRF:
    return new().fit(X, Y)


def test_unknown_parameters_are_refused() -> None:
    with pytest.raises(TypeError, match="leafs"):
        BoostedCRF(leafs=3)  # type: ignore[call-arg]
    model = new()
    assert_refused(lambda: model.set_params(leafs=3), "'leafs'", "leaves")
    assert_refused(lambda: model.set_params(leaves__deep=3), "'leaves__deep'")
    assert_refused(lambda: model.set_params(model_=3), "'model_'")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("family", "tree"),
        ("family", None),
        ("family", ["joint"]),
        ("family", np.array(["joint", "separate"])),
        ("step", "half"),
        ("gamma", 1.0),
        ("constraints", "iob"),
        ("predictor", "best"),
        ("monitor", "loss"),
        ("order", 5),
        ("order", -1),
        ("rounds", -1),
        ("rounds", 2.5),
        ("rounds", "3"),
        ("rounds", math.inf),
        ("leaves", 0),
        ("leaves", True),
        ("leaves", 2**16),
        ("leaves", np.array([3])),
        ("depth", -1),
        ("min_rows", 0),
        ("min_count", 0),
        ("max_bins", 1),
        ("max_bins", 256),
        ("penalty", -1.0),
        ("penalty", math.nan),
        ("penalty", math.inf),
        ("penalty", "1"),
        ("penalty", 1j),
        ("penalty", np.zeros(3)),
        ("ridge", 0.0),
        ("shrinkage", 0.0),
        ("max_step", -1.0),
        ("trim", 1.0),
        ("subsample", 0.0),
        ("subsample", 1.5),
        ("colsample", 2),
        ("node_colsample", -0.5),
        ("line_search", "yes"),
        ("line_search", None),
        ("line_search", np.zeros(3)),
        ("unbiased", "yes"),
        ("unbiased_rate", -0.1),
        ("unbiased_exponent", 0.0),
        ("missing", "often"),
        ("missing", None),
        ("patience", -1),
        ("threads", -1),
        ("seed", -1),
        ("seed", None),
        ("seed", 2**63),
        ("callback", 3),
    ],
)
def test_bad_value_of_a_parameter_is_refused_by_name(name: str, value: Any) -> None:
    assert_refused(lambda: new(**{name: value}).fit(X, Y), name, repr(value))


def test_parameters_are_checked_before_data_are_read() -> None:
    assert_refused(lambda: new(leaves=-1).fit([], []), "'leaves'")


def test_parameter_changed_for_the_worse_is_refused_at_prediction() -> None:
    model = new().fit(X, Y).set_params(predictor="best")
    assert_refused(lambda: model.predict(X), "'predictor'")


@pytest.mark.parametrize("n", [0, -1, 2.5, None, "3"])
def test_bad_number_of_best_sequences_is_refused(model: BoostedCRF, n: Any) -> None:
    assert_refused(lambda: model.predict_nbest(X, n=n), "nbest got n=", repr(n))


def test_model_that_is_not_fitted_says_so(tmp_path: Path) -> None:
    model = new()
    for use in (
        lambda: model.predict(X),
        lambda: model.predict_single(X[0]),
        lambda: model.predict_marginals(X),
        lambda: model.predict_marginals_single(X[0]),
        lambda: model.predict_nbest(X),
        lambda: model.score(X, Y),
        lambda: model.classes_,
        lambda: model.rounds_,
        lambda: model.save(tmp_path / "model"),
    ):
        assert_refused(use, "not fitted", "call fit or load")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    "settings",
    [
        {"ridge": 1e-300, "penalty": 0.0},
        {"ridge": 1e300, "penalty": 1e300},
        {"shrinkage": 1e3, "max_step": 1e3, "penalty": 0.0, "line_search": True},
        {"shrinkage": 1e3, "step": "gradient", "penalty": 0.0},
        {"shrinkage": 1e-6, "max_step": 1e-6},
        {"subsample": 1e-9, "colsample": 1e-9, "node_colsample": 1e-9},
        {"rounds": 0},
        {"trim": 0.99, "leaves": 1},
    ],
    ids=str,
)
def test_extreme_settings_give_a_model_that_can_be_saved(
    kind: dict[str, Any], settings: dict[str, Any], tmp_path: Path
) -> None:
    model = new(**{"rounds": 6, **kind, **settings}).fit(X, Y)
    assert_works(model, X[0])
    model.save(tmp_path / "model")
    loaded = BoostedCRF.load(tmp_path / "model")
    assert loaded.predict_marginals(X) == model.predict_marginals(X)
