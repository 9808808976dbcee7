"""The model around the engine: constraints, prediction and its stored form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.crf import CRF, new_crf
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.storage import container
from tests.engine.training_data import random_training

ONE = Workers(1)
FAMILIES = [("separate", 0), ("separate", 1), ("joint", 1), ("joint", 2)]
SMALL = {"leaves": 4, "min_rows": 2, "linear_rounds": 2}


def new_model(training, **settings) -> CRF:
    return new_crf(Settings(**SMALL | settings), training.labels, training.columns, training.data)


@pytest.mark.parametrize(("family", "order"), FAMILIES)
def test_a_model_that_has_learned_nothing_finds_all_labels_equally_likely(family, order):
    training = random_training(1)
    predictor = Predictor(new_model(training, family=family, order=order), ONE)
    np.testing.assert_allclose(predictor.marginals(training.data), 1.0 / 3.0, rtol=1e-6)
    assert predictor.model.potentials.rounds == 0


@pytest.mark.parametrize(("family", "order"), FAMILIES)
@pytest.mark.parametrize("constraints", ["none", "observed"])
def test_a_stored_model_predicts_the_same(family, order, constraints):
    training = random_training(2)
    crf = new_model(training, family=family, order=order, constraints=constraints)
    crf = crf.boosted(training.data, 4, ONE)
    loaded = CRF.from_state(container.parse(container.dump(crf.to_state())))
    assert loaded.settings == crf.settings
    assert loaded.labels == crf.labels
    for stored, learned in zip(loaded.masks, crf.masks, strict=True):
        np.testing.assert_array_equal(stored, learned)
    before, after = Predictor(crf, ONE), Predictor(loaded, ONE)
    for call in ("scores", "labels", "marginals"):
        expected = getattr(before, call)(training.data)
        np.testing.assert_array_equal(getattr(after, call)(training.data), expected)
    assert container.dump(loaded.to_state()) == container.dump(crf.to_state())


def test_observed_constraints_allow_just_what_occurs():
    training = random_training(3, n_labels=3)
    data = training.data
    data.labels[:] = np.arange(data.n_rows) % 3  # 0 1 2 0 1 2 ..., over the sequences' borders
    crf = new_model(training, constraints="observed")
    start, trans, end = (np.isfinite(mask) for mask in crf.masks)
    inside = np.setdiff1d(np.arange(1, data.n_rows), data.offsets)
    seen = set(zip(data.labels[inside - 1].tolist(), data.labels[inside].tolist(), strict=True))
    assert {(u, v) for u, v in np.ndindex(3, 3) if trans[u, v]} == seen == {(0, 1), (1, 2), (2, 0)}
    assert set(np.flatnonzero(start)) == set(data.labels[data.offsets[:-1]])
    assert set(np.flatnonzero(end)) == set(data.labels[data.offsets[1:] - 1])
    predicted = Predictor(crf.boosted(data, 3, ONE), ONE).labels(data)
    assert trans[predicted[inside - 1], predicted[inside]].all()


@pytest.mark.parametrize("constraints", ["bio", "biluo"])
def test_schemes_need_labels_that_follow_them(constraints):
    training = random_training(4)
    with pytest.raises(ValueError, match=f"treecrf: label 'L0' does not follow .*{constraints}"):
        new_model(training, constraints=constraints)
    named = replace(training, labels=["O", "B-X", "I-X"])
    with pytest.raises(ValueError, match=r"treecrf: .* order 1"):
        new_model(named, constraints=constraints, order=0)


def test_only_weights_that_are_not_zero_are_stored():
    training = random_training(5)
    crf = new_model(training).boosted(training.data, 1, ONE)
    linear = crf.to_state()["linear"]
    weights = crf.potentials.linear.categorical
    assert len(linear["where"]) == np.count_nonzero(weights) > 0
    np.testing.assert_array_equal(linear["value"], weights[weights != 0])
    assert len(crf.to_state()["previous_linear"]["where"]) == 0
