"""Bad and strange data: a defined result, or an error that says what is wrong and where."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import BoostedCRF
from spacy_treecrf.engine.boosting.rounds import RoundInfo
from tests.estimators.small_estimators import ITEM, KINDS, X, Y, assert_works, new
from tests.refusals import assert_refused


@pytest.fixture(scope="module")
def model() -> BoostedCRF:
    return new().fit(X, Y)


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    settings: dict[str, Any] = request.param
    return settings


@pytest.mark.parametrize(
    ("x", "y", "parts"),
    [
        ([], [], ["X holds no sequences"]),
        (X, Y[:-1], ["X holds 15 sequences", "y holds 14"]),
        (X[:-1], Y, ["X holds 14 sequences", "y holds 15"]),
        ([[ITEM], []], [["A"], []], ["X[1] is an empty sequence", "leave it out"]),
        ([[ITEM], [ITEM]], [["A"], ["A", "B"]], ["X[1] has 1 positions", "y[1] has 2 labels"]),
        ([[ITEM], [ITEM]], [["A"], []], ["X[1] has 1 positions", "y[1] has 0 labels"]),
        (None, Y, ["X is a NoneType"]),
        (X, None, ["y", "None"]),
        (7, Y, ["X is a int"]),
        ("text", Y, ["X is a str"]),
        (ITEM, [["A"]], ["X is a dict"]),
        ([ITEM], [["A"]], ["X[0] is a dict", "one entry for each position"]),
        (["text"], [["A"]], ["X[0] is a str"]),
        ([[ITEM], None], [["A"], ["A"]], ["X[1] is a NoneType"]),
        ([[ITEM]], ["A"], ["y[0] is a str"]),
        ([[ITEM]], [7], ["y[0] is a int"]),
        ([[ITEM]], "A", ["y is a str"]),
        ([(item for item in [ITEM])], [["A"]], ["X[0] is a generator", "use a list"]),
    ],
)
def test_training_data_of_a_wrong_shape_are_refused(x: Any, y: Any, parts: list[str]) -> None:
    assert_refused(lambda: new().fit(x, y), *parts)


def test_array_without_dimensions_is_refused() -> None:
    assert_refused(lambda: new().fit(np.array(ITEM), [["A"]]), "X")


@pytest.mark.parametrize(
    ("x", "parts"),
    [
        (None, ["X is of type NoneType"]),
        ("text", ["X is of type str"]),
        (ITEM, ["X is of type dict"]),
        ([ITEM], ["X[0] is of type dict"]),
        ([[ITEM], None], ["X[1] is of type NoneType"]),
        ([[ITEM], [ITEM, None]], ["X[1][1] is of type NoneType"]),
        (np.zeros((2, 3)), ["X[0][0] is of type float64", "a dict of features"]),
        ([X], ["X[0][0] holds", "of type dict"]),
    ],
)
def test_prediction_data_of_a_wrong_shape_are_refused(
    model: BoostedCRF, x: Any, parts: list[str]
) -> None:
    for predict in (model.predict, model.predict_marginals, model.predict_nbest):
        assert_refused(lambda predict=predict: predict(x), *parts, error=TypeError)


class Frame:
    """Iterates over the names of its columns, as a pandas.DataFrame does."""

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[str]:
        return iter(["word", "size"])


def test_data_frame_is_refused(model: BoostedCRF) -> None:
    assert_refused(lambda: new().fit(Frame(), [["A"], ["B"]]), "X[0] is a str")  # type: ignore[arg-type]
    assert_refused(lambda: model.predict(Frame()), "X[0] is of type str", error=TypeError)  # type: ignore[arg-type]


def test_nothing_to_predict_gives_nothing(kind: dict[str, Any]) -> None:
    model = new(**kind).fit(X, Y)
    assert model.predict([]) == model.predict_marginals([]) == model.predict_nbest([]) == []
    assert model.predict([[]]) == model.predict_marginals([[]]) == [[]]
    assert model.predict_single([]) == model.predict_marginals_single([]) == []
    assert model.predict_nbest([[]]) == [[([], 1.0)]]
    assert model.predict([[], X[0], []]) == [[], model.predict_single(X[0]), []]


def test_tuples_arrays_and_generators_are_read_like_lists(model: BoostedCRF) -> None:
    objects = np.empty(len(X), object)
    objects[:] = [np.array(x, dtype=object) for x in X]
    labels = np.empty(len(Y), object)
    labels[:] = [np.array(y) for y in Y]
    for x, y in [
        (tuple(map(tuple, X)), tuple(map(tuple, Y))),
        (iter(X), (labels for labels in Y)),
        (objects, labels),
    ]:
        same = new().fit(x, y)
        assert same.classes_ == ["A", "B", "C"]
        assert [type(label) for label in same.classes_] == [str] * 3
        assert same.predict_marginals(X) == model.predict_marginals(X)
    assert model.predict(objects) == model.predict(X)
    assert model.predict((item for item in x) for x in X) == model.predict(X)
    assert model.score(objects, labels) == model.score(X, Y)


def test_matrix_of_objects_is_a_list_of_sequences_of_one_length() -> None:
    x, y = np.array([[{"a": "x"}, {"a": "y"}]] * 4), np.array([["A", "B"]] * 4)
    model = new().fit(x, y)
    assert model.predict(x) == y.tolist()
    assert model.score(x, y) == 1.0


def test_one_position_is_enough(kind: dict[str, Any]) -> None:
    model = new(**kind).fit([[ITEM]], [["A"]])
    assert model.predict([[ITEM], X[0]]) == [["A"], ["A"] * len(X[0])]
    model = new(**kind).fit([[ITEM], [{"word": "w2"}]], [["A"], ["B"]])
    assert_works(model, X[0])


def test_one_label_is_certain(kind: dict[str, Any]) -> None:
    model = new(**kind).fit(X, [["A"] * len(y) for y in Y])
    assert model.classes_ == ["A"]
    assert model.predict_marginals_single([ITEM, {}]) == [{"A": 1.0}] * 2
    assert model.predict_nbest([[ITEM, {}]], n=5) == [[(["A", "A"], 1.0)]]


@pytest.mark.parametrize("kind", [{}, {"order": 0}, {"family": "joint", "rounds": 2}], ids=str)
def test_three_hundred_labels(kind: dict[str, Any]) -> None:
    x = [[{"a": f"{i}"}, {"a": f"{i + 1}"}] for i in range(0, 300, 2)]
    y = [[f"l{i}", f"l{i + 1}"] for i in range(0, 300, 2)]
    model = new(**kind).fit(x, y)
    assert len(model.classes_) == 300
    assert model.score(x, y) == 1.0
    assert_works(model, x[0])


def test_more_contexts_than_memory_are_refused() -> None:
    """In a process of its own with 6 GB: it would take 65 TB."""
    code = """
