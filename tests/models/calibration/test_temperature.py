"""Calibration by a temperature, against enumeration of all label sequences."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import BoostedCRF
from spacy_treecrf.models.calibration.temperature import honest_temperature
from spacy_treecrf.storage import container
from tests.tiny import LABELS, new, tiny_data

X, Y = tiny_data(30)
DEV_X, DEV_Y = tiny_data(20, seed=1)
SHORT = [x for x in DEV_X if len(x) <= 4]
KINDS: dict[str, dict[str, Any]] = {
    "separate": {},
    "joint": {"family": "joint", "linear_rounds": 0},
    "order 2": {"family": "joint", "order": 2},
    "constrained": {"constraints": "observed"},
    "conjugate": {"step": "conjugate", "linear_rounds": 0},
    "missing": {"missing": "instance_weighting"},
}


def noisy(y: list[list[str]]) -> list[list[str]]:
    """Labels of which every third is another one, so that no model may be sure of them."""
    numbers = itertools.count()
    return [
        [LABELS[(LABELS.index(k) + (next(numbers) % 3 == 0)) % len(LABELS)] for k in own]
        for own in y
    ]


def paths_of(model: BoostedCRF, x: list[Any]) -> dict[tuple[str, ...], float]:
    """P(labels) of all label sequences; impossible ones have 0."""
    found = dict.fromkeys(itertools.product(model.classes_, repeat=len(x)), 0.0)
    for path, probability in model.predict_nbest([x], len(found))[0]:
        found[tuple(path)] = probability
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_calibrated_probabilities_are_powers_normalised(kind: str) -> None:
    model = new(**KINDS[kind]).fit(X, Y)
    before = [paths_of(model, x) for x in SHORT]
    labels = model.predict(DEV_X)
    model.calibrate(DEV_X, noisy(DEV_Y))
    assert model.temperature_ > 1.1
    for x, old in zip(SHORT, before, strict=True):
        powers = {path: p ** (1 / model.temperature_) for path, p in old.items()}
        total = sum(powers.values())
        expected = {path: p / total for path, p in powers.items()}
        assert paths_of(model, x) == pytest.approx(expected, abs=2e-3)
        for t, row in enumerate(model.predict_marginals([x])[0]):
            by_label = {k: sum(p for y, p in expected.items() if y[t] == k) for k in row}
            assert row == pytest.approx(by_label, abs=2e-3)
    assert model.predict(DEV_X) == labels


@pytest.mark.parametrize("predictor", ["viterbi", "marginal"])
def test_labels_are_then_right_as_often_as_enumeration_says(predictor: str) -> None:
    model = new(predictor=predictor).fit(X, Y)
    gold = [y for x, y in zip(DEV_X, noisy(DEV_Y), strict=True) if len(x) <= 4]
    paths = [paths_of(model, x) for x in SHORT]

    def sure_and_right(temperature: float) -> tuple[float, float]:
        """Sums over short sequences, by powers of the probabilities of the model as trained."""
        sure, right = 0.0, 0.0
        for old, y in zip(paths, gold, strict=True):
            powers = {path: p ** (1 / temperature) for path, p in old.items()}
            total, best = sum(powers.values()), max(old, key=lambda path: old[path])
            for t, true in enumerate(y):
                by_label = {
                    k: sum(p for path, p in powers.items() if path[t] == k) / total for k in LABELS
                }
                label = best[t] if predictor == "viterbi" else max(LABELS, key=by_label.__getitem__)
                sure += by_label[label]
                right += label == true
        return sure, right

    n = sum(map(len, gold))
    found = model.calibrate(SHORT, gold).temperature_
    for temperature, too_sure in ((found / 1.02, True), (found * 1.02, False)):
        sure, right = sure_and_right(temperature)
        assert (sure / n > (right + 1) / (n + 2)) == too_sure


def test_few_data_without_a_mistake_do_not_make_a_model_certain() -> None:
    model = new().fit(X, Y)
    labels = model.predict(SHORT)
    model.calibrate(SHORT, labels)
    rows = [row for own in model.predict_marginals(SHORT) for row in own]
    mean = np.mean([row[k] for row, k in zip(rows, itertools.chain(*labels), strict=True)])
    assert mean < (len(rows) + 1) / (len(rows) + 2) + 2e-3


def test_calibrated_model_needs_no_second_calibration() -> None:
    model = new().fit(X, Y).calibrate(DEV_X, noisy(DEV_Y))
    first = model.temperature_
    model.calibrate(DEV_X, noisy(DEV_Y))
    assert model.temperature_ == pytest.approx(first, rel=5e-3)


def test_the_file_keeps_the_temperature_and_older_ones_have_none(tmp_path: Path) -> None:
    model = new().fit(X, Y)
    model.save(tmp_path / "before")
    assert "temperature" not in container.read(tmp_path / "before")
    assert BoostedCRF.load(tmp_path / "before").temperature_ == 1.0
    model.calibrate(DEV_X, noisy(DEV_Y))
    for compact in (False, True):
        model.save(tmp_path / "after", compact=compact)
        loaded = BoostedCRF.load(tmp_path / "after")
        assert loaded.temperature_ == model.temperature_ != 1.0
        assert loaded.predict_marginals(DEV_X) == model.predict_marginals(DEV_X)


def test_training_goes_on_and_is_not_calibrated_then() -> None:
    model = new(warm_start=True).fit(X, Y).calibrate(DEV_X, noisy(DEV_Y))
    model.set_params(rounds=6).fit(X, Y)
    assert model.rounds_ == 6
    assert model.temperature_ == 1.0


def test_short_inputs_and_long_ones_agree() -> None:
    model = new().fit(X, Y).calibrate(DEV_X, noisy(DEV_Y))
    together = model.predict_marginals(DEV_X * 20)
    for x, rows in zip(DEV_X, together, strict=False):
        (alone,) = model.predict_marginals([x])
        for one, other in zip(alone, rows, strict=True):
            assert one == pytest.approx(other, abs=1e-6)


def test_labels_that_training_never_saw_do_not_count() -> None:
    gold = noisy(DEV_Y)
    some = [[None if t % 2 else k for t, k in enumerate(own)] for own in gold]
    unseen = [["new" if t % 2 else k for t, k in enumerate(own)] for own in gold]
    models = [new().fit(X, Y).calibrate(DEV_X, y) for y in (some, unseen)]
    assert models[0].temperature_ == models[1].temperature_


def test_data_without_annotation_are_refused() -> None:
    model = new().fit(X, Y)
    with pytest.raises(ValueError, match="holds no label that the training data have"):
        model.calibrate(DEV_X, [[None] * len(own) for own in DEV_Y])
    with pytest.raises(ValueError, match="no annotated position"):
        honest_temperature([])
