"""Spans that are more probable than not, against all label sequences of a small model."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest

from spacy_treecrf import BoostedCRF
from spacy_treecrf.labels.schemes import as_ioe2, conll_spans, spelled
from spacy_treecrf.models.probable_spans import Spelling

WORDS = "abcd"
HINTS = ["X1", "X2", "X3", "Y1", "Y2", "-", "?"]


def fitted(scheme: str, **settings: Any) -> BoostedCRF:
    """A model that is not sure: spans of random lengths follow random words."""
    draw = random.Random(0)
    X, y = [], []
    for _ in range(90):
        n = draw.randint(1, 6)
        spans, t = [], 0
        while t < n:
            end = min(n, t + draw.randint(1, 3))
            if draw.random() < 0.7:
                spans.append((t, end, draw.choice("XY")))
            t = end
        starts = {start: f"{name}{end - start}" for start, end, name in spans}
        hints = [starts.get(t, "-") if draw.random() < 0.9 else "?" for t in range(n)]
        X.append([{"word": draw.choice(WORDS), "hint": hint} for hint in hints])
        y.append(
            as_ioe2(spelled(spans, n, "BIO")) if scheme == "IOE2" else spelled(spans, n, scheme)
        )
    return BoostedCRF(rounds=8, linear_rounds=4, min_rows=1, **settings).fit(X, y)


def inputs(n: int) -> list[list[dict[str, str]]]:
    draw = random.Random(1)
    return [
        [{"word": draw.choice(WORDS), "hint": draw.choice(HINTS)} for _ in range(1 + s % 4)]
        for s in range(n)
    ]


def enumerated(model: BoostedCRF, x: list[dict[str, str]]) -> dict[tuple[int, int, str], float]:
    """The probability of each span, summed over the label sequences that spell it out."""
    found: dict[tuple[int, int, str], float] = defaultdict(float)
    letters_of_model = {label[0] for label in model.classes_}
    for labels, p in model.predict_nbest([x], n=len(model.classes_) ** len(x))[0]:
        for start, end, name in conll_spans(labels):
            letters = "".join(label[0] for label in labels[start:end])
            letters = letters.replace("L", "E").replace("U", "S")
            if "B" not in letters_of_model:  # IOE2
                whole = letters[-1] == "E"
            elif letters_of_model & set("LE"):
                whole = letters == "S" or (letters[0] == "B" and letters[-1] == "E")
            else:
                whole = letters[0] == "B"
            if whole:
                found[start, end, name] += p
    return found


@pytest.mark.parametrize("scheme", ["BIO", "IOE2", "BIOES", "BILUO"])
@pytest.mark.parametrize(
    "settings", [{}, {"family": "separate"}, {"family": "joint", "order": 2}, {"order": 0}]
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


@pytest.mark.parametrize("threshold", [0.49, 1.0, float("nan")])
def test_thresholds_that_let_spans_overlap_are_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match=r"^treecrf: threshold is"):
        fitted("BIO").predict_spans(inputs(1), threshold)


def test_labels_that_spell_no_spans_are_refused() -> None:
    model = BoostedCRF(rounds=2, min_rows=1).fit([[{"a": "1"}]] * 4, [["NOUN"], ["VERB"]] * 2)
    with pytest.raises(ValueError, match=r"^treecrf: .* do not spell spans"):
        model.predict_spans([[{"a": "1"}]])


def test_other_things_than_models_are_refused_beside_one() -> None:
    with pytest.raises(ValueError, match=r"^treecrf: beside holds a str"):
        fitted("BIO").predict_spans(inputs(1), beside=["model"])  # type: ignore[list-item]


def test_labels_of_ioe2_without_types_spell_spans() -> None:
    spelling = Spelling.of(["I", "E", "O"])
    assert (spelling.begins, spelling.ends) == (False, True)
    with pytest.raises(ValueError, match="do not spell spans"):
        Spelling.of(["I", "O"])
