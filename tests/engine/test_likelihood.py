"""Boosting climbs: no round lowers the likelihood of the training data."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from spacy_treecrf.engine.columns import fit_columns
from spacy_treecrf.engine.sequences import Sequences
from tests.engine.small_models import (
    FAMILIES,
    assert_never_falls,
    climb,
    empty_model,
    families,
    fitted,
    log_likelihood_of,
)
from tests.engine.training_data import Training, random_training


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


def corpus(*parts: str) -> Path:
    shared = Path(__file__).parents[3] / "shared" / "corpora"
    path = Path(os.environ.get("TREECRF_CORPORA", shared)).joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is not there; set TREECRF_CORPORA to the folder of corpora")
    return path


def window_training(sequences, radius) -> Training:
    """sequences: lists of (dict of features, label); each position sees its neighbours."""
    X, y = [], []
    for pairs in sequences:
        items = [item for item, _ in pairs]
        X.append(
            [
                {
                    f"{name}{d}": value
                    for d in range(-radius, radius + 1)
                    if 0 <= t + d < len(items)
                    for name, value in items[t + d].items()
                }
                for t in range(len(items))
            ]
        )
        y.extend(label for _, label in pairs)
    labels = sorted(set(y))
    columns, offsets, codes, numeric = fit_columns(X, min_count=2)
    ids = np.array([labels.index(label) for label in y], np.int32)
    return Training(
        columns, Sequences(offsets, codes, numeric, ids, np.ones(len(y), np.float32)), labels
    )


@pytest.mark.parametrize(("family", "gamma"), [("separate", "local"), ("joint", "mixing")])
def test_likelihood_never_falls_on_nettalk(family, gamma):
    lines = corpus("nettalk", "nettalk.data").read_text("latin-1").splitlines()[10:]
    words = [line.split("\t") for line in lines[::100]]
    training = window_training(
        [
            [({"letter": letter}, mark) for letter, mark in zip(w[0], w[2], strict=True)]
            for w in words
        ],
        3,
    )
    values = climb(training, 8, family=family, gamma=gamma, linear_rounds=3, leaves=15)
    assert_never_falls(values)
    assert values[-1] > values[0] / 2


@pytest.mark.parametrize("constraints", ["none", "bio"])
def test_likelihood_never_falls_on_conll2000(constraints):
    with corpus("conll2000", "train.txt").open(encoding="utf-8") as file:
        lines = list(itertools.islice(file, 3000))
    sentences = [
        [line.split() for line in group]
        for blank, group in itertools.groupby(lines, lambda line: not line.strip())
        if not blank
    ]
    training = window_training(
        [[({"word": word, "tag": tag}, chunk) for word, tag, chunk in s] for s in sentences[:-1]],
        1,
    )
    values = climb(training, 8, constraints=constraints, linear_rounds=4, leaves=15)
    assert_never_falls(values)
    assert values[-1] > values[0] / 4


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