from tests.hardening.memory_limit import most_memory
most_memory(6 * 2**30)
from spacy_treecrf import BoostedCRF
x, y = [[{"a": str(i)}] for i in range(300)], [[f"l{i}"] for i in range(300)]
try:
    BoostedCRF(family="joint", order=4, rounds=1).fit(x, y)
except ValueError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr[-2000:]
    assert re.match(r"treecrf: .*\b300 labels\b.*order", run.stdout)


@pytest.mark.parametrize("label", [3, 2.5, math.nan, True, b"A", ["A"], np.int64(3), np.nan])
def test_label_that_is_no_string_beside_strings_is_refused(label: Any) -> None:
    y = [["A", "B"], ["A", label]]
    x = [[ITEM, ITEM]] * 2
    assert_refused(lambda: new().fit(x, y), "y[1][1]", repr(label), "labels are strings")
    if not isinstance(label, list | int | np.integer) or label is True:
        y = [[label, label], [label, label]]
        assert_refused(lambda: new().fit(x, y), "y[0][0]", repr(label))


@pytest.mark.parametrize("label", [3, math.nan, ["A"]])
def test_held_out_label_that_is_no_string_is_refused(label: Any) -> None:
    work = lambda: new().fit(X, Y, [[ITEM, ITEM]], [["A", label]])  # noqa: E731
    assert_refused(work, "y_dev[0][1]", repr(label))


def test_labels_without_any_annotation_are_refused() -> None:
    assert_refused(lambda: new().fit([[ITEM]], [[None]]), "y holds no label")


def test_numpy_strings_are_labels() -> None:
    model = new().fit(X, [np.array(y) for y in Y])
    assert model.classes_ == ["A", "B", "C"]
    assert {type(label) for y in model.predict(X) for label in y} == {str}
    assert model.score(X, [np.array(y) for y in Y]) == model.score(X, Y)


def test_label_unseen_in_training_is_wrong_at_evaluation(model: BoostedCRF) -> None:
    predicted = model.predict(X)
    assert model.score(X, [["Z"] * len(y) for y in Y]) == 0.0
    unseen = [["Z", *y[1:]] for y in predicted]
    positions = sum(map(len, X))
    assert model.score(X, unseen) == pytest.approx(1 - len(X) / positions)


def test_label_unseen_in_training_does_not_count_in_held_out_data() -> None:
    seen: list[RoundInfo] = []
    other: list[RoundInfo] = []
    new(callback=seen.append).fit(X, Y, X, [["Z", *y[1:]] for y in Y])
    new(callback=other.append).fit(X, Y, X, [[None, *y[1:]] for y in Y])
    assert [info.held_out_accuracy for info in seen] == [info.held_out_accuracy for info in other]
    assert all(math.isfinite(info.held_out_log_likelihood or 0.0) for info in seen)


