"""Calibration by a temperature, against enumeration of all label sequences."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import BoostedCRF
from spacy_treecrf.models.calibrating import best_temperature
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


def test_no_other_temperature_makes_held_out_data_more_probable() -> None:
    model = new().fit(X, Y)
    gold = noisy(DEV_Y)

    def log_likelihood(temperature: float) -> float:
        """The log-likelihood of short sequences, by enumeration under the model as trained."""
        total = 0.0
        for x, y in zip(DEV_X, gold, strict=True):
            if len(x) <= 4:
                log_p = {path: np.log(max(p, 1e-300)) for path, p in paths_of(model, x).items()}
                scores = np.array([*log_p.values()]) / temperature
                total += log_p[tuple(y)] / temperature - np.log(np.sum(np.exp(scores)))
        return total

    short = [y for x, y in zip(DEV_X, gold, strict=True) if len(x) <= 4]
    grid = np.exp(np.linspace(np.log(0.5), np.log(8.0), 200))
    best = grid[np.argmax([log_likelihood(t) for t in grid])]
    assert model.calibrate(SHORT, short).temperature_ == pytest.approx(best, rel=0.02)


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
        best_temperature([])
