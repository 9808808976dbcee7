"""Integer labels, and learned weights by name."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import SECOCCRF, BoostedCRF, BoostedMEMM, PerceptronTagger
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.storage import container
from tests.estimators.small_estimators import ITEM, X, Y, new
from tests.refusals import assert_refused

NAMES = sorted({label for labels in Y for label in labels})
OF_NAME = {name: [7, -2, 10][i % 3] + 100 * (i // 3) for i, name in enumerate(NAMES)}
Y_INTEGERS = [[OF_NAME[label] for label in labels] for labels in Y]
ESTIMATORS: list[Any] = [
    new(),
    new(family="joint"),
    PerceptronTagger(rounds=3),
    BoostedMEMM(rounds=3),
    SECOCCRF(bits=3, base=new(order=0)),
]


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_integer_labels_come_back_as_integers(model: Any, tmp_path: Path) -> None:
    model.fit(X, Y_INTEGERS)
    assert model.classes_ == sorted(OF_NAME.values())
    assert all(type(label) is int for label in model.classes_)
    predicted = model.predict(X)
    assert {type(label) for labels in predicted for label in labels} == {int}
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model")
    for same in (loaded, pickle.loads(pickle.dumps(model))):
        assert same.classes_ == model.classes_
        assert same.predict(X) == predicted
        assert same.predict_marginals(X[:2]) == model.predict_marginals(X[:2])
        assert same.predict_nbest(X[:1], 2) == model.predict_nbest(X[:1], 2)
    assert 0.0 < model.score(X, Y_INTEGERS) <= 1.0


def test_integers_are_learned_as_their_order_of_labels_is() -> None:
    """The same labels in the same order, as texts and as integers, are the same model."""
    order = {label: i for i, label in enumerate(NAMES)}
    numbers = new().fit(X, [[order[label] for label in labels] for labels in Y])
    texts = new().fit(X, Y)
    assert [[NAMES[i] for i in labels] for labels in numbers.predict(X)] == texts.predict(X)


def test_arrays_of_integers_with_gaps_serve_as_labels() -> None:
    y = [np.array(labels) for labels in Y_INTEGERS]
    assert new().fit(X, y).predict(X) == new().fit(X, Y_INTEGERS).predict(X)
    partial = [[None, *labels[1:]] for labels in Y_INTEGERS]
    assert new().fit(X, partial).classes_ == new().fit(X, Y_INTEGERS).classes_


@pytest.mark.parametrize("label", [3, np.int64(3), True, 2.5])
def test_labels_of_two_types_are_refused(label: Any) -> None:
    assert_refused(
        lambda: new().fit([[ITEM, ITEM]], [["A", label]]), "y[0][1]", repr(label), "all of one type"
    )
    assert_refused(lambda: new().fit([[ITEM, ITEM]], [[1, "A"]]), "y[0][1]", "'A'", "of one type")


def test_a_second_fit_with_texts_forgets_the_integers() -> None:
    model = new().fit(X, Y_INTEGERS).fit(X, Y)
    assert model.classes_ == NAMES


def test_warm_start_goes_on_with_integers() -> None:
    model = new(rounds=2).fit(X, Y_INTEGERS).set_params(warm_start=True, rounds=3)
    assert model.fit(X, Y_INTEGERS).predict(X) == new(rounds=3).fit(X, Y_INTEGERS).predict(X)
    assert_refused(lambda: model.set_params(rounds=4).fit(X, Y), "a label that the model does not")


def test_an_average_keeps_the_integers() -> None:
    models = [new(seed=seed, subsample=0.5).fit(X, Y_INTEGERS) for seed in range(2)]
    assert BoostedCRF.average(models).classes_ == models[0].classes_


def test_a_file_whose_texts_are_no_integers_is_refused(tmp_path: Path) -> None:
    state = new().fit(X, Y).model_.to_state()
    container.save(tmp_path / "model", state | {"integer_labels": True})
    assert_refused(lambda: BoostedCRF.load(tmp_path / "model"), "labels", "integers")


@pytest.mark.parametrize("model", [new(linear_rounds=3), PerceptronTagger(rounds=3)])
def test_weights_by_name_give_the_scores_of_a_linear_model(model: Any) -> None:
    """Without trees the best labels follow from the two dicts, as in sklearn-crfsuite."""
    flat = [[{"word": item["word"]} for item in items] for items in X]
    model.fit(flat, Y)
    states, moves = model.state_features_, model.transition_features_
    assert all(weight for weight in (*states.values(), *moves.values()))
    assert {label for _, label in states} <= set(model.classes_)
    if isinstance(model, PerceptronTagger):
        edges = model.model_.learned.average.edges
    else:
        edges = model.model_.potentials.edges
    labels = model.classes_
    assert moves == {
        (u, v): edges[i, j]
        for i, u in enumerate(labels)
        for j, v in enumerate(labels)
        if edges[i, j]
    }
    for items in flat[:5]:
        data = Sequences.unlabelled(*model.model_.columns.encode([items]))
        scores = model.model_.scores(data, Workers(1))[:, 0]
        for item, row in zip(items, scores, strict=True):
            expected = [states.get((f"word={item['word']}", label), 0.0) for label in labels]
            np.testing.assert_allclose(row, expected, atol=1e-6)


def test_numeric_columns_are_attributes_by_their_name() -> None:
    numbers = [[item | {"n": float(i)} for i, item in enumerate(items)] for items in X]
    model = new(linear_rounds=3).fit(numbers, Y)
    assert any(attribute == "n" for attribute, _ in model.state_features_)


def test_estimators_without_linear_weights_have_no_such_dicts() -> None:
    assert not hasattr(BoostedMEMM(rounds=2).fit(X, Y), "transition_features_")
