"""Single calls say what calls with many sequences say, and settings count at once."""

from __future__ import annotations

import copy
import os
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf import SECOCCRF, BoostedCRF, BoostedMEMM, PerceptronTagger
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.engine.trees.contexts import count_lags
from spacy_treecrf.estimators import SequenceEstimator
from spacy_treecrf.models.predictor import Predictor
from tests.engine.encoding.naive_encoding import naive_encode
from tests.refusals import assert_refused
from tests.tiny import SMALL, tiny_data

SENTENCES, Y = tiny_data(20)
X = [
    [item | {"first": t == 0, "length": len(str(item["word"])) / 2, "bias": 1.0} for t, item in row]
    for row in (list(enumerate(items)) for items in SENTENCES)
]
ESTIMATORS: dict[str, SequenceEstimator] = {
    "order 0": BoostedCRF(**{**SMALL, "order": 0}),
    "separate": BoostedCRF(**{**SMALL, "family": "separate"}),
    "joint": BoostedCRF(**{**SMALL, "family": "joint"}),
    "joint order 2": BoostedCRF(**{**SMALL, "family": "joint", "order": 2}),
    "surrogate": BoostedCRF(**{**SMALL, "missing": "surrogate"}),
    "large trees": BoostedCRF(**{**SMALL, "leaves": 100}),
    "marginal": BoostedCRF(**SMALL, predictor="marginal"),
    "bio": BoostedCRF(**SMALL, constraints="observed", beam=2),
    "memm": BoostedMEMM(rounds=3, min_rows=1, min_count=1),
    "memm beam": BoostedMEMM(rounds=3, min_rows=1, min_count=1, search="beam", beam_width=2),
    "perceptron": PerceptronTagger(rounds=2),
    "voted": PerceptronTagger(rounds=2, method="voted"),
    "secoc": SECOCCRF(bits=3, base=BoostedCRF(**SMALL)),
}
VALUES = st.sampled_from(["w0", "w1", "w2", "new", True, False, None, 1, 2.5, float("nan")])
ITEMS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("word", "first", "length", "bias", "unseen"), VALUES)
)


@pytest.fixture(scope="module", params=list(ESTIMATORS))
def model(request: pytest.FixtureRequest) -> SequenceEstimator:
    return copy.deepcopy(ESTIMATORS[request.param]).fit(X, Y)


@settings(max_examples=25, deadline=None)
@given(sequences=st.lists(st.lists(ITEMS, max_size=5), max_size=4), threads=st.integers(1, 2))
def test_one_by_one_and_all_at_once_give_the_same(
    model: Any, sequences: list[Any], threads: int
) -> None:
    model.set_params(threads=threads)
    assert model.predict(sequences) == [model.predict_single(x) for x in sequences]
    whole = model.predict_marginals(sequences)
    for x, expected in zip(sequences, whole, strict=True):
        found = model.predict_marginals_single(x)
        assert [list(row) for row in found] == [list(row) for row in expected]
        for row, same in zip(found, expected, strict=True):
            np.testing.assert_allclose(list(row.values()), list(same.values()), atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(sequences=st.lists(st.lists(ITEMS, min_size=1, max_size=5), min_size=1, max_size=4))
def test_calls_follow_from_rows_that_are_encoded_one_entry_at_a_time(
    model: Any, sequences: list[Any]
) -> None:
    own = model.model_
    data = Sequences.unlabelled(*naive_encode(own.columns, sequences))
    predictor = Predictor(own, Workers(1), model.predictor)
    labels = [own.labels[i] for i in predictor.labels(data)]
    found = model.predict(sequences)
    assert [label for sequence in found for label in sequence] == labels
    marginals = [list(p.values()) for x in model.predict_marginals(sequences) for p in x]
    np.testing.assert_array_equal(marginals, predictor.marginals(data))


def test_masks_and_few_rows_leave_predictions_as_they_are(model: Any) -> None:
    own = model.model_
    data = Sequences.unlabelled(*own.columns.encode(X[:1]))
    allowed = np.ones((data.n_rows, len(own.labels)), np.uint8)
    predictor = Predictor(own, Workers(1), model.predictor)
    np.testing.assert_array_equal(predictor.apply(data, allowed).labels(), predictor.labels(data))
    allowed[:, 1:] = 0
    if not own.searches and own.settings.constraints == "none":
        assert set(predictor.apply(data, allowed).labels().tolist()) == {0}


def test_parameters_count_from_the_next_call_on() -> None:
    model = BoostedCRF(**SMALL).fit(X, Y)
    best = model.predict(X)
    marginal = BoostedCRF(**SMALL, predictor="marginal").fit(X, Y).predict(X)
    assert model.set_params(predictor="marginal").predict(X) == marginal
    model.predictor = "viterbi"
    assert model.predict(X) == best
    model.leaves = -1
    assert_refused(lambda: model.predict_single(X[0]), "leaves", "-1")
    assert_refused(lambda: model.predict_marginals(X), "leaves", "-1")
    assert model.set_params(leaves=8, threads=2).predict(X) == best


def test_parameters_of_a_base_estimator_are_checked_as_well() -> None:
    model = SECOCCRF(bits=3, base=BoostedCRF(**SMALL)).fit(X, Y)
    model.predict(X[:1])
    model.base.leaves = -1
    assert_refused(lambda: model.predict(X[:1]), "leaves", "-1")


def test_predictions_leave_the_estimator_as_it_was(model: Any) -> None:
    before = dict(vars(model))
    model.predict_single(X[0])
    assert vars(model) == before


def test_copies_and_pickles_of_used_models_predict_the_same(model: Any) -> None:
    expected = model.predict(X), model.predict_marginals(X[:2])
    for same in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert (same.predict(X), same.predict_marginals(X[:2])) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_process_predicts_with_what_was_prepared() -> None:
    model = BoostedCRF(**SMALL, threads=1).fit(X, Y)
    expected = model.predict(X)
    child = os.fork()
    if child == 0:
        os._exit(0 if model.predict(X) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0


@given(st.lists(st.integers(0, 6), max_size=5), st.integers(0, 4))
def test_lags_of_a_sequence_are_those_among_others(lengths: list[int], order: int) -> None:
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    expected = [min(t, order) for length in lengths for t in range(length)]
    assert count_lags(offsets, order).tolist() == expected
