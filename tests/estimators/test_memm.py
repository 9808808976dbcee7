"""BoostedMEMM and FutureFeatureMEMM: the calls of BoostedCRF, held-out parts, bad input, words."""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import spacy_treecrf
from scripts.reproduce.future_bits import bit_features, future_bits_splits
from spacy_treecrf import BoostedCRF, BoostedMEMM, FutureFeatureMEMM
from spacy_treecrf.estimators import SequenceEstimator
from tests.refusals import assert_refused
from tests.tiny import tiny_data

X, Y = tiny_data(40)
NEW_X, NEW_Y = tiny_data(8, seed=1)
FEW: dict[str, Any] = {"rounds": 6, "min_rows": 1, "min_count": 1}
MODELS: dict[str, SequenceEstimator] = {
    "sliding window": BoostedMEMM(**FEW, order=0),
    "memm": BoostedMEMM(**FEW),
    "memm 3": BoostedMEMM(**FEW, order=3),
    "memm from the right": BoostedMEMM(**FEW, order=2, right_to_left=True),
    "future": FutureFeatureMEMM(**FEW, bag=2),
    "future to the end": FutureFeatureMEMM(**FEW, order=2),
    "future from the right": FutureFeatureMEMM(**FEW, right_to_left=True, bag=3),
}
SEARCHES: dict[str, SequenceEstimator] = {
    "greedy": BoostedMEMM(**FEW, order=2, search="greedy"),
    "beam": FutureFeatureMEMM(**FEW, order=2, search="beam", beam_width=3),
}


@pytest.fixture(scope="module", params=list(MODELS))
def exact(request: pytest.FixtureRequest) -> SequenceEstimator:
    return clone(MODELS[request.param]).fit(X, Y)


@pytest.fixture(scope="module", params=[*MODELS, *SEARCHES])
def fitted(request: pytest.FixtureRequest) -> SequenceEstimator:
    return clone({**MODELS, **SEARCHES}[request.param]).fit(X, Y)


def test_predictions_have_the_shape_of_the_data(fitted: SequenceEstimator) -> None:
    assert fitted.classes_ == ["A", "B", "C"]
    predicted = fitted.predict(NEW_X)
    assert [len(y) for y in predicted] == [len(x) for x in NEW_X]
    assert {label for y in predicted for label in y} <= set(fitted.classes_)
    assert [fitted.predict_single(x) for x in NEW_X] == predicted
    for position in itertools.chain.from_iterable(fitted.predict_marginals(NEW_X)):
        assert sum(position.values()) == pytest.approx(1.0, abs=1e-6)
    for x, paths in zip(NEW_X, fitted.predict_nbest(NEW_X, n=2), strict=True):
        assert 1 <= len(paths) <= 2
        assert paths[0][0] == fitted.predict_single(x)
        assert all(0.0 < p <= 1.0 + 1e-6 for _, p in paths)
    assert 0.0 <= fitted.score(NEW_X, NEW_Y) <= 1.0


def test_all_label_sequences_have_the_probabilities_of_marginals(
    exact: SequenceEstimator,
) -> None:
    for x in (x[:4] for x in NEW_X):
        paths = exact.predict_nbest([x], n=10**5)[0]
        assert len(paths) == 3 ** len(x)
        assert sum(p for _, p in paths) == pytest.approx(1.0, abs=1e-5)
        for t, position in enumerate(exact.predict_marginals_single(x)):
            for label, probability in position.items():
                share = sum(p for path, p in paths if path[t] == label)
                assert share == pytest.approx(probability, abs=1e-5)


