"""Missing values in feature dicts: what each treatment makes of them, and of whole models."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.boosting import Booster
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.encoding.missing_cells import missing_cells
from spacy_treecrf.engine.encoding.missing_methods import IN_TREES, METHODS
from spacy_treecrf.engine.sequences import ABSENT, MISSING, MISSING_BIN, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.storage import container
from tests.engine.small_models import ONE, as_bytes, empty_model, families, fitted
from tests.engine.training_data import Training

NAN = math.nan
# A word, a flag, a bag and a number, each of them missing somewhere.
ROWS = [
    {"w": "a", "flag": True, "bag": ["x", "y"], "size": 3.0},
    {"w": "b", "flag": True, "bag": ["x"], "size": 1.0},
    {"w": "a", "flag": False, "bag": ["x", "z"], "size": 2.0},
    {"w": None, "flag": None, "bag": None, "size": None},
    {"w": NAN, "flag": True, "bag": [], "size": NAN},
]


def names_of(columns: Columns, feature_ids) -> list[set[str]]:
    return [{columns.feature_names[c] for c in row if c >= 0} for row in feature_ids.tolist()]


def encoded(method):
    columns, offsets, feature_ids, numeric = fit_columns([ROWS], missing=method)
    again = columns.encode([ROWS])
    for fitted_array, array in zip((offsets, feature_ids, numeric), again, strict=True):
        np.testing.assert_array_equal(array, fitted_array)
    stored = Columns.from_state(columns.to_state()).encode([ROWS])
    np.testing.assert_array_equal(stored[1], feature_ids)
    return columns, feature_ids, numeric


def cells(columns, feature_ids, numeric):
    data = Sequences(
        np.array([0, len(feature_ids)]),
        feature_ids,
        numeric,
        np.zeros(len(feature_ids)),
        np.ones(len(feature_ids)),
    )
    return missing_cells(data, columns.map)


@pytest.mark.parametrize("method", IN_TREES)
def test_trees_are_told_of_every_missing_value(method):
    columns, feature_ids, numeric = encoded(method)
    assert columns.column_names == ["w", "bag", "flag"]
    missing = cells(columns, feature_ids, numeric)
    assert missing.tolist() == [
        *[[False] * 4] * 3,
        [True, True, True, True],
        [True, False, False, True],
    ]
    assert names_of(columns, feature_ids)[3:] == [set(), {"flag"}]


def test_absent_values_are_those_that_are_not_mentioned():
    columns, feature_ids, numeric = encoded("absent")
    mentioned = [{k: v for k, v in row.items() if v is not None and v == v} for row in ROWS]
    plain, _, plain_ids, plain_numeric = fit_columns([mentioned])
    assert names_of(columns, feature_ids) == names_of(plain, plain_ids)
    np.testing.assert_array_equal(numeric, plain_numeric)
    assert numeric[:, 0].tolist() == [3, 1, 2, MISSING_BIN, MISSING_BIN]
    assert feature_ids[3:, 0].tolist() == [MISSING, MISSING]


def test_imputation_takes_the_most_common_value_of_the_rows_that_have_one():
    columns, feature_ids, numeric = encoded("imputation")
    # "a" in two of three rows; the flag in three of four; of the bag only "x" in most of four
    assert names_of(columns, feature_ids)[3:] == [{"w=a", "flag", "bag:x"}, {"w=a", "flag"}]
    assert numeric[:, 0].tolist() == [3, 1, 2, 2, 2]
    new = columns.encode([[{"w": None}, {"w": "new"}, {"flag": None, "size": 9.0}]])
    assert names_of(columns, new[1]) == [{"w=a"}, set(), {"flag"}]
    assert new[2][:, 0].tolist() == [2, 2, 3]


def test_imputation_of_a_value_that_most_rows_do_not_have_is_nothing():
    rows = [{"w": "a"}, {}, {}, {"w": None}, {"up": True}, {"up": None}]
    columns, _, feature_ids, _ = fit_columns([rows], missing="imputation")
    assert len(columns.imputed) == 0
    assert names_of(columns, feature_ids)[3:] == [set(), {"up"}, set()]
    # of two values of a key, the one that more rows have, though none has most of them
    rows = [{"w": "a"}, {"w": "b"}, {"w": "b"}, {"w": "c"}, {"w": None}]
    columns, _, feature_ids, _ = fit_columns([rows], missing="imputation")
    assert names_of(columns, feature_ids)[4] == {"w=b"}


def test_an_indicator_is_a_value_of_its_own():
    columns, feature_ids, numeric = encoded("indicator")
    names = names_of(columns, feature_ids)
    assert names[3] == {"w=<missing>", "flag=<missing>", "bag=<missing>"}
    assert names[4] == {"w=<missing>", "flag"}
    assert numeric[:, 0].tolist() == [3, 1, 2, MISSING_BIN, MISSING_BIN]
    assert "size=<missing>" not in columns.feature_names
    column = dict(zip(columns.feature_names, columns.column_of.tolist(), strict=True))
    assert column["flag=<missing>"] == column["flag"]
    rare = fit_columns([ROWS], missing="indicator", min_count=2)[0]
    assert "w=<missing>" in rare.feature_names
    assert "flag=<missing>" not in rare.feature_names


@pytest.mark.parametrize("method", METHODS)
def test_unknown_keys_may_be_missing_too(method):
    columns, _, _ = encoded(method)
    feature_ids = columns.encode([[{"new": None, "other": NAN}]])[1]
    assert names_of(columns, feature_ids) == [set()]
    assert (feature_ids == ABSENT).all()


def random_items(seed, rate, n_sequences=40, longest=6):
    """Words, flags, bags and numbers, a share of them missing; labels depend on them."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sequences):
        items, labels = [], []
        for _ in range(int(rng.integers(1, longest + 1))):
            word, flag, size = int(rng.integers(0, 6)), bool(rng.random() < 0.5), rng.normal()
            item = {
                "word": f"w{word}",
                "like": f"v{word if rng.random() < 0.8 else rng.integers(0, 6)}",
                "flag": flag,
                "bag": [f"b{b}" for b in set(rng.integers(0, 4, 2).tolist())],
                "size": float(size),
            }
            for key in item:
                if rng.random() < rate:
                    item[key] = None
            items.append(item)
            before = labels[-1] if labels else 0
            labels.append((word + flag + (size > 0) + before) % 3)
        X.append(items)
        y.extend(labels)
    return X, np.array(y, np.int32)


