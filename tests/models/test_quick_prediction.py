"""Short inputs by one kernel: the same labels and marginals as the ordinary way, to the bit."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf import BoostedCRF
from spacy_treecrf.engine.encoding.few_items import encode_few
from spacy_treecrf.engine.limits import QUICK_AFTER
from spacy_treecrf.engine.sequences import ABSENT, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.models.quick_prediction import MAX_FIRST_ROWS, MAX_ROWS, quick_predictor
from tests.engine.encoding.naive_encoding import naive_encode
from tests.estimators.test_single_calls import ITEMS, X, Y
from tests.tiny import SMALL

QUICK: dict[str, dict[str, Any]] = {
    "order 0": {"order": 0},
    "separate": {"family": "separate"},
    "joint": {"family": "joint"},
    "joint order 2": {"family": "joint", "order": 2},
    "no linear rounds": {"linear_rounds": 0},
    "linear alone": {"rounds": 2, "linear_rounds": 2},
    "indicator": {"missing": "indicator"},
    "constraints": {"constraints": "observed"},
}
ORDINARY: dict[str, dict[str, Any]] = {
    "surrogate": {"missing": "surrogate"},
    "imputation": {"missing": "imputation"},
    "beam": {"beam": 2, "family": "separate"},
}
# Kernels read flat dicts alone.
FLAT = [
    [{k: v for k, v in item.items() if not isinstance(v, list | dict)} for item in row] for row in X
]


@pytest.fixture(scope="module", params=list(QUICK))
def model(request: pytest.FixtureRequest) -> Any:
    return BoostedCRF(**{**SMALL, **QUICK[request.param]}).fit(X, Y).model_


@settings(max_examples=30, deadline=None)
@given(sequences=st.lists(st.lists(ITEMS, max_size=20), min_size=1, max_size=4))
def test_labels_and_marginals_are_those_of_the_ordinary_way(model: Any, sequences: Any) -> None:
    n_rows = sum(map(len, sequences))
    best, marginals = model.quick.labels(sequences, "viterbi"), model.quick.marginals(sequences)
    if n_rows == 0:
        assert best is None
        assert marginals is None
        return
    data = Sequences.unlabelled(*naive_encode(model.columns, sequences))
    ordinary = Predictor(model, Workers(1), "viterbi")
    assert [len(own) for own in best] == [len(items) for items in sequences]
    assert [label for own in best for label in own] == ordinary.labels(data).tolist()
    found = [row for own in marginals for row in own]
    np.testing.assert_array_equal(found, ordinary.marginals(data))
    by_position = model.quick.labels(sequences, "marginal")
    expected = Predictor(model, Workers(1), "marginal").labels(data).tolist()
    assert [label for own in by_position for label in own] == expected


@settings(max_examples=30, deadline=None)
@given(
    sequences=st.lists(st.lists(ITEMS, max_size=20), min_size=1, max_size=4),
    marginals=st.booleans(),
)
def test_few_rows_have_the_labels_and_marginals_of_the_ordinary_way(
    model: Any, sequences: Any, marginals: bool
) -> None:
    data = Sequences.unlabelled(*naive_encode(model.columns, sequences))
    predictor = Predictor(model, Workers(1), "viterbi")
    quick, ordinary = predictor.apply_quickly(data, marginals), predictor.apply(data)
    assert (type(quick) is type(ordinary)) == (data.n_rows == 0)
    np.testing.assert_array_equal(quick.labels(), ordinary.labels())
    np.testing.assert_array_equal(quick.scores, ordinary.scores)
    np.testing.assert_array_equal(quick.marginals(), ordinary.marginals())
    first = np.flatnonzero(
        np.arange(data.n_rows) + 1 < np.repeat(data.offsets[1:], np.diff(data.offsets))
    )
    spans = np.stack([first, first + 2], axis=1)
    found = quick.span_probabilities(spans, quick.labels())
    np.testing.assert_array_equal(found, ordinary.span_probabilities(spans, ordinary.labels()))
    if data.n_rows:
        allowed = np.ones((data.n_rows, len(model.labels)), np.uint8)
        allowed[:, 0] = 0
        np.testing.assert_array_equal(
            quick.under(allowed).labels(), ordinary.under(allowed).labels()
        )


@settings(max_examples=30, deadline=None)
@given(sequences=st.lists(st.lists(ITEMS, max_size=20), min_size=1, max_size=4))
def test_the_first_rows_have_the_labels_and_marginals_of_the_ordinary_way(
    model: Any, sequences: Any
) -> None:
    data = Sequences.unlabelled(*naive_encode(model.columns, sequences))
    predictor = Predictor(model, Workers(1), "viterbi")
    first, ordinary = predictor.apply_at_first(data), predictor.apply(data)
    is_bigram = model.settings.order == 1 and model.settings.context_order <= 1
    known = is_bigram and 0 < data.n_rows <= MAX_FIRST_ROWS
    assert (type(first) is not type(ordinary)) == known
    np.testing.assert_array_equal(first.labels(), ordinary.labels())
    np.testing.assert_array_equal(first.scores, ordinary.scores)
    np.testing.assert_array_equal(first.marginals(), ordinary.marginals())


@settings(max_examples=30, deadline=None)
@given(sequences=st.lists(st.lists(ITEMS, max_size=20), min_size=1, max_size=4))
def test_few_dicts_are_encoded_as_kernels_do(model: Any, sequences: Any) -> None:
    offsets, feature_ids, numeric = naive_encode(model.columns, sequences)
    found = encode_few(model.columns, sequences)
    n_slots = max(found[1].shape[1], feature_ids.shape[1])
    wide = [
        np.pad(rows, ((0, 0), (0, n_slots - rows.shape[1])), constant_values=ABSENT)
        for rows in (found[1], feature_ids)
    ]
    np.testing.assert_array_equal(found[0], offsets)
    np.testing.assert_array_equal(*wide)
    np.testing.assert_array_equal(found[2], numeric)


@pytest.mark.parametrize("family", ["separate", "joint"])
def test_the_first_calls_need_no_kernel_and_have_its_labels(family: str, monkeypatch: Any) -> None:
    estimator = BoostedCRF(**{**SMALL, "family": family}).fit(X, Y)
    expected = estimator.predict(X)
    model = copy.copy(estimator.model_)
    quick = quick_predictor(model.columns, model.scorer, model.chain)
    assert quick is not None

    def fail(*args: Any) -> int:
        raise AssertionError("a kernel was called")

    fail.signatures = []  # type: ignore[attr-defined]  # as before anything is compiled
    monkeypatch.setattr(quick, "_find_labels", fail)
    for items, own in list(zip(X, expected, strict=True))[:QUICK_AFTER]:
        assert [[model.labels[i] for i in ids] for ids in quick.labels([items], "viterbi")] == [own]
    assert quick.labels([{"no": "list"}], "viterbi") is None
    assert quick._n_first == min(len(X), QUICK_AFTER)


@pytest.mark.parametrize("name", ["surrogate", "beam"])
def test_other_kinds_of_models_need_kernels_for_the_first_rows(name: str) -> None:
    assert BoostedCRF(**{**SMALL, **ORDINARY[name]}).fit(X, Y).model_.first_rows is None


@pytest.mark.parametrize("name", ORDINARY)
def test_other_kinds_of_models_are_left_to_the_ordinary_way(name: str) -> None:
    assert BoostedCRF(**{**SMALL, **ORDINARY[name]}).fit(X, Y).model_.quick is None


def test_what_is_large_or_unusual_is_left_to_the_ordinary_way(model: Any) -> None:
    quick = model.quick
    quick._n_first = QUICK_AFTER  # the first ones may be unusual
    for sequences in (
        [X[0] * MAX_ROWS],
        [[]],
        [],
        [tuple(X[0])],
        (X[0],),
        [[["bare"]]],
        [[{"word": ["a", "b"]}]],
        [[{"word": float("inf")}]],
        [[{1: "a"}]],
        [[3]],
        [7],
        None,
    ):
        assert quick.labels(sequences, "viterbi") is None
        assert quick.marginals(sequences) is None


def test_what_was_prepared_is_neither_copied_nor_pickled(model: Any) -> None:
    expected = model.quick.labels(FLAT[:1], "viterbi")
    assert expected is not None
    for same in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert "quick" not in vars(same)
        assert same.quick.labels(FLAT[:1], "viterbi") == expected


def test_threads_may_share_what_was_prepared(model: Any) -> None:
    expected = [model.quick.marginals([x]) for x in FLAT]
    assert None not in expected
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda x: model.quick.marginals([x]), FLAT)] == expected


class Lazy:
    """A sequence that yields fewer items than its length tells."""

    def __len__(self) -> int:
        return 100

    def __iter__(self) -> Any:
        return iter([dict(FLAT[0][0])])


def test_sequences_that_yield_another_number_than_their_length_take_the_ordinary_way() -> None:
    model = BoostedCRF(**SMALL).fit(X, Y).model_
    assert model.quick is not None
    assert model.quick.labels([Lazy(), Lazy()], "viterbi") is None