def test_a_saved_model_is_the_same(fitted: SequenceEstimator, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    loaded = type(fitted).load(tmp_path / "model")
    assert loaded.predict_marginals(NEW_X) == fitted.predict_marginals(NEW_X)
    assert loaded.predict_nbest(NEW_X) == fitted.predict_nbest(NEW_X)
    assert loaded.get_params() == {**fitted.get_params(), "rounds": 6}
    assert pickle.loads(pickle.dumps(fitted)).predict(NEW_X) == fitted.predict(NEW_X)
    assert_refused(lambda: BoostedCRF.load(tmp_path / "model"), "not what BoostedCRF learns")


def test_threads_change_nothing(fitted: SequenceEstimator) -> None:
    other = clone(fitted).set_params(threads=3).fit(X, Y)
    assert other.predict_marginals(NEW_X) == fitted.predict_marginals(NEW_X)


def test_a_part_is_held_out_unless_one_is_given() -> None:
    seen: dict[str, list[float | None]] = {}
    for model in (BoostedMEMM(**FEW), FutureFeatureMEMM(**FEW, bag=2)):
        for share, dev in ((0.2, ()), (0.2, (NEW_X, NEW_Y)), (0.0, ())):
            infos: list[Any] = []
            model.set_params(dev_share=share, callback=infos.append)
            model.fit(X, Y, *dev)
            key = f"{type(model).__name__} {share} {bool(dev)}"
            seen[key] = [info.held_out_log_likelihood for info in infos]
    assert all(value is not None for value in seen["BoostedMEMM 0.2 False"])
    assert all(value is None for value in seen["BoostedMEMM 0.0 False"])
    assert seen["BoostedMEMM 0.2 True"] != seen["BoostedMEMM 0.2 False"]
    future = [seen[f"FutureFeatureMEMM {key}"] for key in ("0.2 False", "0.2 True", "0.0 False")]
    assert len({tuple(map(str, values)) for values in future}) == 3


def test_training_goes_on_where_it_stopped() -> None:
    for model in (BoostedMEMM(**FEW), FutureFeatureMEMM(**FEW, bag=2)):
        model.fit(X, Y)
        before = model.rounds_
        model.set_params(warm_start=True, rounds=12).fit(X, Y)
        assert before <= model.rounds_ <= 12
        assert_refused(lambda m=model: m.set_params(order=2).fit(X, Y), "order=1", "warm_start")
    assert_refused(lambda: model.set_params(order=1, bag=3).fit(X, Y), "bag=2", "warm_start")


@pytest.mark.parametrize("kind", [BoostedMEMM, FutureFeatureMEMM])
def test_conventions_of_scikit_learn(kind: type[SequenceEstimator]) -> None:
    model = kind(leaves=7, order=2)
    assert repr(model) == f"{kind.__name__}(order=2, leaves=7)"
    assert clone(model).get_params() == model.get_params()
    for name in model.get_params():
        assert name in str(kind.__doc__), name
    assert kind.__name__ in spacy_treecrf.__all__
    scores = cross_val_score(kind(**FEW), X, Y, cv=2)
    assert len(scores) == 2
    assert_refused(lambda: kind().predict(X), "not fitted", error=Exception)


# -- bad input


@pytest.mark.parametrize(
    ("name", "value"),
    [("bag", 0), ("bag", -3), ("bag", "all"), ("order", 9), ("max_beta", 0), ("dev_share", 2)],
)
def test_bad_parameters_are_named(name: str, value: Any) -> None:
    assert_refused(lambda: FutureFeatureMEMM(**{name: value}).fit(X, Y), f"setting '{name}'")


def test_bag_zero_names_the_model_that_looks_at_nothing() -> None:
    assert_refused(lambda: FutureFeatureMEMM(bag=0).fit(X, Y), "BoostedMEMM")


@pytest.mark.parametrize("order", [0, 2])
def test_sequences_shorter_than_the_bag_and_of_one_position(order: int) -> None:
    model = FutureFeatureMEMM(**FEW, order=order, bag=50).fit(X, Y)
    for x in (X[0][:1], X[0], [{}]):
        (position, *_) = model.predict_marginals_single(x)
        assert all(math.isfinite(p) for p in position.values())
    alone = FutureFeatureMEMM(**FEW, order=order, bag=2)
    singles = [[item] for items in X for item in items], [[label] for y in Y for label in y]
    assert alone.fit(*singles).describe_detectors() == []  # no position has a future
    assert alone.predict([]) == []


@pytest.mark.parametrize("kind", [BoostedMEMM, FutureFeatureMEMM])
def test_labels_that_never_change(kind: type[SequenceEstimator]) -> None:
    constant = [["A"] * len(y) for y in Y]
    model = kind(**FEW).fit(X, constant)
    assert model.predict(NEW_X) == [["A"] * len(x) for x in NEW_X]
    assert model.predict_marginals_single(NEW_X[0])[0] == {"A": 1.0}


@pytest.mark.parametrize("kind", [BoostedMEMM, FutureFeatureMEMM])
def test_a_class_absent_from_the_held_out_part_is_learned_all_the_same(
    kind: type[SequenceEstimator],
) -> None:
    dev = [(x, y) for x, y in zip(X, Y, strict=True) if "C" not in y]
    model = kind(**{**FEW, "rounds": 30}).fit(X, Y, *map(list, zip(*dev, strict=True)))
    assert "C" in {label for y in model.predict(X) for label in y}
    assert_refused(lambda: kind(**FEW).fit(X, Y, [[{}]], [["other"]]), "y_dev", "training data")


def test_one_sequence_is_enough() -> None:
    for kind in (BoostedMEMM, FutureFeatureMEMM):
        model = kind(**FEW).fit(X[:1], Y[:1])
        assert set(model.predict_single(X[0])) <= set(Y[0])


# -- what it is for

GREEK = ["photo", "tele", "bio", "geo", "litho", "carto", "steno", "demo", "helio", "topo"]


def greek_words() -> tuple[list[Any], list[list[str]]]:
    """-graph is stressed on the first vowel of the word, -graphy on the vowel before it."""
    X, y = [], []
    for start in GREEK:
        for word in (start + "graph", start + "graphy"):
            vowels = [t for t, letter in enumerate(start) if letter in "aeiou"]
            stressed = vowels[-1] if word.endswith("y") else vowels[0]
            X.append([{"letter": letter} for letter in word])
            y.append(["1" if t == stressed else "0" for t in range(len(word))])
    return X, y


def test_photograph_and_photography_differ_before_their_last_letter_only_with_future_features() -> (
    None
):
    """Left to right, letter by letter, as a search does it."""
    X, y = greek_words()
    shared: dict[str, Any] = {"order": 2, "search": "greedy", "min_rows": 1, "min_count": 1}
    window = BoostedMEMM(**shared).fit(X, y, X, y)
    one, other = window.predict(X[:2])
    assert one == other[:-1]
    future = FutureFeatureMEMM(**shared).fit(X, y, X, y)
    assert future.predict(X[:2]) == y[:2]
    assert y[0] != y[1][:-1]
    assert any("a letter y" in words for words in future.describe_detectors())


def bits(problem: str, seed: int) -> dict[str, tuple[list[Any], list[list[str]]]]:
    splits = future_bits_splits(problem, seed)
    return {
        part: ([bit_features(r) for r in sequences], [r.labels["label"] for r in sequences])
        for part, sequences in splits.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["xor", "or", "extra"])
def test_what_a_window_cannot_see_is_found_in_the_bag(problem: str) -> None:
    """Table 5.4: all but the future features stay far below."""
    data = bits(problem, seed=0)
    window = BoostedMEMM(order=0).fit(*data["train"], *data["dev"])
    future = FutureFeatureMEMM(order=0, bag=6).fit(*data["train"], *data["dev"])
    assert window.score(*data["test"]) < {"xor": 0.6, "or": 0.75, "extra": 0.9}[problem]
    assert future.score(*data["test"]) >= 0.999
