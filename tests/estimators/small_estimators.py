"""Small estimators for tests of bad input, and what has to hold of an answer."""

from __future__ import annotations

from typing import Any

import pytest

from spacy_treecrf import BoostedCRF
from tests.tiny import tiny_data

SMALL: dict[str, Any] = {"rounds": 3, "linear_rounds": 1, "min_rows": 1, "min_count": 1}
KINDS: list[dict[str, Any]] = [
    {},
    {"order": 0},
    {"family": "joint"},
    {"family": "joint", "order": 2, "step": "gradient"},
]
X, Y = tiny_data(15)
ITEM = {"word": "w1"}


def new(**changes: Any) -> BoostedCRF:
    return BoostedCRF(**{**SMALL, **changes})


def assert_works(model: BoostedCRF, x: list[Any]) -> None:
    """The model answers everything on one sequence, in probabilities."""
    assert set(model.predict_single(x)) <= set(model.classes_)
    for position in model.predict_marginals_single(x):
        assert sum(position.values()) == pytest.approx(1.0, abs=1e-6)
    paths = model.predict_nbest([x], n=2)[0]
    assert paths[0][0] == model.predict_single(x)
    assert all(0.0 <= p <= 1.0 + 1e-6 for _, p in paths)
