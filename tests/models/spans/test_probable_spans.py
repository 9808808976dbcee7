"""Spans that are probable, against all label sequences of a small model."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from spacy_treecrf import BoostedCRF
from spacy_treecrf.estimators.base import encoded
from spacy_treecrf.models.spans.probable_spans import Spelling, begun_inside
from tests.models.unsure_spans import enumerated, fitted, inputs


@pytest.mark.parametrize("scheme", ["BIO", "IOE2", "BIOES", "BILUO"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"family": "separate"},
        {"family": "separate", "beam": 2},
        {"family": "joint", "order": 2},
        {"order": 0},
    ],
)
@pytest.mark.parametrize("threshold", [0.5, 0.6])
def test_spans_are_all_above_the_threshold(
    scheme: str, settings: dict[str, Any], threshold: float
) -> None:
    model = fitted(scheme, **settings)
    X = inputs(12)
    n_found = 0
    for x, found in zip(X, model.predict_spans(X, threshold), strict=True):
        wanted = {key: p for key, p in enumerated(model, x).items() if p > threshold}
        assert {span[:3]: span.probability for span in found} == pytest.approx(wanted, abs=1e-5)
        assert list(found) == sorted(found)
        n_found += len(found)
    assert n_found


def test_probabilities_of_several_models_are_means() -> None:
    models = [fitted("BIO"), fitted("IOE2", family="separate"), fitted("BILUO")]
    X = inputs(40)
    n_found = 0
    for x, found in zip(X, models[0].predict_spans(X, beside=models[1:]), strict=True):
        single = [enumerated(model, x) for model in models]
        means = {key: sum(own.get(key, 0.0) for own in single) / 3 for own in single for key in own}
        wanted = {key: p for key, p in means.items() if p > 0.5}
        assert {span[:3]: span.probability for span in found} == pytest.approx(wanted, abs=1e-5)
        n_found += len(found)
    assert n_found
    assert models[0].predict_spans(iter(X), beside=models[1:]) == models[0].predict_spans(
        X, beside=models[1:]
    )


def test_spans_of_labels_without_types_have_empty_names() -> None:
    X = [[{"a": "1"}, {"a": "2"}, {"a": "3"}]] * 9
    model = BoostedCRF(rounds=5, min_rows=1).fit(X, [["B", "I", "O"]] * 9)
    assert [span[:3] for span in model.predict_spans(X[:1])[0]] == [(0, 2, "")]


def test_rules_hold() -> None:
    model = fitted("BILUO")
    X = inputs(12)
    free = sum(span.name == "X" for own in model.predict_spans(X) for span in own)
    model.set_params(rules=["X not after Y", "X once"])
    for own in model.predict_spans(X):
        assert sum(span.name == "X" for span in own) <= 1
    assert free


def test_no_sequences_and_empty_ones_have_no_spans() -> None:
    model = fitted("BILUO")
    assert model.predict_spans([]) == []
    assert model.predict_spans([[]]) == [[]]


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.0, float("nan"), "F1"])
def test_other_values_than_thresholds_are_refused(threshold: float | str) -> None:
    with pytest.raises(ValueError, match=r"^treecrf: threshold is"):
        fitted("BIO").predict_spans(inputs(1), threshold)


def test_labels_that_spell_no_spans_are_refused() -> None:
    model = BoostedCRF(rounds=2, min_rows=1).fit([[{"a": "1"}]] * 4, [["NOUN"], ["VERB"]] * 2)
    with pytest.raises(ValueError, match=r"^treecrf: .* do not spell spans"):
        model.predict_spans([[{"a": "1"}]])


def test_other_things_than_models_are_refused_beside_one() -> None:
    with pytest.raises(ValueError, match=r"^treecrf: beside holds a str"):
        fitted("BIO").predict_spans(inputs(1), beside=["model"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"^treecrf: beside is one model; use a list"):
        fitted("BIO").predict_spans(inputs(1), beside=fitted("BIO"))  # type: ignore[arg-type]


def test_subclasses_may_stand_beside_each_other() -> None:
    class One(BoostedCRF):
        pass

    class Other(BoostedCRF):
        pass

    one, other = (kind().set_params(**fitted("BIO").get_params()) for kind in (One, Other))
    one.model_ = other.model_ = fitted("BIO").model_
    assert one.predict_spans(inputs(1), beside=[other]) == fitted("BIO").predict_spans(inputs(1))


@pytest.mark.parametrize("name", ["-X", ""])
def test_models_of_iob1_are_refused(name: str) -> None:
    """Their labels have the names of BIO, and I begins most spans."""
    first, inside = f"B{name}", f"I{name}"
    X = [[{"w": "in"}, {"w": "New"}, {"w": "York"}], [{"w": "Rome"}, {"w": "Bern"}]] * 20
    y = [["O", inside, inside], [inside, "O"]] * 19 + [["O", inside, inside], [inside, first]]
    model = BoostedCRF(rounds=10, min_rows=1).fit(X, y)
    for ask in (model.predict_spans, model.expected_f1):
        with pytest.raises(ValueError, match=r"^treecrf: .* so its labels are IOB1; .*to_bio"):
            ask(X)


def test_models_of_bio_serve_texts_that_are_cut_within_names() -> None:
    X = [[{"w": "in"}, {"w": "New"}, {"w": "York"}, {"w": "now"}]] * 20
    model = BoostedCRF(rounds=10, min_rows=1).fit(X, [["O", "B-X", "I-X", "O"]] * 20)
    assert not any(model.predict_spans([[{"w": "York"}, {"w": "now"}]] * 20))


@pytest.mark.parametrize("scheme", ["BIO", "IOB1"])
@pytest.mark.parametrize("settings", [{}, {"order": 0}, {"family": "joint", "order": 2}])
def test_spans_that_begin_inside_are_no_fewer_than_told(
    scheme: str, settings: dict[str, Any]
) -> None:
    model = fitted(scheme, **settings)
    for x in inputs(6):
        wanted = 0.0
        for labels, p in model.predict_nbest([x], n=len(model.classes_) ** len(x))[0]:
            pairs = pairwise(["O", *labels])
            wanted += p * sum(k[0] == "I" and k[1:] != before[1:] for before, k in pairs)
        with model._predictor() as predictor:
            (data,) = encoded(model.model_, [x])
            found = begun_inside(predictor.apply(data), Spelling.of(model.classes_))
        assert 0.0 <= found <= wanted + 1e-4


def test_labels_of_ioe2_without_types_spell_spans() -> None:
    spelling = Spelling.of(["I", "E", "O"])
    assert (spelling.begins, spelling.ends) == (False, True)
    with pytest.raises(ValueError, match="do not spell spans"):
        Spelling.of(["I", "O"])
