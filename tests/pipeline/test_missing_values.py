"""Missing values in the pipe: unset extension attributes, and positions outside of the sequence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Token
from spacy.training import Example

from spacy_treecrf.engine.encoding.missing_cells import missing_cells
from spacy_treecrf.engine.sequences import ABSENT, MISSING, MISSING_BIN, Sequences
from spacy_treecrf.features.characters import create_character_features
from spacy_treecrf.features.token_features import create_token_features
from tests.features.naive import decoded, make_docs, numbers
from tests.pipeline.tiny_pipes import new_nlp, pipe_of, train
from tests.refusals import assert_refused

NAME = "treecrf_gap"
METHODS = ("absent", "instance_weighting", "surrogate", "imputation", "indicator")


@pytest.fixture(autouse=True)
def extension() -> Iterator[None]:
    Token.set_extension(NAME, default=None)
    Token.set_extension("treecrf_kind", default=None)
    yield
    Token.remove_extension(NAME)
    Token.remove_extension("treecrf_kind")


def with_values(values: list[Any]) -> Doc:
    doc = make_docs(["w"] * len(values))[0]
    for token, value in zip(doc, values, strict=True):
        if value is not None:
            token._.set(NAME, value)
    return doc


def encode(values: list[Any], method: str, **settings: Any) -> tuple[Any, Any, Any]:
    features = create_token_features({}, [], [], extensions={NAME: [0, 1]}, **settings)
    return numbers(features, [with_values(values)], missing=method)


def cells(columns: Any, feature_ids: Any, numeric: Any) -> Any:
    n = len(feature_ids)
    return missing_cells(
        Sequences(np.array([0, n]), feature_ids, numeric, np.zeros(n), np.ones(n)), columns.map
    )


@pytest.mark.parametrize("method", ["instance_weighting", "surrogate"])
def test_unset_extensions_are_missing_and_false_is_not(method: str) -> None:
    columns, feature_ids, numeric = encode(["x", None, False, "y", float("nan")], method)
    assert columns.slot_keys == [f"_.{NAME}[0]", f"_.{NAME}[1]"]
    # the other two columns are numeric, and have no number anywhere
    missing = cells(columns, feature_ids, numeric)[:, :2]
    assert missing[:, 0].tolist() == [False, True, False, False, True]
    assert missing[:, 1].tolist() == [True, False, False, True, False]
    assert feature_ids[2, 0] == ABSENT
    assert columns.feature_names[feature_ids[4, 1]] == f"_.{NAME}[1]=<edge>"


def test_absent_keeps_what_unset_extensions_were() -> None:
    columns, feature_ids, _ = encode(["x", None, False, "y"], "absent")
    assert MISSING not in feature_ids
    here = [{name for name in names if "[0]" in name} for names in decoded(feature_ids, columns)]
    assert here == [{f"_.{NAME}[0]=x"}, set(), set(), {f"_.{NAME}[0]=y"}]


def test_imputation_and_indicator_replace_them() -> None:
    columns, feature_ids, _ = encode(["x", None, "y", "x"], "imputation")
    assert [columns.feature_names[c] for c in feature_ids[:, 0]] == [
        f"_.{NAME}[0]={value}" for value in "xxyx"
    ]
    columns, feature_ids, _ = encode(["x", None, "y", "x"], "indicator")
    assert columns.feature_names[feature_ids[1, 0]] == f"_.{NAME}[0]=<missing>"
    assert columns.feature_names[feature_ids[0, 1]] == f"_.{NAME}[1]=<missing>"
    _, _, numeric = encode([3.0, None, 1.0, 2.0], "imputation")
    assert numeric[:, 0].tolist() == [3, 2, 1, 2]
    assert numeric[:, 1].tolist() == [2, 1, 2, 2]  # outside, too, there is no number
    _, _, numeric = encode([3.0, None, 1.0, 2.0], "indicator")
    assert numeric[:, 0].tolist() == [3, MISSING_BIN, 1, 2]


def test_imputation_of_a_value_that_most_tokens_lack_is_nothing() -> None:
    columns, feature_ids, _ = encode(["x", False, False, None], "imputation")
    assert feature_ids[:, 0].tolist() == [
        columns.feature_names.index(f"_.{NAME}[0]=x"),
        *[ABSENT] * 3,
    ]


def test_a_doc_without_any_value_has_missing_ones() -> None:
    features = create_token_features({}, [], [], extensions={NAME: [0]})
    columns, _, _ = numbers(features, [with_values(["x", "y", None])], missing="surrogate")
    feature_ids, _ = features.encode([with_values([None, None])], np.array([0, 2]), columns)
    assert feature_ids[:, 0].tolist() == [MISSING, MISSING]


@pytest.mark.parametrize("method", METHODS)
def test_positions_outside_may_be_missing(method: str) -> None:
    features = create_character_features([-1, 0], [0], [], outside_is_missing=True)
    columns, feature_ids, _ = numbers(features, make_docs("a b b"), missing=method)
    assert not any("<edge>" in name for name in columns.feature_names)
    feature = feature_ids[0, columns.slot_keys.index("char[-1]")]
    if method in ("instance_weighting", "surrogate"):
        assert feature == MISSING
    elif method == "absent":
        assert feature == ABSENT
    else:
        value = {"imputation": "a", "indicator": "<missing>"}[method]
        assert columns.feature_names[feature] == f"char[-1]={value}"


def test_bad_values_of_outside_is_missing_are_refused() -> None:
    for make in (create_token_features, create_character_features):
        assert_refused(lambda make=make: make(outside_is_missing="yes"), "'outside_is_missing'")


def examples_of(nlp: Language, rate: float, n: int = 40) -> list[Example]:
    """A token's label is its extension, or that of the token before where it has none."""
    rng = np.random.default_rng(0)
    examples = []
    for _ in range(n):
        doc = Doc(nlp.vocab, words=["w"] * 6)
        reference = doc.copy()
        label = "A"
        for token, gold in zip(doc, reference, strict=True):
            label = "AB"[int(rng.integers(2))] if rng.random() < 0.5 else label
            gold._.treecrf_kind = label
            if rng.random() >= rate:
                token._.set(NAME, label.lower())
        examples.append(Example(doc, reference))
    return examples


@pytest.mark.parametrize("method", METHODS)
def test_a_pipe_learns_from_what_is_there_and_is_the_same_after_loading(
    method: str, tmp_path: Any
) -> None:
    nlp = new_nlp(
        "ext:treecrf_kind",
        model={"missing": method, "leaves": 4},
        features={"attrs": {}, "suffixes": [], "extensions": {NAME: [-1, 0]}},
    )
    examples = examples_of(nlp, 0.2)
    nlp.initialize(lambda: examples)
    train(nlp, examples, 6)
    assert pipe_of(nlp).model.shims[0].trained.settings.missing == method
    assert pipe_of(nlp).model.shims[0].trained.columns.missing == method
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    right = total = 0
    for example in examples:
        found = []
        for some in (nlp, loaded):
            doc = example.predicted.copy()
            for token, given in zip(doc, example.predicted, strict=True):
                token._.set(NAME, given._.get(NAME))
            found.append([token._.treecrf_kind for token in some.get_pipe("treecrf")(doc)])
        assert found[0] == found[1]
        gold = [token._.treecrf_kind for token in example.reference]
        right += sum(a == b for a, b in zip(found[0], gold, strict=True))
        total += len(gold)
    assert right / total > 0.85
