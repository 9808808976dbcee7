"""Extension attributes and user functions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from spacy.tokens import Doc, Token

from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.sequences import MISSING_BIN
from spacy_treecrf.features.token_features import create_token_features
from tests.features.naive import decoded, make_docs, numbers, offsets_of
from tests.refusals import assert_refused


@pytest.fixture
def extension() -> Iterator[str]:
    Token.set_extension("treecrf_test", default=None)
    yield "treecrf_test"
    Token.remove_extension("treecrf_test")


def with_values(extension: str, values: list[Any]) -> Doc:
    doc = make_docs(["w"] * len(values))[0]
    for token, value in zip(doc, values, strict=True):
        token._.set(extension, value)
    return doc


def test_values_of_every_kind(extension: str) -> None:
    features = create_token_features({}, [], [], extensions={extension: [-1, 0]})
    values = ["x", True, False, None, 2, np.float32(0.5), [1.0, 2], np.array([3.0]), math.nan]
    doc = with_values(extension, values)
    columns, feature_ids, numeric = numbers(features, [doc])
    here = [{n for n in names if "[0]" in n} for names in decoded(feature_ids, columns)]
    assert here[:3] == [{f"_.{extension}[0]=x"}, {f"_.{extension}[0]=True"}, set()]
    assert not any(here[3:])
    by_name = dict(zip(columns.numeric_names, numeric.T.tolist(), strict=True))
    assert by_name[f"_.{extension}[0]"] == [0, 0, 0, 0, 2, 1, 0, 0, 0]
    assert by_name[f"_.{extension}[-1]"] == [0, 0, 0, 0, 0, 2, 1, 0, 0]
    assert by_name[f"_.{extension}.0[0]"] == [0, 0, 0, 0, 0, 0, 1, 2, 0]
    assert by_name[f"_.{extension}.1[0]"] == [0, 0, 0, 0, 0, 0, 1, 0, 0]
    loaded = create_token_features({}, [], [], extensions={extension: [-1, 0]})
    again = loaded.encode([doc], offsets_of([doc]), Columns.from_state(columns.to_state()))
    np.testing.assert_array_equal(again[0], feature_ids)
    np.testing.assert_array_equal(again[1], numeric)


def test_values_that_training_did_not_see(extension: str) -> None:
    features = create_token_features({}, [], [], extensions={extension: [0]})
    columns, _, _ = numbers(features, [with_values(extension, [1.0, 2.0, 3.0])])
    doc = with_values(extension, ["text", -5, 99, [1.0]])
    feature_ids, numeric = features.encode([doc], np.array([0, 4]), columns)
    assert feature_ids.shape == (4, 0)
    assert numeric[:, 0].tolist() == [MISSING_BIN, 1, 3, MISSING_BIN]


def test_missing_extension_is_refused_with_the_remedy() -> None:
    features = create_token_features(extensions={"no_such": [0]})
    assert_refused(
        lambda: features.check(make_docs("a")[0].vocab), "token._.no_such", "set_extension"
    )
    assert_refused(lambda: numbers(features, make_docs("a")), "token._.no_such")


@pytest.mark.parametrize("value", [math.inf, -math.inf, object(), {"a": 1}, ["a"], [True]])
def test_bad_values_are_refused(extension: str, value: Any) -> None:
    features = create_token_features(extensions={extension: [0]})
    assert_refused(lambda: numbers(features, [with_values(extension, [value])]), "use a str")


def describe(doc: Doc) -> list[dict[str, Any]]:
    return [{"len": float(len(t)), "a=b": t.text[0], "long": len(t) > 2, "no": None} for t in doc]


def test_function_gives_columns() -> None:
    features = create_token_features({}, [], [], function=describe, function_window=[0, 1])
    docs = make_docs("one a", "bb")
    columns, feature_ids, numeric = numbers(features, docs)
    assert columns.numeric_names == ["function.len[0]", "function.len[1]"]
    assert numeric.tolist() == [[3, 1], [1, 0], [2, 0]]
    first = decoded(feature_ids, columns)[0]
    assert {"function.a%3Db[0]=o", "function.long[0]=True", "function.a%3Db[1]=a"} <= first
    Columns.from_state(columns.to_state())


@pytest.mark.parametrize("result", [[], None, [1, 2], [{}, {}, {}], "ab", 5])
def test_wrong_results_of_a_function_are_refused(result: Any) -> None:
    features = create_token_features(function=lambda doc: result)
    assert_refused(lambda: numbers(features, make_docs("a b")), "'function'", "2 tokens")


def test_names_of_values_are_texts() -> None:
    features = create_token_features(function=lambda doc: [{1: "x"} for _ in doc])
    assert_refused(lambda: numbers(features, make_docs("a b")), "name 1")


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), 10**5000, [1, 10**400], [10**5000]], ids=range(5)
)
def test_numbers_beyond_doubles_are_refused(extension: str, value: Any) -> None:
    features = create_token_features({}, [], [], extensions={extension: [0]})
    doc = with_values(extension, [1.0, value])
    assert_refused(lambda: numbers(features, [doc]), "as a feature; use a str, bool, finite number")
