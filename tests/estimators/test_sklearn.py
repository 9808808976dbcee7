"""BoostedCRF keeps the conventions of scikit-learn, without needing it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

from spacy_treecrf import BoostedCRF
from tests.tiny import SMALL, new, tiny_data

X, Y = tiny_data(20)
NEW_X, _ = tiny_data(8, seed=1)


def test_parameters_are_read_changed_cloned_and_shown() -> None:
    model = BoostedCRF(leaves=7, family="joint")
    assert model.get_params()["leaves"] == 7
    assert model.get_params(deep=False) == model.get_params()
    assert model.set_params(leaves=8, seed=3) is model
    assert (model.leaves, model.seed) == (8, 3)
    assert repr(model) == "BoostedCRF(family='joint', leaves=8, seed=3)"
    assert repr(BoostedCRF()) == "BoostedCRF()"
    copied = clone(model)
    assert copied is not model
    assert copied.get_params() == model.get_params()
    assert eval(repr(model)).get_params() == model.get_params()


def test_clone_of_a_fitted_model_is_not_fitted() -> None:
    model = new().fit(X, Y)
    check_is_fitted(model)
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(model))
    assert not hasattr(clone(model), "classes_")


def test_every_parameter_is_documented() -> None:
    for name in BoostedCRF().get_params():
        assert name in str(BoostedCRF.__doc__), name


@pytest.mark.parametrize(
    "name",
    [
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_mixin_order",
        "check_non_transformer_estimators_n_iter",
        "check_estimators_unfitted",
        "check_requires_y_none",
    ],
)
def test_sklearn_check_that_does_not_look_at_data(name: str) -> None:
    getattr(estimator_checks, name)("BoostedCRF", new())


class TableCRF(BoostedCRF):
    """Rows of a table of numbers as sequences of one item: the data that sklearn's checks use."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TableCRF:  # type: ignore[override]
        labels = [[str(float(label))] for label in np.asarray(y)]
        super().fit(self._items(X), labels, sample_weight=sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        return np.array([float(label) for (label,) in super().predict(self._items(X))])

    def predict_proba(self, X: Any) -> Any:
        marginals = self.predict_marginals(self._items(X))
        return np.array([list(position.values()) for (position,) in marginals])

    def score(self, X: Any, y: Any) -> float:  # type: ignore[override]
        return float(np.mean(self.predict(X) == y))

    @staticmethod
    def _items(X: Any) -> list[list[dict[str, float]]]:
        return [[{f"x{i}": float(v) for i, v in enumerate(row)}] for row in np.asarray(X)]


@pytest.mark.parametrize(
    "name",
    [
        "check_all_zero_sample_weights_error",
        "check_classifiers_one_label",
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_pipeline_consistency",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_sample_weights_list",
        "check_sample_weights_not_an_array",
        "check_sample_weights_not_overwritten",
        "check_sample_weights_shape",
    ],
)
def test_sklearn_check_on_sequences_of_one_item(name: str) -> None:
    getattr(estimator_checks, name)("TableCRF", TableCRF(**SMALL))


def test_grid_search_takes_lists_of_sequences() -> None:
    search = GridSearchCV(new(), {"leaves": [1, 8]}, cv=3, error_score="raise").fit(X, Y)
    assert search.best_params_["leaves"] in (1, 8)
    assert search.predict(NEW_X) == search.best_estimator_.predict(NEW_X)
    assert 0.0 < search.score(X, Y) <= 1.0


def test_cross_validation_takes_lists_of_sequences() -> None:
    scores = cross_val_score(new(), X, Y, cv=4, error_score="raise")
    assert scores.shape == (4,)
    assert np.all((scores >= 0.0) & (scores <= 1.0))


@pytest.mark.parametrize("length", [None, 1])
def test_cross_val_predict_gives_each_sequence_its_labels(length: int | None) -> None:
    """Also where all sequences have one length, which numpy would make a matrix of."""
    x, y = [s[:length] for s in X], [s[:length] for s in Y]
    folds = KFold(4, shuffle=True, random_state=0)
    predicted = cross_val_predict(new(), x, y, cv=folds)
    assert len(predicted) == len(x)
    for train, test in folds.split(x):
        model = new().fit([x[i] for i in train], [y[i] for i in train])
        for i, labels in zip(test, model.predict([x[i] for i in test]), strict=True):
            assert list(predicted[i]) == labels


def test_model_ends_a_pipeline() -> None:
    model = make_pipeline(new()).fit(X, Y)
    assert model.predict(NEW_X) == new().fit(X, Y).predict(NEW_X)


def test_tags_work_without_an_import_of_sklearn_before() -> None:
    code = (
        "import sys; from tests.tiny import tiny_data; from spacy_treecrf import BoostedCRF\n"
        "X, y = tiny_data(3); BoostedCRF(rounds=1).fit(X, y).predict(X)\n"
        "assert 'sklearn' not in sys.modules, 'too early'\n"
        "tags = BoostedCRF().__sklearn_tags__()\n"
        "assert tags.target_tags.required and not tags.input_tags.two_d_array"
    )
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)


def test_labels_are_sequences_so_it_is_no_classifier_for_sklearn() -> None:
    """A classifier's folds are stratified, which needs one label for each sample."""
    assert not is_classifier(new())
