"""Rules across the sequence in estimators: everything is said given that they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import SECOCCRF, BoostedCRF, PerceptronTagger
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.estimators import SequenceEstimator
from spacy_treecrf.models.predictor import Predictor
from tests.engine.rules.naive_rules import follows, ruled_paths
from tests.tiny import LABELS, SMALL, new, tiny_data

X, Y = tiny_data(20)
FEW = [items[:5] for items in X[:8]]
RULES = ["A once", "B after C", "C not after A"]
ESTIMATORS: dict[str, Any] = {
    "separate": lambda: new(rules=RULES),
    "joint, order 2": lambda: new(family="joint", order=2, rules=RULES),
    "order 0": lambda: new(order=0, rules=RULES),
    "observed": lambda: new(constraints="observed", rules=["A once"]),
    "beam": lambda: new(beam=2, rules=RULES),
    "perceptron": lambda: PerceptronTagger(rounds=2, rules=RULES),
    "output code": lambda: SECOCCRF(
        bits=3, code="exhaustive", base=BoostedCRF(rounds=3, min_rows=1, min_count=1), rules=RULES
    ),
}


@pytest.fixture(scope="module", params=list(ESTIMATORS))
def fitted(request: pytest.FixtureRequest) -> SequenceEstimator:
    estimator: SequenceEstimator = ESTIMATORS[request.param]().fit(X, Y)
    return estimator


def test_all_answers_are_those_of_labellings_that_follow_the_rules(
    fitted: SequenceEstimator,
) -> None:
    rules = fitted.get_params()["rules"]
    labels = fitted.classes_
    model = fitted.model_
    data = Sequences.unlabelled(*model.columns.encode(FEW))
    scores = Predictor(model, Workers(1)).scores(data)
    changed = 0
    for s, x in enumerate(FEW):
        own = scores[data.offsets[s] : data.offsets[s + 1]]
        truth = ruled_paths(own, model.chain, labels, rules)
        best = truth.paths[int(truth.scores.argmax())]
        predicted = fitted.predict_single(x)
        assert predicted == [labels[y] for y in best]
        assert follows(rules, predicted, labels)
        for t, probabilities in enumerate(fitted.predict_marginals_single(x)):
            at = [path[t] for path in truth.paths]
            expected = np.bincount(at, truth.probabilities, minlength=len(labels))
            assert list(probabilities.values()) == pytest.approx(expected.tolist(), abs=1e-6)
        nbest = fitted.predict_nbest([x], n=1000)[0]
        assert len(nbest) == len(truth.paths)
        assert sum(p for _, p in nbest) == pytest.approx(1.0)
        free = fitted.__class__(**{**fitted.get_params(), "rules": None})
        free.model_ = fitted.model_
        changed += free.predict_single(x) != predicted
    assert changed, "the rules matter"


def test_rules_can_be_set_and_dropped_after_training(tmp_path: Path) -> None:
    plain = new().fit(X, Y)
    ruled = new(rules=RULES).fit(X, Y)
    before = plain.predict(X)
    assert ruled.predict(X) != before
    plain.set_params(rules=RULES)
    assert plain.predict(X) == ruled.predict(X)
    assert plain.predict_marginals(X) == ruled.predict_marginals(X)
    plain.save(tmp_path / "ruled.treecrf")
    ruled.save(tmp_path / "same.treecrf")
    files = [(tmp_path / name).read_bytes() for name in ("ruled.treecrf", "same.treecrf")]
    assert files[0] == files[1]
    loaded = BoostedCRF.load(tmp_path / "ruled.treecrf")
    assert list(loaded.rules or ()) == RULES
    assert loaded.predict(X) == ruled.predict(X)
    loaded.set_params(rules=None)
    assert loaded.predict(X) == before


def test_the_marginal_predictor_takes_marginals_given_the_rules() -> None:
    model = new(rules=RULES, predictor="marginal").fit(X, Y)
    for x in FEW:
        best = [max(p, key=lambda y: p[y]) for p in model.predict_marginals_single(x)]
        assert model.predict_single(x) == best


@pytest.mark.parametrize("kind", [BoostedCRF, PerceptronTagger, SECOCCRF])
def test_rules_about_labels_that_training_has_not_seen_are_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match="rule 'Zip once' names 'Zip', which is no label"):
        kind(rules=["Zip once"]).fit(X, Y)


def test_rules_set_later_are_checked_at_the_next_call() -> None:
    model = new().fit(X, Y)
    with pytest.raises(ValueError, match="names 'Zip', which is no label of the model"):
        model.set_params(rules=["Zip once"]).predict(X)
    with pytest.raises(ValueError, match="rule 'Zip' is none that is known"):
        model.set_params(rules=["Zip"]).predict(X)


@pytest.mark.parametrize("kind", [BoostedCRF, PerceptronTagger])
def test_a_stored_model_with_rules_about_other_labels_is_refused(kind: Any) -> None:
    model = kind(rounds=2, rules=["A once"]).fit(X, Y).model_
    state = model.to_state()
    state["settings"]["rules"] = ["Zip once"]
    with pytest.raises(ValueError, match="names 'Zip', which is no label of the model"):
        type(model).from_state(state)


def test_the_base_of_an_output_code_has_no_rules() -> None:
    base = BoostedCRF(rules=["A once"])
    with pytest.raises(ValueError, match=r"'base.rules'"):
        SECOCCRF(base=base).fit(X, Y)
    with pytest.raises(ValueError, match=r"'base.rules'"):
        SECOCCRF(base=PerceptronTagger(rules=["A once"])).fit(X, Y)


def test_warm_starts_may_change_the_rules() -> None:
    model = new(rules=["A once"]).fit(X, Y)
    model.set_params(rules=["B once"], warm_start=True, rounds=SMALL["rounds"] + 1).fit(X, Y)
    assert model.model_.settings.rules == ("B once",)
    with pytest.raises(ValueError, match="names 'Zip'"):
        model.set_params(rules=["Zip once"]).fit(X, Y)


def test_integer_labels_are_named_by_their_digits() -> None:
    numbers = [[LABELS.index(y) for y in labels] for labels in Y]
    model = new(rules=["0 once"]).fit(X, numbers)
    named = new(rules=["A once"]).fit(X, Y)
    expected = [[LABELS.index(y) for y in labels] for labels in named.predict(X)]
    assert model.predict(X) == expected


def test_explanations_say_probabilities_given_the_rules() -> None:
    model = new(rules=RULES).fit(X, Y)
    x = FEW[0]
    explained = model.explain_sequence(x, nbest=3)
    assert list(explained.labels) == model.predict_single(x)
    assert [list(one.labels) for one in explained.alternatives] == [
        labels for labels, _ in model.predict_nbest([x], n=3)[0]
    ]
    for token, marginals in zip(explained.tokens, model.predict_marginals_single(x), strict=True):
        for label, probability in token.probabilities.items():
            assert probability == pytest.approx(marginals[label])
        assert token.context is None
        assert any("rules" in reason for reason in token.missing)
        for effect in token.effects:
            assert effect.before == pytest.approx(marginals[token.label])
    changed = model.explain(x, 1, replace={"word": "w8"}).effects[0]
    other = [dict(item) for item in x]
    other[1]["word"] = "w8"
    again = model.predict_marginals_single(other)[1]
    assert changed.after == pytest.approx(again[model.predict_single(x)[1]])


def test_a_list_of_rules_that_changes_in_place_is_noticed() -> None:
    rules = ["A once"]
    model = new(rules=rules).fit(X, Y)
    model.predict(FEW)
    rules.append("B after C")
    named = new(rules=["A once", "B after C"]).fit(X, Y)
    assert model.predict(FEW) == named.predict(FEW)
    rules.append("nothing of that kind")
    with pytest.raises(ValueError, match="nothing of that kind"):
        model.predict(FEW)


def test_lattices_are_those_without_rules() -> None:
    ruled, free = new(rules=RULES).fit(X, Y), new().fit(X, Y)
    for own, other in zip(ruled.predict_lattices(FEW), free.predict_lattices(FEW), strict=True):
        np.testing.assert_array_equal(own.nodes, other.nodes)
        np.testing.assert_array_equal(own.pairs, other.pairs)


def test_what_is_not_known_under_rules_is_refused() -> None:
    model = new(rules=RULES).fit(X, Y).model_
    data = Sequences.unlabelled(*model.columns.encode(FEW))
    scored = Predictor(model, Workers(1)).apply(data)
    for question in (scored.entropies, scored.pair_marginals):
        with pytest.raises(ValueError, match="under rules"):
            question()
