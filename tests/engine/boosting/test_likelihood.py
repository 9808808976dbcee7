"""Boosting climbs: no round lowers the likelihood of the training data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.engine.small_models import (
    FAMILIES,
    assert_never_falls,
    climb,
    empty_model,
    families,
    fitted,
    log_likelihood_of,
)
from tests.engine.training_data import random_training


@families
@pytest.mark.parametrize("gamma", ["local", "mixing"])
@pytest.mark.parametrize("linear_rounds", [0, 2])
@pytest.mark.parametrize("shrinkage", [1.0, 0.3])
def test_likelihood_never_falls(family, order, gamma, linear_rounds, shrinkage):
    training = random_training(order, unknown=0.1, weighted=True)
    values = climb(
        training,
        6,
        family=family,
        order=order,
        gamma=gamma,
        linear_rounds=linear_rounds,
        shrinkage=shrinkage,
    )
    assert len(values) == 7
    assert_never_falls(values)
    assert values[-1] > values[0] + 0.05


@hypothesis_settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    family_and_order=st.sampled_from([*FAMILIES, ("joint", 3)]),
    gamma=st.sampled_from(["local", "mixing"]),
    linear_rounds=st.integers(0, 3),
    max_step=st.sampled_from([0.5, 50.0]),
    penalty=st.sampled_from([0.0, 1.0]),
    ridge=st.sampled_from([1e-3, 10.0]),
    noise=st.sampled_from([0.0, 1.0]),
    constraints=st.sampled_from(["none", "observed"]),
    subsample=st.sampled_from([0.5, 1.0]),
    line_search=st.booleans(),
)
def test_likelihood_never_falls_under_bold_settings(seed, family_and_order, noise, **settings):
    family, order = family_and_order
    training = random_training(seed, 15, noise=noise, unknown=0.2)
    assert_never_falls(climb(training, 5, family=family, order=order, min_rows=1, **settings))


@families
@pytest.mark.parametrize("step", ["newton", "gradient"])
@pytest.mark.parametrize("linear_rounds", [0, 1])
def test_line_search_is_never_worse_than_the_step_itself(family, order, step, linear_rounds):
    training = random_training(8)
    options = {"family": family, "order": order, "step": step, "linear_rounds": linear_rounds}
    plain, searched = (climb(training, 1, line_search=on, **options) for on in (False, True))
    assert plain[0] == searched[0]
    assert searched[1] >= plain[1]
    # small trees leave much to gain by a longer step
    if step == "gradient" and not linear_rounds:
        assert searched[1] > plain[1]
    assert_never_falls(climb(training, 5, line_search=True, **options))


@families
def test_pseudo_likelihood_rounds_raise_the_likelihood_too(family, order):
    training = random_training(18, 40)
    options = {"family": family, "order": order, "linear_rounds": 0}
    start = log_likelihood_of(empty_model(training, **options), training.data)
    warm = log_likelihood_of(fitted(training, 3, pseudo_rounds=3, **options), training.data)
    end = log_likelihood_of(fitted(training, 6, pseudo_rounds=3, **options), training.data)
    assert start < warm < end