def training_of(X, y, method) -> Training:
    columns, offsets, feature_ids, numeric = fit_columns(X, min_count=2, missing=method)
    data = Sequences(offsets, feature_ids, numeric, y, np.ones(len(y), np.float32))
    return Training(columns, data, ["A", "B", "C"])


@families
@pytest.mark.parametrize("step", ["newton", "conjugate"])
def test_with_nothing_missing_all_methods_are_plain_training(family, order, step):
    X, y = random_items(1, 0.0)
    options = {"family": family, "order": order, "step": step, "linear_rounds": 1, "leaves": 9}
    models = {
        method: fitted(training_of(X, y, method), 4, missing=method, **options)
        for method in METHODS
    }
    plain = models["absent"]
    scores = Predictor(plain, ONE).scores(training_of(X, y, "absent").data)
    for method, crf in models.items():
        for name, array in plain.potentials.forest.to_state().items():
            np.testing.assert_array_equal(getattr(crf.potentials.forest, name), array)
        np.testing.assert_array_equal(crf.potentials.edges, plain.potentials.edges)
        found = Predictor(crf, ONE).scores(training_of(X, y, method).data)
        np.testing.assert_array_equal(found, scores)


@families
@pytest.mark.parametrize("method", METHODS)
def test_stored_models_predict_the_same_and_go_on_as_if_never_stored(family, order, method):
    X, y = random_items(2, 0.2)
    training = training_of(X, y, method)
    options = {"family": family, "order": order, "missing": method, "linear_rounds": 1}
    start = empty_model(training, **options)
    half = start.boosted(training.data, 3, ONE)
    loaded = CRF.from_state(container.parse(as_bytes(half)))
    assert loaded.columns.missing == loaded.settings.missing == method
    scores = Predictor(half, ONE).scores(training.data)
    np.testing.assert_array_equal(Predictor(loaded, ONE).scores(training.data), scores)
    at_once = start.boosted(training.data, 6, ONE)
    assert as_bytes(loaded.boosted(training.data, 6, ONE)) == as_bytes(at_once)


@pytest.mark.parametrize("method", IN_TREES)
@pytest.mark.parametrize("step", ["newton", "conjugate"])
def test_threads_do_not_matter(method, step):
    X, y = random_items(3, 0.2, n_sequences=1300)
    training = training_of(X, y, method)
    start = empty_model(training, missing=method, linear_rounds=1, step=step, subsample=0.8)
    models = []
    for threads in (1, 2, 4):
        with Workers(threads) as workers:
            models.append(as_bytes(start.boosted(training.data, 3, workers)))
    assert models[0] == models[1] == models[2]


