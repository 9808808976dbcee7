"""Which threshold pruning chooses, by figures of dev data that rise and fall a little."""

from __future__ import annotations

import pytest

from spacy_treecrf.models.crf import CRF
from spacy_treecrf.taggers.pruning import THRESHOLDS, best_trial, try_thresholds
from tests.tiny import new, tiny_data


@pytest.fixture(scope="module")
def crf() -> CRF:
    model = new(threads=1, rounds=2).fit(*tiny_data(20)).model_
    assert isinstance(model, CRF)
    return model


@pytest.mark.parametrize(
    ("figures", "tried", "chosen"),
    [
        ([95.0] * 13, 13, THRESHOLDS[-1]),
        ([95.0, 94.99, 94.95, 95.0, 94.98, 94.8, 95.0], 6, THRESHOLDS[2]),  # past small dips
        ([95.0, 95.1, 94.8, 95.2], 3, THRESHOLDS[0]),  # not past a clear loss
        ([95.0, 94.95, 94.92, 94.5], 4, None),
    ],
)
def test_the_largest_threshold_that_costs_nothing_is_chosen(
    crf: CRF, figures: list[float], tried: int, chosen: float | None
) -> None:
    to_come = iter(figures)
    trials = list(try_thresholds(crf, lambda smaller: next(to_come)))
    assert len(trials) == tried
    assert best_trial(trials).threshold == chosen
    weights = [trial.weights for trial in trials]
    assert weights == sorted(weights, reverse=True)
