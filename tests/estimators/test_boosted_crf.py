"""BoostedCRF answers consistently, and only data and settings change what it learns."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from spacy_treecrf import BoostedCRF
from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.evaluation.spans import span_scores, total_score
from spacy_treecrf.storage import container
from tests.tiny import new, tiny_data

KINDS: dict[str, dict[str, Any]] = {
    "separate": {},
    "order 0": {"order": 0},
    "joint": {"family": "joint"},
    "joint order 2": {"family": "joint", "order": 2},
    "gradient": {"family": "joint", "step": "gradient", "linear_rounds": 0},
}
X, Y = tiny_data(20)
NEW_X, NEW_Y = tiny_data(8, seed=1)


@pytest.fixture(scope="module", params=list(KINDS))
def fitted(request: pytest.FixtureRequest) -> BoostedCRF:
    return new(**KINDS[request.param]).fit(X, Y)


def learned(model: BoostedCRF) -> bytes:
    """Everything but the settings, as bytes."""
    return container.dump({**model.model_.to_state(), "settings": None})


def test_predictions_have_the_shape_of_the_data(fitted: BoostedCRF) -> None:
    assert fitted.classes_ == ["A", "B", "C"]
    assert fitted.rounds_ == 4
    predicted = fitted.predict(NEW_X)
    assert [len(y) for y in predicted] == [len(x) for x in NEW_X]
    assert {label for y in predicted for label in y} <= set(fitted.classes_)
    assert [type(label) for label in predicted[0]] == [str] * len(predicted[0])
    assert [fitted.predict_single(x) for x in NEW_X] == predicted
    assert [fitted.predict([x])[0] for x in NEW_X] == predicted


def test_marginals_are_probabilities(fitted: BoostedCRF) -> None:
    marginals = fitted.predict_marginals(NEW_X)
    assert [len(m) for m in marginals] == [len(x) for x in NEW_X]
    for position in itertools.chain.from_iterable(marginals):
        assert list(position) == fitted.classes_
        assert all(type(p) is float and 0.0 <= p <= 1.0 for p in position.values())
        assert sum(position.values()) == pytest.approx(1.0, abs=1e-9)
    assert [fitted.predict_marginals_single(x) for x in NEW_X] == marginals


def test_all_label_sequences_have_the_probabilities_of_marginals_and_predictions(
    fitted: BoostedCRF,
) -> None:
    for x in (x[:4] for x in NEW_X):
        paths = fitted.predict_nbest([x], n=10**5)[0]
        every = set(itertools.product(fitted.classes_, repeat=len(x)))
        assert {tuple(path) for path, _ in paths} == every
        assert len(paths) == len(every)
        probabilities = [p for _, p in paths]
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) == pytest.approx(1.0, abs=1e-6)
        assert paths[0][0] == fitted.predict_single(x)
        for t, position in enumerate(fitted.predict_marginals_single(x)):
            for label, probability in position.items():
                share = sum(p for path, p in paths if path[t] == label)
                assert share == pytest.approx(probability, abs=1e-6)
        assert fitted.predict_nbest([x], n=3)[0] == paths[:3]


def test_default_number_of_best_sequences_is_five() -> None:
    model = new().fit(X, Y)
    assert [len(paths) for paths in model.predict_nbest([X[0]])] == [5]


def test_score_is_the_share_of_right_labels(fitted: BoostedCRF) -> None:
    pairs = [
        (p, g)
        for predicted, gold in zip(fitted.predict(NEW_X), NEW_Y, strict=True)
        for p, g in zip(predicted, gold, strict=True)
    ]
    assert fitted.score(NEW_X, NEW_Y) == pytest.approx(sum(p == g for p, g in pairs) / len(pairs))
    assert fitted.score(NEW_X, fitted.predict(NEW_X)) == 1.0
    assert fitted.score(X, Y) > 0.6


def test_score_weighs_sequences_and_leaves_out_what_is_not_annotated() -> None:
    model = new().fit(X, Y)
    right = model.predict(NEW_X[:2])
    wrong = [["?"] * len(y) for y in right]
    n = [len(y) for y in right]
    mixed = [right[0], wrong[1]]
    expected = 3 * n[0] / (3 * n[0] + n[1])
    assert model.score(NEW_X[:2], mixed, sample_weight=[3, 1]) == pytest.approx(expected)
    assert model.score(NEW_X[:2], [right[0], [None] * n[1]]) == 1.0
    assert math.isnan(model.score(NEW_X[:1], [[None] * n[0]]))


def test_marginal_predictor_takes_the_best_label_of_each_position(fitted: BoostedCRF) -> None:
    model = copy.deepcopy(fitted).set_params(predictor="marginal")
    best = [[max(p, key=p.__getitem__) for p in m] for m in fitted.predict_marginals(NEW_X)]
    assert model.predict(NEW_X) == best
    model.set_params(predictor="viterbi")
    assert model.predict(NEW_X) == fitted.predict(NEW_X)


def test_predictions_follow_a_new_fit() -> None:
    model = new().fit(X, Y)
    model.predict(NEW_X)
    model.fit(X, [["Z"] * len(y) for y in Y])
    assert model.classes_ == ["Z"]
    assert model.predict(NEW_X[:1]) == [["Z"] * len(NEW_X[0])]


def test_all_kinds_of_values_are_features() -> None:
    def fit_on(values: list[Any], other: Any) -> list[str]:
        x = [[{"a": value}, {"a": other}] for value in values]
        model = new(order=0).fit(x * 4, [["V", "O"]] * (4 * len(x)))
        return [
            label for value in [*values, other] for label in model.predict_single([{"a": value}])
        ]

    assert fit_on(["x", "y"], "z") == ["V", "V", "O"]
    assert fit_on([True, np.True_], False) == ["V", "V", "O"]
    assert fit_on([1.5, 2, np.float32(2.5)], -3.0) == ["V", "V", "V", "O"]
    assert fit_on(["x"], None) == ["V", "O"]
    assert fit_on([5.0], math.nan) == ["V", "O"]
    assert fit_on([["x", "y"], ["y", "x"]], ["z"]) == ["V", "V", "O"]
    assert fit_on([{"b": "x"}, {"b": {"c": 2.0}}], {"b": "y"}) == ["V", "V", "O"]


def test_items_may_be_lists_of_strings() -> None:
    x = [[["a", "b"], ["b", "c"]], [("c",), {"a", "c"}]]
    model = new(order=0).fit(x * 4, [["A", "C"], ["C", "A"]] * 4)
    assert model.predict(x) == [["A", "C"], ["C", "A"]]
    assert model.predict([[{"a": True}, {"c": 1}]]) == [["A", "C"]]


def test_weight_of_a_sequence_counts_like_repetition() -> None:
    x = [[{"word": item["word"]} for item in items] for items in X]
    y = [["A" if (i + t) % 3 else "B" for t, _ in enumerate(items)] for i, items in enumerate(x)]
    weighted = new().fit(x, y, sample_weight=[2.0] * len(x))
    repeated = new().fit(x + x, y + y)
    once = new().fit(x, y)
    expected = np.array([list(p.values()) for m in repeated.predict_marginals(x) for p in m])
    for model, same in ((weighted, True), (once, False)):
        found = np.array([list(p.values()) for m in model.predict_marginals(x) for p in m])
        assert np.allclose(found, expected, atol=1e-3) is same


def test_sequences_of_weight_zero_teach_nothing() -> None:
    contrary = [["B" if label == "A" else "A" for label in y] for y in Y]
    plain = [["A" if label == "A" else "B" for label in y] for y in Y]
    weights = [1.0] * len(X) + [0.0] * len(X)
    model = new().fit(X + X, plain + contrary, sample_weight=weights)
    assert model.score(X, plain) > 0.8


CONTINUED: dict[str, dict[str, Any]] = {
    **KINDS,
    "in the linear rounds": {"linear_rounds": 5},
    "pseudo-likelihood": {"pseudo_rounds": 3},
    "sampled": {"subsample": 0.7, "colsample": 0.6, "node_colsample": 0.7, "seed": 5},
    "line search": {"line_search": True, "shrinkage": 0.3},
    "mixing rate": {"gamma": "mixing"},
    "constrained": {"constraints": "observed", "leaves": 80, "penalty": 0.1},
}


@pytest.mark.parametrize("kind", list(CONTINUED))
def test_saved_and_continued_training_equals_an_uninterrupted_one_in_every_byte(
    kind: str, tmp_path: Path
) -> None:
    settings = CONTINUED[kind]
    new(**{**settings, "rounds": 6}).fit(X, Y).save(tmp_path / "whole")
    new(**{**settings, "rounds": 3}).fit(X, Y).save(tmp_path / "half")
    model = BoostedCRF.load(tmp_path / "half")
    assert model.rounds_ == 3
    model.set_params(warm_start=True, rounds=6).fit(X, Y).save(tmp_path / "both")
    assert (tmp_path / "both").read_bytes() == (tmp_path / "whole").read_bytes()


def test_warm_start_continues_in_memory_and_without_it_training_begins_anew() -> None:
    whole = new(rounds=6).fit(X, Y)
    model = new(rounds=3, warm_start=True).fit(X, Y)
    model.predict(X)
    model.set_params(rounds=6).fit(X, Y)
    assert learned(model) == learned(whole)
    assert model.predict_marginals(NEW_X) == whole.predict_marginals(NEW_X)
    assert learned(model.fit(X, Y)) == learned(whole), "all rounds are done already"
    assert learned(model.set_params(warm_start=False, rounds=3).fit(X, Y)) != learned(whole)
    assert model.rounds_ == 3


@pytest.mark.parametrize(
    ("labels", "order", "family"),
    [(2, 1, "joint"), (8, 1, "joint"), (9, 1, "separate"), (9, 2, "joint")],
)
def test_auto_family_depends_on_the_number_of_labels(
    labels: int, order: int, family: str, tmp_path: Path
) -> None:
    x, y = tiny_data(labels=tuple(f"L{i}" for i in range(labels)))
    model = new(family="auto", order=order, rounds=2).fit(x, y)
    model.save(tmp_path / "model")
    assert BoostedCRF.load(tmp_path / "model").family == family
    assert model.family == "auto"


def test_interrupted_training_keeps_its_rounds_and_can_go_on(tmp_path: Path) -> None:
    def interrupt(info: RoundInfo) -> None:
        if info.round == 3:
            raise KeyboardInterrupt

    model = new(rounds=6, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.rounds_ == 3
    model.set_params(warm_start=True, callback=None).fit(X, Y).save(tmp_path / "resumed")
    new(rounds=6).fit(X, Y).save(tmp_path / "whole")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()


def test_warm_start_of_another_family_is_refused() -> None:
    model = new(warm_start=True).fit(X, Y).set_params(family="joint", rounds=5)
    with pytest.raises(ValueError, match=r"^treecrf: warm_start .* family='separate', order=1"):
        model.fit(X, Y)


def test_loaded_model_is_the_saved_one(fitted: BoostedCRF, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    loaded = BoostedCRF.load(str(tmp_path / "model"))
    assert loaded.get_params() == fitted.get_params()
    assert loaded.classes_ == fitted.classes_
    assert loaded.rounds_ == fitted.rounds_
    assert loaded.predict(NEW_X) == fitted.predict(NEW_X)
    assert loaded.predict_marginals(NEW_X) == fitted.predict_marginals(NEW_X)
    assert loaded.predict_nbest(NEW_X) == fitted.predict_nbest(NEW_X)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("monitor", ["log_likelihood", "accuracy"])
def test_held_out_data_stop_training_and_keep_the_best_round(monitor: str) -> None:
    seen: list[RoundInfo] = []
    contrary = [[{"A": "B", "B": "A"}.get(label, label) for label in y] for y in NEW_Y]
    model = new(rounds=60, patience=3, monitor=monitor, linear_rounds=4, callback=seen.append)
    model.fit(X, Y, NEW_X, contrary)
    values = [getattr(info, f"held_out_{monitor}") for info in seen]
    assert len(seen) < 60
    assert len(seen) == max(model.rounds_, 4) + 3  # linear rounds do not count
    assert max(values) == values[model.rounds_ - 1] or model.rounds_ == 0
    plain = new(rounds=model.rounds_, linear_rounds=4).fit(X, Y)
    assert learned(model) == learned(plain)


def test_labels_of_spans_are_watched_by_their_f1() -> None:
    words = ["in", "Oslo", "and", "New", "York", "they", "Ann", "Lee"] * 3
    bio = ["O", "B-LOC", "O", "B-LOC", "I-LOC", "O", "B-PER", "I-PER"] * 3
    x = [[{"word": word} for word in words[i : i + 6]] for i in range(18)]
    y = [bio[i : i + 6] for i in range(18)]
    seen: list[RoundInfo] = []
    model = new(rounds=9, patience=2, callback=seen.append).fit(x, y, x, y)
    figures = [info.held_out_f1 for info in seen]
    assert all(info.monitor == "f1" for info in seen)
    assert figures[model.rounds_ - 1] == max(figures)
    assert figures[model.rounds_ - 1] == pytest.approx(
        total_score(span_scores(y, model.predict(x))).f1
    )
    new(monitor="log_likelihood", callback=seen.append).fit(x, y, x, y)
    assert seen[-1].monitor == "log_likelihood"
    with pytest.raises(ValueError, match="'f1', but the labels spell no spans"):
        new(monitor="f1").fit(X, Y, X, Y)


def test_held_out_data_do_not_change_the_rounds() -> None:
    seen: list[RoundInfo] = []
    model = new(patience=0, callback=seen.append).fit(X, Y, X, Y)
    assert [info.round for info in seen] == [1, 2, 3, 4]
    assert learned(model) == learned(new().fit(X, Y))
    assert seen[-1].held_out_log_likelihood == pytest.approx(seen[-1].log_likelihood)
    assert seen[-1].held_out_accuracy == pytest.approx(model.score(X, Y))


def test_dev_sequence_that_the_constraints_forbid_does_not_undo_training() -> None:
    x = [[{"a": "x"}, {"a": "y"}], [{"a": "x"}, {"a": "x"}]] * 6
    y = [["A", "B"], ["A", "A"]] * 6
    dev = ([*x, [{"a": "y"}, {"a": "x"}]], [*y, ["B", "A"]])
    model = new(constraints="observed", patience=2).fit(x, y, *dev)
    assert model.rounds_ > 0


def test_callback_learns_about_every_round() -> None:
    seen: list[RoundInfo] = []
    new(rounds=5, callback=seen.append).fit(X, Y)
    assert [info.round for info in seen] == [1, 2, 3, 4, 5]
    likelihoods = [info.log_likelihood for info in seen]
    assert likelihoods == sorted(likelihoods)
    assert [info.trees for info in seen] == [0, 0, 3, 6, 9]
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(seen))
    assert seen[0].held_out_accuracy is None


def test_verbose_shows_a_bar_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    new(verbose=True).fit(X, Y, X, Y)
    out, bar = capsys.readouterr()
    assert out == ""
    for part in (
        "4/4",
        "round",
        "log-likelihood",
        "held-out",
        "accuracy",
        "kept round 4 of 4 (dev",
    ):
        assert part in bar
    new().fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_used_model_is_copied_and_pickled(fitted: BoostedCRF, tmp_path: Path) -> None:
    predicted = fitted.predict(NEW_X)
    joblib.dump(fitted, tmp_path / "model.joblib")
    for model in (
        copy.deepcopy(fitted),
        copy.copy(fitted),
        pickle.loads(pickle.dumps(fitted)),
        joblib.load(tmp_path / "model.joblib"),
    ):
        assert model.predict(NEW_X) == predicted
        assert model.get_params() == fitted.get_params()
        assert learned(model) == learned(fitted)


@pytest.mark.parametrize("kind", list(KINDS))
def test_number_of_threads_changes_no_byte(kind: str) -> None:
    settings = {**KINDS[kind], "subsample": 0.8, "colsample": 0.7}
    one, two, four = (new(**settings, threads=n).fit(X, Y) for n in (1, 2, 4))
    assert learned(one) == learned(two) == learned(four)
    assert one.predict_marginals(NEW_X) == two.predict_marginals(NEW_X)


def test_one_model_predicts_in_many_threads(fitted: BoostedCRF) -> None:
    expected = [fitted.predict_single(x) for x in NEW_X]
    marginals = fitted.predict_marginals(NEW_X)
    shared = copy.deepcopy(fitted)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(shared.predict_single, NEW_X * 5)) == expected * 5
        assert list(pool.map(shared.predict_marginals_single, NEW_X * 5)) == marginals * 5


def test_models_train_in_many_threads() -> None:
    expected = learned(new().fit(X, Y))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: learned(new().fit(X, Y)), range(8)))
    assert found == [expected] * 8


def assert_bio(labels: list[str]) -> None:
    for before, label in itertools.pairwise(["O", *labels]):
        if label.startswith("I-"):
            assert before[1:] == label[1:], labels
            assert before != "O", labels


@pytest.mark.parametrize("kind", ["separate", "joint", "joint order 2"])
def test_bio_output_is_always_valid(kind: str) -> None:
    def bio(y: list[str]) -> list[str]:
        names = {"A": "B-X", "B": "I-X", "C": "B-Y"}
        labels = ["O"]
        for label in y:
            name = names[label] if label != "B" or labels[-1] in ("B-X", "I-X") else "I-Y"
            labels.append(name if name != "I-Y" or labels[-1] in ("B-Y", "I-Y") else "O")
        return labels[1:]

    model = new(**KINDS[kind], constraints="bio", rounds=3).fit(X, [bio(y) for y in Y])
    assert model.classes_ == ["B-X", "B-Y", "I-X", "I-Y", "O"]
    strange, _ = tiny_data(40, seed=7)
    for x, labels in zip(strange, model.predict(strange), strict=True):
        assert_bio(labels)
        marginals = model.predict_marginals_single(x)
        assert marginals[0]["I-X"] == marginals[0]["I-Y"] == 0.0
    for paths in model.predict_nbest(strange, n=20):
        for labels, _ in paths:
            assert_bio(labels)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("constraints", ["none", "observed"])
def test_trees_without_penalty_are_grown(kind: str, constraints: str) -> None:
    """A leaf may hold only rows where the label is impossible: gradient and hessian are 0."""
    settings = {**KINDS[kind], "penalty": 0.0, "pseudo_rounds": 4, "constraints": constraints}
    model = new(**settings, rounds=6).fit(X, Y)
    assert model.score(X, Y) > 0.5
