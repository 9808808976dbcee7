"""Bounded line searches."""

from __future__ import annotations

import math

import pytest

from spacy_treecrf.engine.future.line_search import maximise


@pytest.mark.parametrize("peak", [0.01, 0.7, 3.0, 900.0, 4e4])
def test_a_peak_of_any_magnitude_is_found(peak) -> None:
    step, value = maximise(lambda x: -((math.log(x) - math.log(peak)) ** 2), 1e5, -1e9, 12)
    assert math.log(step / peak) == pytest.approx(0.0, abs=0.1)
    assert value == pytest.approx(-(math.log(step / peak) ** 2))


def test_the_range_is_not_left() -> None:
    tried = []

    def rising(x: float) -> float:
        tried.append(x)
        return x

    assert maximise(rising, 40.0, 0.0, 8) == (40.0, 40.0)
    assert min(tried) > 0.0
    assert max(tried) == 40.0


def test_step_zero_is_kept_where_nothing_is_better() -> None:
    assert maximise(lambda x: -x, 40.0, 0.0, 8) == (0.0, 0.0)
    assert maximise(lambda x: 0.0, 40.0, 0.0, 8) == (0.0, 0.0)
    assert maximise(lambda x: math.nan, 40.0, -1.0, 8) == (0.0, -1.0)
