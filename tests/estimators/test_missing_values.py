"""Missing values through the estimator: each method, from fit to a loaded model."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from spacy_treecrf import BoostedCRF
from tests.refusals import assert_refused

METHODS = ("absent", "instance_weighting", "surrogate", "imputation", "indicator")
IN_TREES = METHODS[1:3]


def one_by_one(rows: list[tuple[Any, ...]], names: str) -> tuple[list[Any], list[list[str]]]:
    """Sequences of one position: values of the named columns, then the label."""
    X = [[dict(zip(names, row[:-1], strict=True))] for row in rows]
    return X, [[row[-1]] for row in rows]


def stump(method: str, **settings: Any) -> BoostedCRF:
    """One round of one split at most, for positions on their own, as in TreeCRF."""
    options = {"order": 0, "step": "gradient", "rounds": 1, "linear_rounds": 0, "leaves": 2}
    options |= {"min_rows": 1, "min_count": 1, "penalty": 1.0, "shrinkage": 1.0, "threads": 1}
    return BoostedCRF(**{**options, "missing": method, **settings})


# Twelve rows with a = x are P, six with a = y are Q, and of three without a value two are P.
ROWS = [*[("x", "P")] * 12, *[("y", "Q")] * 6, (None, "P"), (None, "P"), (None, "Q")]


def leaves_of(model: BoostedCRF) -> dict[str, tuple[float, float]]:
    """By label, the values of the left and of the right leaf."""
    forest = model.model_.potentials.forest
    return {
        label: (float(forest.value[3 * k + 1]), float(forest.value[3 * k + 2]))
        for k, label in enumerate(model.classes_)
    }


def by_hand(right: tuple[float, float], left: tuple[float, float]) -> tuple[float, float]:
    """Leaf values from (rows that are P, rows) on either side: the mean of I - 1/2, shrunk by 1."""
    return tuple((p - n / 2) / (n + 1) for p, n in (left, right))


@pytest.mark.parametrize(
    ("method", "feature", "right", "left", "missing_goes"),
    [
        # rows without a value are not y
        ("absent", "a=y", (0, 6), (14, 15), "left"),
        # two thirds of each row without a value go with x
        ("instance_weighting", "a=x", (12 + 4 / 3, 14), (2 / 3, 7), "both"),
        # no other column: with the majority
        ("surrogate", "a=x", (14, 15), (0, 6), "right"),
        # as x, the most common
        ("imputation", "a=x", (14, 15), (0, 6), "right"),
        # a value of its own, which is not y
        ("indicator", "a=y", (0, 6), (14, 15), "left"),
    ],
)
def test_a_stump_worked_by_hand(method, feature, right, left, missing_goes) -> None:
    X, y = one_by_one(ROWS, "a")
    model = stump(method).fit(X, y)
    forest, columns = model.model_.potentials.forest, model.model_.columns
    assert columns.feature_names[forest.feature[0]] == feature
    values = by_hand(right, left)
    assert leaves_of(model)["P"] == pytest.approx(values, abs=1e-4)
    assert leaves_of(model)["Q"] == pytest.approx([-value for value in values], abs=1e-4)
    ways = {"left": values[0], "right": values[1], "both": values[0] / 3 + 2 * values[1] / 3}
    (row,) = model.predict_marginals_single([{"a": None}])
    score = ways[missing_goes]
    assert row["P"] == pytest.approx(1 / (1 + 2.718281828459045 ** (-2 * score)), abs=1e-4)


def test_a_numeric_column_worked_by_hand() -> None:
    rows = [*[(1.0, "P")] * 6, *[(2.0, "Q")] * 3, (None, "Q"), (float("nan"), "Q")]
    X, y = one_by_one(rows, "n")
    weighted = stump("instance_weighting").fit(X, y)
    # bin 2 holds for three of nine: a third of each row without a number
    values = by_hand((0, 3 + 2 / 3), (6, 6 + 4 / 3))
    assert leaves_of(weighted)["P"] == pytest.approx(values, abs=1e-4)
    imputed = stump("imputation").fit(X, y)  # by 1, the median
    assert leaves_of(imputed)["P"] == pytest.approx(by_hand((0, 3), (6, 8)), abs=1e-4)
    indicated = stump("indicator", leaves=3).fit(X, y)  # below all numbers
    assert indicated.predict([[{"n": None}], [{"n": 1.0}], [{"n": 2.0}], [{}]]) == [
        ["Q"],
        ["P"],
        ["Q"],
        ["Q"],
    ]


def test_surrogates_decide_where_a_column_tells_the_same() -> None:
    rows = [*[("x", "u", "P")] * 8, *[("y", "v", "Q")] * 8, (None, "u", "P"), (None, "v", "Q")]
    X, y = one_by_one(rows, "ab")
    model = stump("surrogate").fit(X, y)
    assert model.predict([[{"a": None, "b": "u"}], [{"a": None, "b": "v"}]]) == [["P"], ["Q"]]
    assert model.predict([[{"a": "x", "b": None}], [{"a": "y", "b": None}]]) == [["P"], ["Q"]]


def data_of(seed: int, rate: float, n: int = 60) -> tuple[list[Any], list[list[str]]]:
    rng = random.Random(seed)
    X, y = [], []
    for _ in range(n):
        items, labels = [], []
        for _ in range(rng.randint(2, 6)):
            item = {"a": rng.choice("uvw"), "b": rng.random(), "c": rng.random() < 0.5}
            labels.append("PQR"[("uvw".index(item["a"]) + item["c"] + (item["b"] > 0.5)) % 3])
            items.append({k: None if rng.random() < rate else v for k, v in item.items()})
        X.append(items)
        y.append(labels)
    return X, y


@pytest.mark.parametrize("method", METHODS)
def test_models_learn_and_survive_a_file(method: str, tmp_path: Path) -> None:
    X, y = data_of(1, 0.2)
    model = BoostedCRF(missing=method, rounds=12, linear_rounds=2, threads=1).fit(X, y)
    assert model.score(X, y) > 0.6
    model.save(tmp_path / "model")
    loaded = BoostedCRF.load(tmp_path / "model")
    assert loaded.missing == method
    gone = [[{}, dict.fromkeys("abc"), {"a": None}, {"a": "new", "b": float("nan")}]]
    for some in (X, gone):
        assert loaded.predict_marginals(some) == model.predict_marginals(some)


@pytest.mark.parametrize("method", METHODS)
def test_warm_start_goes_on_as_if_it_had_never_stopped(method: str, tmp_path: Path) -> None:
    X, y = data_of(2, 0.3, 30)
    options: dict[str, Any] = {"missing": method, "linear_rounds": 1, "threads": 1}
    at_once = BoostedCRF(rounds=8, **options).fit(X, y)
    BoostedCRF(rounds=4, **options).fit(X, y).save(tmp_path / "half")
    half = BoostedCRF.load(tmp_path / "half").set_params(rounds=8, warm_start=True).fit(X, y)
    half.save(tmp_path / "a")
    at_once.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("method", METHODS)
def test_nothing_missing_in_training_and_everything_in_prediction(method: str) -> None:
    X, y = data_of(3, 0.0)
    model = BoostedCRF(missing=method, rounds=8, linear_rounds=1, threads=1).fit(X, y)
    plain = BoostedCRF(rounds=8, linear_rounds=1, threads=1).fit(X, y)
    assert model.predict_marginals(X) == plain.predict_marginals(X)
    (found,) = model.predict_marginals([[dict.fromkeys("abc")] * 3])
    assert all(sum(row.values()) == pytest.approx(1.0) for row in found)


@pytest.mark.parametrize("method", IN_TREES)
def test_column_missing_in_every_row_is_never_asked_for(method: str) -> None:
    X, y = data_of(4, 0.0)
    X = [[{**item, "b": None} for item in items] for items in X]
    X[0][0] = {**X[0][0], "b": 0.5, "d": "x"}
    model = BoostedCRF(missing=method, rounds=6, linear_rounds=0, threads=1).fit(X, y)
    forest = model.model_.potentials.forest
    assert not (forest.kind == 2).any()


def test_methods_cannot_change_in_a_warm_start() -> None:
    X, y = data_of(5, 0.1, 10)
    model = BoostedCRF(missing="surrogate", rounds=2, threads=1).fit(X, y)
    model.set_params(missing="imputation", warm_start=True, rounds=4)
    assert_refused(lambda: model.fit(X, y), "missing='surrogate'", "warm_start")


def test_unknown_methods_are_refused_by_name() -> None:
    X, y = data_of(6, 0.1, 5)
    assert_refused(lambda: BoostedCRF(missing="zero").fit(X, y), "'missing'", "'zero'", "surrogate")
