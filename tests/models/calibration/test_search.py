"""Calibration by a temperature and a lower label O, against enumeration of all label sequences."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf import BoostedCRF
from spacy_treecrf.models.calibration.search import (
    FINEST,
    Place,
    likely_correction,
    lowest_place,
)
from spacy_treecrf.models.correction import Correction
from spacy_treecrf.storage import container
from tests.models.calibration.test_temperature import paths_of
from tests.models.unsure_spans import fitted, inputs
from tests.refusals import assert_refused

X = inputs(30)
KINDS: dict[str, dict[str, Any]] = {
    "separate": {"family": "separate"},
    "joint": {"family": "joint"},
    "order 2": {"family": "joint", "order": 2},
    "constrained": {"constraints": "bio"},
    "conjugate": {"step": "conjugate"},
}

Paths = dict[tuple[str, ...], float]


def corrected_paths(paths: Paths, correction: Correction) -> Paths:
    """P(labels)^(1 / temperature) exp(-outside times the number of O), normalised."""
    weights = {
        path: p ** (1 / correction.temperature) * math.exp(-correction.outside * path.count("O"))
        for path, p in paths.items()
    }
    total = sum(weights.values())
    return {path: weight / total for path, weight in weights.items()}


def drawn_labels(model: BoostedCRF, X: list[Any], seed: int = 0) -> list[list[str]]:
    """Labels as often as the model says, so that it is honest about them."""
    draw = random.Random(seed)
    found = []
    for x in X:
        paths = paths_of(model, x)
        found.append(list(draw.choices([*paths], [*paths.values()])[0]))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_corrected_probabilities_are_those_of_weighted_label_sequences(kind: str) -> None:
    model = fitted("BIO", **KINDS[kind])
    correction = Correction(1.7, 0.8)
    expected = [corrected_paths(paths_of(model, x), correction) for x in X[:8]]
    model.model_ = model.model_.corrected(correction)
    assert (model.temperature_, model.outside_) == pytest.approx(correction[:2])
    for x, own in zip(X, expected, strict=False):
        assert paths_of(model, x) == pytest.approx(own, abs=2e-3)


def test_held_out_labels_are_most_probable_by_enumeration() -> None:
    model = fitted("BIO")
    gold = drawn_labels(model, X)
    model.model_ = model.model_.corrected(Correction(0.5, -1.0))
    paths = [paths_of(model, x) for x in X]

    def surprise(correction: Correction) -> float:
        total = (math.log(correction.temperature) ** 2 + correction.outside**2) / 2
        for own, labels in zip(paths, gold, strict=True):
            now = corrected_paths(own, correction)
            for t, label in enumerate(labels):
                total -= math.log(sum(p for path, p in now.items() if path[t] == label))
        return total

    before = Correction(model.temperature_, model.outside_)
    model.calibrate(X, gold, outside=True)
    found = Correction(
        model.temperature_ / before.temperature,
        model.outside_ - before.outside * before.temperature / model.temperature_,
    )
    lowest = surprise(found)
    for factor in (math.exp(-2 * FINEST), 1.0, math.exp(2 * FINEST)):
        for more in (-2 * FINEST, 0.0, 2 * FINEST):
            other = Correction(found.temperature * factor, found.outside + more)
            assert surprise(other) > lowest - 1e-3


def test_a_model_that_has_too_many_labels_outside_gets_fewer() -> None:
    model = fitted("BIO")
    many = X * 10
    gold = drawn_labels(model, many)
    honest = model.predict_marginals(X)
    model.model_ = model.model_.corrected(Correction(0.7, -3.0))
    n_spans = sum(map(len, model.predict_spans(X)))
    model.calibrate(many, gold, outside=True)
    assert model.temperature_ == pytest.approx(1.0, abs=0.2)
    assert model.outside_ == pytest.approx(0.0, abs=0.2)
    assert sum(map(len, model.predict_spans(X))) > n_spans
    for rows, own in zip(model.predict_marginals(X), honest, strict=True):
        for row, wanted in zip(rows, own, strict=True):
            assert row == pytest.approx(wanted, abs=0.08)


@given(
    wanted=st.tuples(st.integers(-150, 150), st.integers(-150, 150)),
    flat=st.floats(1.0, 8.0),
    angle=st.floats(0.0, math.pi),
)
def test_the_search_finds_the_bottom_of_a_bowl(wanted: Place, flat: float, angle: float) -> None:
    """Bowls that are longer than wide, in any direction."""

    def height(place: Place) -> float:
        x, y = place[0] - wanted[0], place[1] - wanted[1]
        along = x * math.cos(angle) + y * math.sin(angle)
        across = y * math.cos(angle) - x * math.sin(angle)
        return (along / flat) ** 2 + across**2

    found = lowest_place(height)
    assert max(abs(found[0] - wanted[0]), abs(found[1] - wanted[1])) <= flat
    assert height(found) <= 1.0


def test_the_search_ends_where_nothing_ends_it() -> None:
    assert lowest_place(lambda place: -sum(place)) == (320, 320)
    assert lowest_place(lambda place: 0.0) == (0, 0)


def test_few_data_change_little() -> None:
    model = fitted("BIO")
    labels = model.predict(X[:1])
    model.calibrate(X[:1], labels, outside=True)
    assert 0.3 < model.temperature_ <= 1.0
    assert abs(model.outside_) < 1.0


def test_the_file_keeps_it_and_training_that_goes_on_forgets_it(tmp_path: Path) -> None:
    model = fitted("BIO")
    model.save(tmp_path / "before")
    assert "outside" not in container.read(tmp_path / "before")
    gold = drawn_labels(model, X)
    model.model_ = model.model_.corrected(Correction(1.5, 0.7))
    for compact in (False, True):
        model.save(tmp_path / "after", compact=compact)
        loaded = BoostedCRF.load(tmp_path / "after")
        assert (loaded.temperature_, loaded.outside_) == (model.temperature_, model.outside_)
        assert loaded.predict_marginals(X) == model.predict_marginals(X)
    model.set_params(warm_start=True, rounds=model.rounds_ + 1).fit(X, gold)
    assert (model.temperature_, model.outside_) == (1.0, 0.0)


def test_data_without_annotation_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^treecrf: there is no annotated position"):
        likely_correction([])


def test_a_curve_and_a_lower_label_are_not_found_together() -> None:
    model = fitted("BIO")
    gold = drawn_labels(model, X)
    assert_refused(
        lambda: model.calibrate(X, gold, outside=True, curve=True), "outside and curve", "use one"
    )
    assert model.temperature_ == 1.0


def test_each_calibration_takes_the_place_of_the_one_before() -> None:
    """A curve is dropped, and what it was learned for is not counted twice."""
    model, twin = fitted("BIO"), fitted("BIO")
    gold = drawn_labels(model, X, seed=1)
    assert model.calibrate(X, gold, curve=True).curve_ is not None
    assert_refused(lambda: model.cross_calibrate(X, gold), "calibrated already")
    assert model.calibrate(X, gold, outside=True).curve_ is None
    twin.calibrate(X, gold).calibrate(X, gold, outside=True)
    assert (model.temperature_, model.outside_) == (twin.temperature_, twin.outside_)
    assert model.predict_marginals(X) == twin.predict_marginals(X)
