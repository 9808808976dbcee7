"""What `inspect` says is what the model does."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.engine.trees.splitting import LEAF
from spacy_treecrf.estimators import BoostedCRF
from spacy_treecrf.evaluation.inspection import START, inspect_crf
from tests.tiny import new, tiny_data


@pytest.fixture(scope="module")
def joint() -> BoostedCRF:
    """Trees of a joint model test words, numbers and previous labels."""
    X, y = tiny_data(60)
    return new(family="joint", rounds=6, threads=1, constraints="observed").fit(X, y)


def test_sizes_are_counted(joint: BoostedCRF) -> None:
    found = inspect_crf(joint.model_)
    forest = joint.model_.potentials.forest
    assert found.rounds == 6
    assert found.trees == forest.n_trees > 0
    assert found.leaves == (forest.kind == LEAF).sum()
    assert found.labels == ["A", "B", "C"]
    assert found.numeric_columns == 2
    assert found.settings["family"] == "joint"


def test_gains_of_features_and_of_columns_sum_up_to_all_gains(joint: BoostedCRF) -> None:
    found = inspect_crf(joint.model_, top=10**6)
    forest = joint.model_.potentials.forest
    total = float(forest.gain[forest.kind != LEAF].sum(dtype=float))
    for uses in (found.top_features, found.top_columns):
        assert sum(use.gain for use in uses) == pytest.approx(total)
        assert sum(use.splits for use in uses) == (forest.kind != LEAF).sum()
        assert [use.gain for use in uses] == sorted((use.gain for use in uses), reverse=True)
    names = {use.name for use in found.top_columns}
    assert "label[-1]" in names
    assert "word" in names


def test_transitions_are_in_order_and_forbidden_ones_are_counted_only(joint: BoostedCRF) -> None:
    found = inspect_crf(joint.model_, top=10**6)
    shown = [*found.likely_transitions, *found.unlikely_transitions]
    assert all(own.weight > 0 for own in found.likely_transitions)
    assert all(own.weight < 0 for own in found.unlikely_transitions)
    weights = [own.weight for own in found.likely_transitions]
    assert weights == sorted(weights, reverse=True)
    assert START in {own.previous for own in shown} or not shown
    start, trans, _ = joint.model_.masks
    assert found.forbidden_transitions == np.isneginf(trans).sum() + np.isneginf(start).sum()


def test_paths_end_in_the_leaves_of_largest_values(joint: BoostedCRF) -> None:
    found = inspect_crf(joint.model_, top=3)
    forest = joint.model_.potentials.forest
    leaves = forest.value[forest.kind == LEAF]
    assert abs(found.paths[0].value) == pytest.approx(np.abs(leaves).max())
    assert all(path.tests for path in found.paths)
    assert len({(path.label, path.round) for path in found.paths}) == 3  # one of a tree


def test_a_path_names_the_tests_from_the_root_to_its_leaf() -> None:
    """One feature decides: the tree's root tests it, and the path says which side is which."""
    X = [[{"word": word} for word in "xyxy"] for _ in range(10)]
    y = [["X" if item["word"] == "x" else "Y" for item in items] for items in X]
    model = new(rounds=1, linear_rounds=0, order=0, leaves=2, threads=1).fit(X, y)
    for path in inspect_crf(model.model_).paths:
        (test,) = path.tests
        name = test.removeprefix("not ")
        holds = name == f"word={path.label.lower()}"
        assert (path.value > 0) == (holds != test.startswith("not "))


def test_numeric_tests_show_the_threshold() -> None:
    X = [[{"n": float(i)} for i in (1, 2, 8, 9)] for _ in range(10)]
    y = [["low", "low", "high", "high"]] * 10
    model = new(rounds=1, linear_rounds=0, order=0, leaves=2, threads=1).fit(X, y)
    tests = {test for path in inspect_crf(model.model_).paths for test in path.tests}
    assert tests <= {"n > 5", "n <= 5 or missing"}
    assert tests