@families
@pytest.mark.parametrize("method", IN_TREES)
@pytest.mark.parametrize("step", ["newton", "conjugate"])
def test_scores_kept_in_training_are_those_of_the_model(family, order, method, step):
    X, y = random_items(4, 0.3)
    training = training_of(X, y, method)
    options = {"family": family, "order": order, "missing": method, "line_search": True}
    crf = empty_model(training, step=step, linear_rounds=1, leaves=9, **options)
    booster = Booster(training.data, crf.columns, 3, crf.masks, crf.settings, ONE)
    booster.boost(5)
    crf = replace(crf, potentials=booster.potentials)
    np.testing.assert_array_equal(Predictor(crf, ONE).scores(training.data), booster.train.scores)


@pytest.mark.parametrize("method", METHODS)
def test_linear_rounds_see_nothing_in_a_missing_value_unless_it_is_replaced(method):
    X, y = random_items(5, 0.2)
    training = training_of(X, y, method)
    crf = fitted(training, 3, missing=method, linear_rounds=3, family="separate")
    gone = {"word": None, "flag": None, "bag": None, "like": None, "size": None}
    feature_ids, numeric = crf.columns.encode([[gone, {}]])[1:]
    two = Sequences(
        np.array([0, 2]), feature_ids, numeric, np.zeros(2, np.int32), np.ones(2, np.float32)
    )
    scores = Predictor(crf, ONE).scores(two)[:, 0]
    replaced = method in ("imputation", "indicator")
    assert np.any(scores[0] != scores[1]) == replaced
    if not replaced:
        np.testing.assert_array_equal(scores[0], 0.0)


def test_columns_and_settings_must_agree():
    X, y = random_items(6, 0.2)
    training = training_of(X, y, "surrogate")
    with pytest.raises(ValueError, match=r"^treecrf: setting 'missing' is 'indicator', but"):
        empty_model(training, missing="indicator")
    state = container.parse(as_bytes(fitted(training, 2, missing="surrogate", linear_rounds=1)))
    state["settings"]["missing"] = "absent"
    with pytest.raises(ValueError, match=r"^treecrf: .*'settings'"):
        CRF.from_state(state)


def in_detours(name, value):
    return lambda state: state["forest"]["detours"][name].fill(value)


@pytest.mark.parametrize(
    ("method", "name", "change"),
    [
        ("surrogate", "forest.detours.first", in_detours("first", 3)),
        ("surrogate", "forest.detours.kind", in_detours("kind", 3)),
        ("surrogate", "forest.detours.feature", in_detours("feature", 99)),
        ("surrogate", "forest.detours.threshold", in_detours("threshold", -1)),
        ("surrogate", "forest.detours.flip", lambda s: s["forest"]["detours"].pop("flip")),
        ("instance_weighting", "forest.detours.right_share", in_detours("right_share", 1.5)),
        ("instance_weighting", "forest.detours", lambda s: s["forest"].pop("detours")),
        ("absent", "forest.detours", lambda s: s["forest"].update(detours={})),
        ("imputation", "columns.imputed", lambda s: s["columns"]["imputed"].fill(10**6)),
        ("imputation", "columns.imputed", lambda s: s["columns"]["imputed"].fill(0)),
        ("imputation", "columns.imputed_bins", lambda s: s["columns"].pop("imputed_bins")),
        ("absent", "columns.imputed", lambda s: s["columns"].update(imputed=np.zeros(1, np.int32))),
        ("absent", "columns.missing", lambda s: s["columns"].update(missing="often")),
    ],
)
def test_damaged_fields_are_refused_by_name(method, name, change):
    X, y = random_items(7, 0.2)
    crf = fitted(training_of(X, y, method), 3, missing=method, linear_rounds=1, leaves=9)
    state = container.parse(as_bytes(crf))
    if method == "surrogate":
        assert len(state["forest"]["detours"]["kind"])
    change(state)
    with pytest.raises(ValueError, match=rf"^treecrf: .*'{name}'"):
        CRF.from_state(state)


@pytest.mark.parametrize("method", IN_TREES)
def test_a_model_without_trees_can_be_stored(method):
    X, y = random_items(8, 0.2)
    crf = fitted(training_of(X, y, method), 2, missing=method, linear_rounds=2)
    assert as_bytes(CRF.from_state(container.parse(as_bytes(crf)))) == as_bytes(crf)