@pytest.mark.parametrize("label", ["Z", None])
def test_held_out_data_without_any_known_label_are_refused(label: str | None) -> None:
    """Nothing could be measured on them, and the best round would be the empty model."""
    y_dev = [[label] * len(y) for y in Y]
    assert_refused(lambda: new().fit(X, Y, X, y_dev), "y_dev")


def test_label_unseen_in_training_is_refused_when_training_goes_on() -> None:
    model = new(warm_start=True).fit(X, Y).set_params(rounds=5)
    y = [*Y[:3], ["Z", *Y[3][1:]], *Y[4:]]
    assert_refused(lambda: model.fit(X, y), "y[3][0] is 'Z'", "warm_start=False")


def test_labels_that_the_constraints_forbid_are_refused_or_leave_the_likelihood_finite() -> None:
    seen: list[RoundInfo] = []
    x, y = [[ITEM, ITEM]] * 4, [["B-X", "I-X"], ["B-X", "O"], ["O", "I-X"], ["O", "O"]]
    try:
        new(constraints="bio", callback=seen.append).fit(x, y)
    except ValueError as error:
        message = str(error)
        assert re.match(r"treecrf: y\[2\]", message)
    else:
        assert all(math.isfinite(info.log_likelihood) for info in seen)


def test_labels_that_no_scheme_knows_are_refused() -> None:
    assert_refused(lambda: new(constraints="bio").fit(X, Y), "'A'", "scheme 'bio'")
    assert_refused(lambda: new(constraints="biluo", order=0).fit(X, Y), "order 1")


def test_sequences_longer_than_any_observed_transition_are_predicted() -> None:
    """Training showed only sequences of one position, so that no transition is forbidden."""
    model = new(constraints="observed").fit([[ITEM], [{"word": "w2"}]], [["A"], ["B"]])
    assert model.predict([[ITEM, ITEM]]) == [["A", "A"]]
    assert len(model.predict_nbest([[ITEM, ITEM]])[0]) == 4
    for position in model.predict_marginals([[ITEM, ITEM]])[0]:
        assert sum(position.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("x", "y", "parts"),
    [
        (X, None, ["both X_dev and y_dev"]),
        (None, Y, ["both X_dev and y_dev"]),
        ([], [], ["X_dev holds no sequences"]),
        ([[]], [[]], ["X_dev[0] is an empty sequence"]),
        (X, Y[:-1], ["X_dev holds 15", "y_dev holds 14"]),
        ([[ITEM]], [["A", "B"]], ["X_dev[0] has 1 positions", "y_dev[0] has 2 labels"]),
        ([[{"size": math.inf}]], [["A"]], ["X_dev[0][0]['size'] is inf"]),
    ],
)
def test_bad_held_out_data_are_refused(x: Any, y: Any, parts: list[str]) -> None:
    assert_refused(lambda: new().fit(X, Y, x, y), *parts)


@pytest.mark.parametrize(
    "weights",
    [
        [1.0],
        [1.0] * 16,
        [-1.0] * 15,
        [math.nan] * 15,
        [math.inf] * 15,
        1.0,
        [[1.0]] * 15,
        [[1.0], [1.0, 2.0]],
        "abcd",
        "a" * 15,
        ["a"] * 15,
        [None] * 15,
        [10**400] * 15,
        [1j] * 15,
        [object()] * 15,
        {"a": 1},
    ],
    ids=lambda weights: str(weights)[:20].partition("<")[0],
)
def test_bad_weights_are_refused(model: BoostedCRF, weights: Any) -> None:
    assert_refused(lambda: new().fit(X, Y, sample_weight=weights), "sample_weight", "15 sequences")
    assert_refused(
        lambda: model.score(X, Y, sample_weight=weights), "sample_weight", "15 sequences"
    )


def test_weights_that_are_all_zero_are_refused() -> None:
    assert_refused(lambda: new().fit(X, Y, sample_weight=[0.0] * 15), "sample_weight")


@pytest.mark.parametrize("weight", [1e-30, 1e30])
def test_extreme_weights_train(kind: dict[str, Any], weight: float) -> None:
    model = new(**kind).fit(X, Y, sample_weight=[weight] * len(X))
    assert_works(model, X[0])


