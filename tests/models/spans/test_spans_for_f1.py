"""Spans that serve F1 best, against all sets of spans, and against all label sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf import BoostedCRF
from spacy_treecrf.estimators.base import encoded
from spacy_treecrf.estimators.spans import possible_spans
from spacy_treecrf.labels.biluo import biluo_spans
from spacy_treecrf.models.spans.probable_spans import ProbableSpan, Spelling, _possible_spans
from spacy_treecrf.models.spans.spans_for_f1 import best_spans, expected_f1_of, highest_f1
from spacy_treecrf.pipeline.annotation.predictions import span_labels_of
from tests.models.unsure_spans import enumerated, fitted, inputs

SETTINGS: list[dict[str, Any]] = [
    {},
    {"family": "separate"},
    {"family": "joint", "order": 2},
    {"order": 0},
]


def sets_of(spans: Sequence[ProbableSpan], first: int = 0) -> Iterator[list[ProbableSpan]]:
    """All sets of spans that do not overlap and do not begin before `first`."""
    yield []
    for span in spans:
        if span.start >= first:
            for rest in sets_of(spans, span.end):
                yield [span, *rest]


@st.composite
def some_spans(draw: st.DrawFn) -> list[ProbableSpan]:
    """A few spans of short sequences, which may overlap, with any probabilities."""
    places = draw(
        st.lists(
            st.tuples(st.integers(0, 5), st.integers(1, 3), st.sampled_from("XY")),
            max_size=6,
            unique=True,
        )
    )
    return [
        ProbableSpan(start, start + n, name, draw(st.integers(2, 100)) / 100)
        for start, n, name in sorted(places)
    ]


def gain(spans: Sequence[ProbableSpan], threshold: float) -> float:
    return sum(span.probability - threshold for span in spans)


@given(spans=some_spans(), threshold=st.sampled_from([0.01, 0.1, 0.3, 0.49]))
def test_no_other_spans_gain_more(spans: list[ProbableSpan], threshold: float) -> None:
    found = best_spans(spans, threshold)
    assert all(one.end <= other.start for one, other in pairwise(found))
    best = max(gain(some, threshold) for some in sets_of(spans))
    assert gain(found, threshold) == pytest.approx(best, abs=1e-9)
    assert all(span.probability > threshold for span in found)


@settings(deadline=None, max_examples=50)
@given(sequences=st.lists(some_spans(), max_size=2), more=st.sampled_from([0.0, 0.3, 2.0, 20.0]))
def test_no_other_spans_have_a_higher_expected_f1(
    sequences: list[list[ProbableSpan]], more: float
) -> None:
    n_expected = sum(span.probability for own in sequences for span in own) + more
    choices: list[list[ProbableSpan]] = [[]]
    for own in sequences:
        choices = [[*some, *further] for some in choices for further in sets_of(own)]
    f1s = [2 * gain(some, 0.0) / (len(some) + n_expected) for some in choices if some]
    found = highest_f1(sequences, n_expected)
    # One span above the lowest threshold is in the best choice even where its F1 is below that.
    assert found == pytest.approx(min(1.0, max(f1s, default=0.0)), abs=0.01)
    if found > 0.02:
        assert found == pytest.approx(min(1.0, max(f1s)), abs=1e-6)


@pytest.mark.parametrize("scheme", ["BIO", "IOE2", "BIOES", "BILUO"])
@pytest.mark.parametrize("parameters", SETTINGS)
def test_chosen_spans_gain_most_by_enumeration(scheme: str, parameters: dict[str, Any]) -> None:
    model = fitted(scheme, **parameters)
    X = inputs(12)
    n_unsure = 0
    for threshold in (0.05, 0.2, 0.45):
        for x, found in zip(X, model.predict_spans(X, threshold), strict=True):
            p = enumerated(model, x)
            for span in found:
                assert span.probability == pytest.approx(p[span[:3]], abs=1e-5)
            possible = [ProbableSpan(*key, own) for key, own in sorted(p.items()) if own > 0.02]
            best = max(gain(some, threshold) for some in sets_of(possible))
            assert gain(found, threshold) == pytest.approx(best, abs=1e-4)
            n_unsure += sum(span.probability < 0.5 for span in found)
    assert n_unsure


@pytest.mark.parametrize("scheme", ["BIO", "IOE2", "BIOES", "BILUO"])
@pytest.mark.parametrize("parameters", [{}, {"family": "separate", "beam": 2}])
def test_expected_f1_is_that_of_enumerated_spans(scheme: str, parameters: dict[str, Any]) -> None:
    """Constraints see to it that labels which begin or end spans are as many as spans."""
    rules = {"BIO": "bio", "BIOES": "observed", "BILUO": "biluo", "IOE2": "none"}
    model = fitted(scheme, constraints=rules[scheme], **parameters)
    X = inputs(10)
    probabilities = [enumerated(model, x) for x in X]
    n_expected = sum(p for own in probabilities for p in own.values())
    f1 = model.expected_f1(X)
    found = model.predict_spans(X, "f1")
    chosen = [span for own in found for span in own]
    expected = 2 * gain(chosen, 0.0) / (len(chosen) + n_expected)
    assert f1 == pytest.approx(expected, abs=1e-3)
    assert 0.0 < f1 < 1.0
    assert found == model.predict_spans(X, f1 / 2)
    (data,) = encoded(model.model_, X)
    with model._predictor() as predictor:
        assert expected_f1_of([predictor.apply(data)], model.classes_) == pytest.approx(f1)


def test_several_models_tell_means() -> None:
    models = [fitted("BIO"), fitted("BILUO", family="separate")]
    X = inputs(12)
    for x, found in zip(X, models[0].predict_spans(X, 0.2, beside=models[1:]), strict=True):
        single = [enumerated(model, x) for model in models]
        means = {key: sum(own.get(key, 0.0) for own in single) / 2 for own in single for key in own}
        possible = [ProbableSpan(*key, p) for key, p in sorted(means.items()) if p > 0.02]
        best = max(gain(some, 0.2) for some in sets_of(possible))
        assert gain(found, 0.2) == pytest.approx(best, abs=1e-4)
    together = models[0].expected_f1(X, beside=models[1:])
    assert together not in [model.expected_f1(X) for model in models]


@pytest.mark.parametrize("parameters", [{}, {"family": "separate"}])
@pytest.mark.parametrize("expected_f1", [0.1, 0.4, 0.9])
def test_the_pipe_chooses_the_same_spans(parameters: dict[str, Any], expected_f1: float) -> None:
    model = fitted("BILUO", constraints="biluo", **parameters)
    X = inputs(30)
    labels_of_spans = span_labels_of(tuple(model.classes_))
    assert labels_of_spans is not None
    (data,) = encoded(model.model_, X)
    with model._predictor() as predictor:
        ids = predictor.apply(data).labels_of_spans(labels_of_spans, expected_f1 / 2).tolist()
    found = model.predict_spans(X, expected_f1 / 2)
    for (first, last), own in zip(pairwise(data.offsets.tolist()), found, strict=True):
        names = [model.classes_[i] for i in ids[first:last]]
        assert [span[:3] for span in own] == biluo_spans(names)


def test_no_sequences_have_no_spans_and_no_f1() -> None:
    model = fitted("BILUO")
    for empty in ([], [[]]):
        assert model.predict_spans(empty, "f1") == empty
        assert model.expected_f1(empty) == 0.0


def test_a_model_that_is_certain_expects_to_be_right() -> None:
    X = [[{"a": "1"}, {"a": "2"}, {"a": "3"}]] * 50
    model = BoostedCRF(rounds=20, min_rows=1).fit(X, [["B-X", "I-X", "O"]] * 50)
    assert model.expected_f1(X) > 0.95
    assert [span[:3] for span in model.predict_spans(X, "f1")[0]] == [(0, 2, "X")]


@pytest.mark.parametrize("scheme", ["BIO", "IOE2", "BILUO"])
def test_long_sequences_have_few_possible_spans_besides_those_above_the_threshold(
    scheme: str,
) -> None:
    """Each row may begin and each may go on with a span, but long spans are improbable."""
    model = fitted(scheme)
    model.model_ = model.model_.cooled(3.0)
    x = [{"word": "a", "hint": "?"}] * 120
    with model._predictor() as predictor:
        (data,) = encoded(model.model_, [x])
        scored = predictor.apply(data)
        spelling = Spelling.of(model.model_.labels)
        possible = set(_possible_spans(scored, spelling, 0.01))
    (found,) = possible_spans([model], [x])[0:1][0]
    above = {(start, end, name) for start, end, name, _ in found}
    assert above <= possible
    assert len(possible) < 3 * len(above)
