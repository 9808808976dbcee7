"""Calibration by cross-fitting: who judges whom, and what comes of it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf import BoostedCRF
from spacy_treecrf.estimators.calibrating import cross_fitted, folds_of, span_values
from tests.refusals import assert_refused
from tests.tiny import new, tiny_data

Data = tuple[list[list[dict[str, Any]]], list[list[str]]]


def names(n: int, seed: int = 0) -> Data:
    """Sequences of rare words; more names are capitalised than other words."""
    draw = random.Random(seed)
    X, y = [], []
    for _ in range(n):
        words, labels = [], []
        for _ in range(draw.randint(2, 6)):
            is_name = draw.random() < 0.3
            upper = is_name if draw.random() < 0.7 else not is_name
            word = f"n{draw.randrange(200)}" if is_name else f"w{draw.randrange(200)}"
            words.append({"word": word, "upper": upper})
            labels.append("B-X" if is_name else "O")
        X.append(words)
        y.append(labels)
    return X, y


X, Y = names(60)


def test_folds_whose_models_lack_o_tell_nothing() -> None:
    X = [[{"w": "a"}]] * 8 + [[{"w": "b"}], [{"w": "a"}]]
    y = [["B-A"]] * 8 + [["O"], ["B-A"]]
    model = new(rounds=4).fit(X, y).cross_calibrate(X, y)
    assert model.temperature_ != 1.0


@given(n=st.integers(2, 40), folds=st.integers(2, 8), seed=st.integers(0, 5))
def test_each_sequence_is_judged_once_and_never_by_what_has_seen_it(
    n: int, folds: int, seed: int
) -> None:
    X, y = names(n, seed)
    if folds > n:
        assert_refused(lambda: folds_of(X, y, folds, None), "folds is", f"2 to {n}")
        return
    found = folds_of(X, y, folds, None)
    assert sorted(i for _, held in found for i in held) == list(range(n))
    for known, held in found:
        assert sorted([*known, *held]) == list(range(n))
        assert abs(len(held) - n / folds) < 1


def test_names_of_a_judged_fold_are_new_to_its_judge() -> None:
    found = folds_of(X, Y, 4, "word")
    assert sorted(i for _, held in found for i in held) == list(range(len(X)))
    n_left_out = 0
    for known, held in found:
        seen, judged = (
            {x["word"] for i in some for x, k in zip(X[i], Y[i], strict=True) if k != "O"}
            for some in (known, held)
        )
        assert not seen & judged
        n_left_out += len(X) - len(known) - len(held)
    assert n_left_out


def test_folds_beside_which_nothing_is_annotated_are_refused() -> None:
    X = [[{"word": "a"}] for _ in range(6)]
    y = [["O"], *[[None]] * 5]
    assert_refused(lambda: folds_of(X, y, 3, None), "labels for the sequences 0 to 1 alone")


def test_words_that_are_mostly_outside_of_names_do_not_count() -> None:
    X = [[{"word": "the"}, {"word": "Who"}], [{"word": "the"}], [{"word": "the"}, {"word": None}]]
    y = [["B-X", "I-X"], ["O"], ["O", None]]
    assert span_values(X, y, "word") == [{"Who"}, set(), set()]


def test_judges_have_the_parameters_and_rounds_of_the_model() -> None:
    model = new(rounds=6, seed=3, verbose=True, warm_start=True).fit(X, Y)
    model.set_params(rounds=9)
    judges = [judge for judge, _, _ in cross_fitted(model, X, Y, 3, None)]
    assert [(judge.rounds_, judge.seed, judge.verbose) for judge in judges] == [(6, 3, False)] * 3


def test_a_model_that_knows_its_training_data_too_well_becomes_less_sure() -> None:
    def gap(model: BoostedCRF) -> float:
        """How much surer the model is of unseen sequences than it is right."""
        X, y = names(300, seed=1)
        p, right = [], []
        labels, marginals = model.predict(X), model.predict_marginals(X)
        for own, gold, rows in zip(labels, y, marginals, strict=True):
            for label, true, row in zip(own, gold, rows, strict=True):
                p.append(row[label])
                right.append(label == true)
        return abs(sum(p) - sum(right)) / len(p)

    model = new(rounds=40).fit(X, Y)
    before = gap(model)
    assert model.cross_calibrate(X, Y) is model
    assert model.temperature_ > 1.2
    assert gap(model) < before / 2


def test_labels_stay_where_the_label_outside_is_not_lowered() -> None:
    model = new(rounds=20).fit(X, Y)
    labels = model.predict(X)
    model.cross_calibrate(X, Y, folds=3, outside=False)
    assert model.temperature_ > 1.0
    assert model.outside_ == 0.0
    assert model.predict(X) == labels


@pytest.mark.parametrize("parameters", [{}, {"order": 0}])
def test_labels_that_spell_no_spans_and_single_positions_have_a_temperature_alone(
    parameters: dict[str, Any],
) -> None:
    own, y = (X, Y) if parameters else tiny_data(30)
    model = new(**parameters).fit(own, y).cross_calibrate(own, y, folds=3)
    assert model.temperature_ != 1.0
    assert model.outside_ == 0.0


def test_what_cannot_be_is_refused() -> None:
    model = new().fit(X, Y)
    assert_refused(lambda: model.cross_calibrate(X, Y, folds=1), "folds is 1")
    assert_refused(lambda: model.cross_calibrate(X, Y, folds=True), "folds is True")
    assert_refused(lambda: model.cross_calibrate(X, Y, new="wrod"), "'wrod'", "key")
    same = [[{"word": "a"}]] * 4
    alike = new().fit(same, [["B-X"]] * 4)
    assert_refused(
        lambda: alike.cross_calibrate(same, [["B-X"]] * 4, 2, new="word"), "nothing is left"
    )
    assert_refused(lambda: alike.calibrate(same, [["B-X"]] * 4, outside=True), "no label 'O'")
    assert_refused(lambda: new(order=0).fit(X, Y).calibrate(X, Y, outside=True), "of order 0")
    bags = [[{"word": ["a", "b"]}]] * 4
    assert_refused(lambda: folds_of(bags, [["B-X"]] * 4, 2, "word"), "'word'", "one value")
    assert_refused(lambda: new().cross_calibrate(X, Y), "not fitted")
    model.calibrate(X, Y)
    assert_refused(lambda: model.cross_calibrate(X, Y), "calibrated already")


@pytest.mark.parametrize("new", [None, "word"])
def test_folds_without_annotation_tell_nothing(new: str | None) -> None:
    partial: list[Any] = [[None] * len(x) for x in X[:12]]
    model = BoostedCRF(rounds=4, linear_rounds=2).fit(X, [*partial, *Y[12:]])
    model.cross_calibrate(X, [*partial, *Y[12:]], folds=5, new=new)
    assert model.temperature_ != 1.0
