"""Going on with new words: a fitted model takes in features that it does not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spacy_treecrf import SECOCCRF, BoostedCRF, BoostedMEMM, PerceptronTagger
from spacy_treecrf.engine.encoding.missing_methods import METHODS
from spacy_treecrf.estimators import SequenceEstimator
from tests.crfsuite_models import addresses, train_crfsuite
from tests.tiny import SMALL, new, tiny_data

X, Y = tiny_data(20)


def renamed(value: Any) -> Any:
    """Items with other words and numbers, a further key, and the same structure."""
    if isinstance(value, dict):
        made = {key: renamed(one) for key, one in value.items()}
        return {**made, "further": "new"} if "word" in value else made
    if isinstance(value, list):
        return [renamed(one) for one in value]
    if isinstance(value, str):
        return value.replace("w", "v").replace("b", "c")
    return value


NEW_X = [[renamed(item) for item in items] for items in X]
# What words mean is the other way round than in X, so that only new words can tell.
NEW_Y = [[{"A": "B", "B": "C", "C": "A"}[label] for label in labels] for labels in Y]
KINDS: dict[str, Any] = {
    **{f"missing={method}": lambda method=method: new(missing=method) for method in METHODS},
    "joint": lambda: new(family="joint"),
    "joint, order 2": lambda: new(family="joint", order=2),
    "conjugate": lambda: new(step="conjugate"),
    "only linear": lambda: new(linear_rounds=4),
    "beam": lambda: new(beam=2),
    "perceptron": lambda: PerceptronTagger(rounds=3),
    "voted": lambda: PerceptronTagger(method="voted", rounds=3),
}


@pytest.fixture(params=list(KINDS))
def fitted(request: pytest.FixtureRequest) -> SequenceEstimator:
    estimator: SequenceEstimator = KINDS[request.param]().fit(X, Y)
    return estimator


def test_until_it_is_learned_what_is_new_changes_no_bit(fitted: SequenceEstimator) -> None:
    known = fitted.model_.columns.feature_names
    both = X + NEW_X
    before = fitted.predict(both), fitted.predict_marginals(both)
    fitted.add_features(NEW_X)
    names = fitted.model_.columns.feature_names
    assert names[: len(known)] == known
    assert {"word=v3", "further=new", "bag:c1", "nested:mod=1"} <= set(names)
    assert (fitted.predict(both), fitted.predict_marginals(both)) == before


def test_going_on_learns_what_is_new_and_files_hold_it(
    fitted: SequenceEstimator, tmp_path: Path
) -> None:
    before = fitted.score(NEW_X, NEW_Y)
    fitted.add_features(NEW_X)
    fitted.save(tmp_path / "grown.treecrf")
    loaded = type(fitted).load(tmp_path / "grown.treecrf")
    further = {"warm_start": True, "rounds": fitted.rounds_ + 12}
    for model in (fitted, loaded):
        model.set_params(**further).fit(NEW_X, NEW_Y)
    assert fitted.score(NEW_X, NEW_Y) > before
    if isinstance(fitted, BoostedCRF):  # which can learn what depends on the position
        assert fitted.score(NEW_X, NEW_Y) > 0.9
    assert loaded.predict_marginals(NEW_X) == fitted.predict_marginals(NEW_X)


def test_without_it_new_words_stay_unknown() -> None:
    """Labels that follow from words alone can only be learned by a model that knows the words."""
    words = [[{"word": item["word"]} for item in items] for items in NEW_X]
    old_words = [[{"word": item["word"]} for item in items] for items in X]
    scores = []
    for grows in (False, True):
        model = new(order=0).fit(old_words, Y)
        if grows:
            model.add_features(words)
        by_word = [[f"{'ABC'[int(item['word'][1:]) % 3]}" for item in items] for items in words]
        model.set_params(warm_start=True, rounds=20, linear_rounds=20).fit(words, by_word)
        scores.append(model.score(words, by_word))
    assert scores[0] < 0.7
    assert scores[1] == 1.0


def test_features_of_few_rows_are_left_out() -> None:
    model = new(min_count=2).fit(X, Y)
    model.add_features([[{"word": "once"}, {"word": "twice"}, {"word": "twice"}]])
    names = model.model_.columns.feature_names
    assert "word=twice" in names
    assert "word=once" not in names


@pytest.mark.parametrize("kind", [SECOCCRF, BoostedMEMM])
def test_models_that_cannot_grow_say_so(kind: Any) -> None:
    with pytest.raises(ValueError, match="cannot take in new features; train a new model"):
        kind().fit(X, Y).add_features(NEW_X)


def test_compact_models_and_those_of_crfsuite_cannot_grow(tmp_path: Path) -> None:
    model = new().fit(X, Y)
    model.save(tmp_path / "compact.treecrf", compact=True)
    with pytest.raises(ValueError, match="compact"):
        BoostedCRF.load(tmp_path / "compact.treecrf").add_features(NEW_X)
    items, labels = addresses(20, 0)
    train_crfsuite(tmp_path / "model.crfsuite", items, labels)
    with pytest.raises(ValueError, match="CRFsuite has trained cannot take in new features"):
        BoostedCRF.from_crfsuite(tmp_path / "model.crfsuite").add_features(items)


def test_a_model_must_be_fitted_before_it_can_grow() -> None:
    with pytest.raises(ValueError, match="not fitted yet"):
        BoostedCRF(**SMALL).add_features(X)
    with pytest.raises(ValueError, match="holds no sequences"):
        new().fit(X, Y).add_features([])