@pytest.mark.parametrize("value", [math.inf, -math.inf, np.float32(np.inf)])
def test_infinite_number_is_refused(model: BoostedCRF, value: float) -> None:
    x = [[ITEM], [ITEM, {"size": value}]]
    place = "X[1][1]['size'] is"
    assert_refused(lambda: new().fit(x, [["A"], ["A", "B"]]), place, "finite number")
    assert_refused(lambda: model.predict(x), place)
    nested = [[{"nested": {"deep": value}}]]
    assert_refused(lambda: new().fit(nested, [["A"]]), "X[0][0]['nested:deep'] is")


def test_nan_is_a_missing_number() -> None:
    x = [[{"size": size}] for size in (1.0, 2.0, math.nan, np.float32(np.nan), 8.0, 9.0)] * 3
    model = new(order=0).fit(x, [["A"], ["A"], ["M"], ["M"], ["B"], ["B"]] * 3)
    assert model.predict([[{"size": math.nan}], [{}], [{"size": None}]]) == [["M"]] * 3
    assert model.predict([[{"size": 1.0}], [{"size": 8.5}]]) == [["A"], ["B"]]


def test_numbers_that_are_all_missing_or_equal_are_no_feature(kind: dict[str, Any]) -> None:
    for value in (math.nan, 2.5, None):
        model = new(**kind).fit([[{"a": value}, {"a": value}]] * 3, [["A", "B"]] * 3)
        assert_works(model, [{"a": value}, {"a": 3.0}, {"a": -1e300}, {}])


def test_huge_numbers_are_binned_like_others(kind: dict[str, Any]) -> None:
    values = [1e308, -1e308, 0.0, 5e-324, 1.7e308, -3.0]
    x, y = [[{"a": v} for v in values]] * 4, [["A", "B", "C", "C", "A", "B"]] * 4
    model = new(**kind, rounds=6).fit(x, y)
    assert_works(model, x[0])
    assert model.score(x, y) == 1.0
    assert_refused(lambda: new().fit([[{"a": 10**400}]], [["A"]]), "X[0][0]['a']", "too large")


def test_items_without_an_active_feature_get_a_label(kind: dict[str, Any]) -> None:
    nothing: list[Any] = [{}, [], {"flag": False}, {"word": None}, {"bag": []}, {"nested": {}}]
    assert_works(new(**kind).fit(X, Y), [*nothing, {"unseen": "value"}, {"word": "unseen"}])
    model = new(**kind).fit([nothing] * 3, [["A", "B", "A", "B", "A", "B"]] * 3)
    assert_works(model, nothing)
    assert_works(model, X[0])


def test_features_all_too_rare_leave_a_model_of_label_frequencies() -> None:
    model = new(min_count=10**6, rounds=8).fit([[{"a": f"{i}"}] for i in range(10)], [["A"]] * 10)
    assert model.predict([[{"a": "3"}]]) == [["A"]]


@pytest.mark.parametrize("value", [b"bytes", object(), 1j, np.zeros(2), [1], [None], {"a": b"x"}])
def test_value_of_a_wrong_type_is_refused(value: Any) -> None:
    x = [[ITEM], [ITEM, {"key": value}]]
    assert_refused(
        lambda: new().fit(x, [["A"], ["A", "B"]]), "X[1][1]['key", "type", error=TypeError
    )


@pytest.mark.parametrize("key", [1, None, ("a",), b"a"])
def test_key_of_a_wrong_type_is_refused(key: Any) -> None:
    x = [[ITEM], [ITEM, {key: "value"}]]
    assert_refused(lambda: new().fit(x, [["A"], ["A", "B"]]), "X[1][1]", repr(key), error=TypeError)


def test_dicts_nested_deeper_than_the_stack_are_refused() -> None:
    item: dict[str, Any] = {"a": "b"}
    for _ in range(100_000):
        item = {"a": item}
    assert_refused(lambda: new().fit([[ITEM, item]], [["A", "B"]]), "X[0][1]", "nested")


def test_any_text_is_a_feature_and_a_label(tmp_path: Path) -> None:
    texts = [
        "",
        " ",
        "\0",
        "é",
        "e\u0301",
        "😀",
        "中文",
        "a=b",
        "a:b",
        "\n\r\t",
        "\u202e",
        "x" * 10**6,
    ]
    x = [[{text: text, "same": text} for text in texts]] * 3
    model = new(order=0, rounds=8, leaves=64).fit(x, [texts] * 3)
    assert model.classes_ == sorted(texts)
    assert model.predict(x) == [texts] * 3
    model.save(tmp_path / "model")
    assert BoostedCRF.load(tmp_path / "model").predict(x) == [texts] * 3


def test_half_a_surrogate_pair_cannot_be_saved(tmp_path: Path) -> None:
    model = new().fit([[{"a": "\ud800"}]] * 2, [["A"]] * 2)
    assert model.predict([[{"a": "\ud800"}]]) == [["A"]]
    assert_refused(lambda: model.save(tmp_path / "model"), "surrogate")
