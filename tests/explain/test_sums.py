"""Contributions and base add up to scores, for every kind of model."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from spacy_treecrf.engine.chain.chain import path_scores
from spacy_treecrf.engine.memm.label_history import turned_round
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.estimators import SequenceEstimator
from spacy_treecrf.models.memm.base import MEMMBase
from spacy_treecrf.models.predictor import Predictor, ScoredSequences
from tests.explain.kinds import ALL, EXACT, NO_SUMS, SEARCHING, SUMS, X, fitted

ONE = Workers(1)
LONG = max(X, key=len)
SHORT = min(X, key=len)


def scored(estimator: SequenceEstimator, x: list[Any]) -> ScoredSequences:
    model = estimator.model_
    data = Sequences.unlabelled(*model.columns.encode([x]))
    return Predictor(model, ONE).apply(data)


def row_scores(estimator: SequenceEstimator, x: list[Any], predicted: list[int]) -> Any:
    """What the model itself gives to each label at each position after the predicted labels.

    Shape: (length, n_labels). Of models that read backwards: after the labels that follow.
    """
    model, n_labels = estimator.model_, len(estimator.classes_)
    scores, labels = scored(estimator, x).scores, predicted
    backwards = isinstance(model, MEMMBase) and model.settings.right_to_left
    if isinstance(model, MEMMBase):
        data = scored(estimator, x).data
        data = turned_round(data) if backwards else data
        scores = model.decoder.scorer.joint(*model.decoder.see(data, ONE), ONE)
        labels = predicted[::-1] if backwards else predicted
    found = []
    for t in range(len(x)):
        order = round(np.log(scores.shape[1]) / np.log(n_labels))
        context = sum(labels[t - 1 - lag] * n_labels**lag for lag in range(min(t, order)))
        found.append(scores[t, context].astype(float))
    return np.array(found[::-1] if backwards else found)


@pytest.mark.parametrize("x", [LONG, SHORT], ids=["long", "short"])
@pytest.mark.parametrize("kind", SUMS + SEARCHING)
def test_base_and_contributions_are_the_score_that_the_model_gives(kind, x):
    estimator = fitted(kind)
    classes = estimator.classes_
    predicted = [classes.index(label) for label in estimator.predict_single(x)]
    own = row_scores(estimator, x, predicted)
    for t in range(len(x)):
        found = []
        for label in classes:
            one = estimator.explain(x, t, label, effects=0)
            assert one.label == label
            assert one.predicted == classes[predicted[t]]
            found.append(one.base + sum(part.value for part in one.contributions))
            total = found[-1] + one.left.value + one.right.value
            assert one.score == pytest.approx(total, abs=1e-9)
        if isinstance(estimator.model_, MEMMBase):  # its scores are normalised
            found = np.array(found) - np.log(np.exp(found).sum())
        np.testing.assert_allclose(found, own[t], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("kind", EXACT)
def test_difference_of_two_labels_is_that_of_the_whole_labelling(kind):
    """Scores of the path with one label and with the other in its place."""
    estimator = fitted(kind)
    classes, model = estimator.classes_, estimator.model_
    predicted = [classes.index(label) for label in estimator.predict_single(LONG)]
    here = scored(estimator, LONG)

    def total(t: int, y: int) -> float:
        path = np.array(predicted, np.int32)
        path[t] = y
        return float(path_scores(here.scores, here.data.offsets, path, model.chain)[0])

    for t in range(len(LONG)):
        for y, z in [(0, 1), (2, 0), (1, 1)]:
            one = estimator.explain(LONG, t, classes[y], classes[z], effects=0)
            assert one.against == classes[z]
            assert one.score == pytest.approx(total(t, y) - total(t, z), abs=2e-5)


@pytest.mark.parametrize("kind", SUMS)
def test_difference_is_made_of_differences(kind):
    estimator = fitted(kind)
    a, b = estimator.classes_[:2]
    parts = [estimator.explain(LONG, 1, label, effects=0) for label in (a, b)]
    both = estimator.explain(LONG, 1, a, b, effects=0)
    expected: dict[tuple[str, str], float] = {}
    for one, sign in zip(parts, (1.0, -1.0), strict=True):
        for part in one.contributions:
            key = part.feature, part.source
            expected[key] = expected.get(key, 0.0) + sign * part.value
    found = {(part.feature, part.source): part.value for part in both.contributions}
    for key in expected | found:
        assert found.get(key, 0.0) == pytest.approx(expected.get(key, 0.0), abs=1e-6)
    assert both.base == pytest.approx(parts[0].base - parts[1].base, abs=1e-6)


@pytest.mark.parametrize("kind", NO_SUMS)
def test_scores_that_are_no_sums_are_given_whole_and_the_reason_is_told(kind):
    one = fitted(kind).explain(LONG, 1)
    assert not one.contributions
    assert "no sum over features" in one.missing[0]
    assert one.effects
    own = scored(fitted(kind), LONG).scores[1, 0]
    assert one.base == pytest.approx(own[fitted(kind).classes_.index(one.label)], abs=1e-6)


@pytest.mark.parametrize("kind", SEARCHING)
def test_beam_search_has_no_views_and_says_so(kind):
    one = fitted(kind).explain(LONG, 1)
    assert one.context is None
    assert "beam search" in one.missing[-1]
    assert one.effects


@pytest.mark.parametrize("kind", ALL)
def test_explanations_are_json_and_their_largest_parts_come_first(kind):
    found = fitted(kind).explain_sequence(LONG, interactions=True)
    stored = found.to_dict()
    assert json.loads(json.dumps(stored)) == stored
    assert [one.position for one in found.tokens] == list(range(len(LONG)))
    for one in found.tokens:
        for parts in (one.contributions, one.interactions):
            sizes = [abs(part.value) for part in parts]
            assert sizes == sorted(sizes, reverse=True)
        assert list(one.probabilities.values()) == sorted(one.probabilities.values(), reverse=True)
        assert sum(one.probabilities.values()) == pytest.approx(1.0, abs=1e-6)
        changes = [abs(effect.after - effect.before) for effect in one.effects]
        assert changes == sorted(changes, reverse=True)
        assert one.probability == found.tokens[one.position].probabilities[one.label]


@pytest.mark.parametrize("kind", ["crf separate", "crf joint", "memm", "ff-memm", "secoc joint"])
def test_stored_models_are_explained_alike(kind, tmp_path):
    estimator = fitted(kind)
    estimator.save(tmp_path / "model")
    loaded = type(estimator).load(tmp_path / "model")
    assert loaded.explain(LONG, 1) == estimator.explain(LONG, 1)


def test_compact_models_say_what_they_lack_and_still_add_up(tmp_path):
    estimator = fitted("crf joint")
    estimator.save(tmp_path / "model", compact=True)
    compact = type(estimator).load(tmp_path / "model")
    one, whole = compact.explain(LONG, 1), estimator.explain(LONG, 1)
    assert "it is compact, or was trained by version 0.1" in one.missing[0]
    assert one.score == pytest.approx(whole.score, abs=1e-6)
    by_trees = [part for part in one.contributions if part.source == "trees"]
    assert [part.feature for part in by_trees] == ["all trees"]
    linear = {part.feature: part.value for part in whole.contributions if part.source == "linear"}
    for part in one.contributions:
        if part.source == "linear":
            assert part.value == pytest.approx(linear[part.feature], abs=1e-6)
    assert one.effects == whole.effects


def test_trees_grown_on_a_model_without_counts_are_explained(tmp_path):
    """A model of 0.1 that learned more has trees of both sorts."""
    estimator = fitted("crf separate")
    state = estimator.model_.to_state()
    del state["forest"]["rows"]
    old = type(estimator)(**estimator.get_params())
    old.model_ = type(estimator.model_).from_state(state)
    old.set_params(warm_start=True, rounds=8).fit(X, [["A"] * len(x) for x in X])
    one = old.explain(LONG, 1)
    by_trees = [part.feature for part in one.contributions if part.source == "trees"]
    assert "all trees" in by_trees
    assert len(by_trees) > 1
    predicted = [old.classes_.index(label) for label in old.predict_single(LONG)]
    total = one.base + sum(part.value for part in one.contributions)
    assert total == pytest.approx(row_scores(old, LONG, predicted)[1, predicted[1]], abs=1e-6)
