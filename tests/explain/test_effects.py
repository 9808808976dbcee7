"""Effects on probabilities, against predictions of sequences that lack a feature."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.explain.kinds import ALL, X, fitted

LONG = max(X, key=len)


def without(x: list[Any], t: int, key: str, value: str | None = None) -> list[Any]:
    """The sequence without a key at a position, or without one value of a list."""
    changed = copy.deepcopy(x)
    if value is None:
        del changed[t][key]
    else:
        changed[t][key].remove(value)
    return changed


def marginal(estimator, x, t, label) -> float:
    return float(estimator.predict_marginals_single(x)[t][label])


# A pruned chain gives other marginals than the exact ones that are explained.
@pytest.mark.parametrize("kind", [kind for kind in ALL if kind != "crf beam"])
def test_effects_are_those_of_predicting_without_the_feature(kind):
    estimator = fitted(kind)
    for t in (0, 2, len(LONG) - 1):
        one = estimator.explain(LONG, t, effects=100)
        assert one.probability == pytest.approx(marginal(estimator, LONG, t, one.label), abs=1e-6)
        effects = {effect.feature: effect for effect in one.effects}
        bag = LONG[t]["bag"][0]
        tried = {f"word={LONG[t]['word']}": ("word", None), f"bag:{bag}": ("bag", bag)}
        numbers = [effect for effect in one.effects if effect.column == "size"]
        tried |= {effect.feature: ("size", None) for effect in numbers}
        assert len(numbers) == 1
        for feature, (key, value) in tried.items():
            after = marginal(estimator, without(LONG, t, key, value), t, one.label)
            assert effects[feature].after == pytest.approx(after, abs=1e-6), feature
            assert effects[feature].before == one.probability
            assert effects[feature].replaced_by is None


@pytest.mark.parametrize("kind", ["crf separate", "crf joint order 2", "memm", "ff-memm"])
def test_replaced_values_are_tried_one_by_one_and_listed_first(kind):
    estimator = fitted(kind)
    values = {"word": "w0", "size": 2.5, "new": "x"}
    one = estimator.explain(LONG, 1, effects=2, replace=values)
    assert len(one.effects) == 2 + len(values)
    found = {effect.column: effect for effect in one.effects[: len(values)]}
    for key, value in values.items():
        changed = copy.deepcopy(LONG)
        changed[1][key] = value
        assert found[key].replaced_by == f"{key}={value}"
        expected = marginal(estimator, changed, 1, one.label)
        assert found[key].after == pytest.approx(expected, abs=1e-6)
    assert all(effect.replaced_by is None for effect in one.effects[len(values) :])


def test_rows_that_are_wider_than_the_table_are_explained():
    """A row of very many features goes on in further rows of the table."""
    from spacy_treecrf import BoostedCRF
    from spacy_treecrf.engine import wide_rows

    x = [{"bag": [f"b{i}" for i in range(60)]}] + [{"bag": ["b1"]} for _ in range(30)]
    y = ["A", *["B"] * 30]
    model = BoostedCRF(rounds=4, linear_rounds=2, min_rows=1, min_count=1, threads=1).fit([x], [y])
    plain = model.explain(x, 0, effects=200)
    large, wide_rows.LARGE = wide_rows.LARGE, 10
    try:
        columns = model.model_.columns
        assert len(columns.encode([x])[1]) > len(x)
        assert model.explain(x, 0, effects=200) == plain
    finally:
        wide_rows.LARGE = large


def test_bad_questions_are_refused_with_a_remedy():
    estimator = fitted("crf separate")
    with pytest.raises(ValueError, match="label 'X' is not one of the model's: A, B, C"):
        estimator.explain(LONG, 0, "X")
    with pytest.raises(ValueError, match="position 99 is not in the sequence; use 0 to"):
        estimator.explain(LONG, 99)
    with pytest.raises(ValueError, match="effects is -1"):
        estimator.explain(LONG, 0, effects=-1)
    with pytest.raises(ValueError, match="the sequence to explain is empty"):
        estimator.explain([], 0)
    with pytest.raises(ValueError, match="1 texts for"):
        estimator.explain_sequence(LONG, texts=["one"])
    with pytest.raises(ValueError, match="where rows are dicts"):
        estimator.explain([["word=w1"]], 0, replace={"word": "w2"})
