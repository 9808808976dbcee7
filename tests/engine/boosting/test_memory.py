"""Blocks and released scores: less memory, and the same model bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.engine.boosting import boosting, cached_scores, linear
from spacy_treecrf.engine.boosting.boosting import Booster
from spacy_treecrf.engine.boosting.potentials import Potentials
from spacy_treecrf.engine.boosting.residuals import ALL_ROWS
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.chain.constraints import constrain
from spacy_treecrf.engine.sequences import cut_rows
from spacy_treecrf.engine.threads import Workers
from tests.engine.training_data import random_training


def booster(rounds: int, threads: int = 1, family: str = "separate", **changes: object) -> Booster:
    training = random_training(5)
    n_labels = len(training.labels)
    settings = Settings(
        rounds=rounds, linear_rounds=3, min_rows=1, family=family, **changes
    ).resolved(n_labels)
    masks = constrain("none", training.labels, order=1)
    with Workers(threads) as workers:
        found = Booster(training.data, training.columns, n_labels, masks, settings, workers)
        found.boost(rounds)
    return found


def assert_same(one: Potentials, other: Potentials) -> None:
    assert one.linear.categorical.tobytes() == other.linear.categorical.tobytes()
    assert one.linear.numeric.tobytes() == other.linear.numeric.tobytes()
    assert one.forest.value.tobytes() == other.forest.value.tobytes()
    assert one.edges.tobytes() == other.edges.tobytes()


def test_rows_are_cut_without_gap_or_overlap() -> None:
    for n_rows, size in ((0, 4), (1, 4), (8, 4), (9, 4)):
        rows = [row for piece in cut_rows(n_rows, size) for row in range(n_rows)[piece]]
        assert rows == list(range(n_rows))
        assert all(piece.stop - piece.start <= size for piece in cut_rows(n_rows, size))


@pytest.mark.parametrize("threads", [1, 2])
def test_size_of_blocks_changes_no_bit(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    whole = booster(5).potentials
    for module in (linear, cached_scores):
        monkeypatch.setattr(module, "BLOCK_ROWS", 7)
    monkeypatch.setattr(linear, "CHUNK_ROWS", 3)
    blocks = booster(5, threads).potentials
    assert_same(whole, blocks)


@pytest.mark.parametrize("family", ["separate", "joint"])
def test_previous_scores_that_are_not_kept_change_no_bit(
    monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    kept = booster(5, family=family).potentials
    assert booster(2, family=family).train._previous.scores is not None
    monkeypatch.setattr(cached_scores, "MAX_KEPT_BYTES", 0)
    anew = booster(5, family=family).potentials
    assert booster(2, family=family).train._previous.scores is None
    assert_same(kept, anew)


@pytest.mark.parametrize("most", [0, cached_scores.MAX_KEPT_BYTES])
def test_a_linear_round_that_is_taken_back_leaves_the_scores_of_before(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(cached_scores, "MAX_KEPT_BYTES", most)
    trained = booster(2)
    before = trained.train.scores.tobytes()
    with Workers(1) as workers:
        trained.workers = trained.train.workers = workers
        step = trained._propose(trained._current())
        trained.train.apply(step)
        assert trained.train.scores.tobytes() != before
        trained.train.revert(step)
    assert trained.train.scores.tobytes() == before


def test_gradients_of_some_rows_are_those_of_all() -> None:
    residuals = booster(4)._current()
    for label in range(residuals.edge_g.shape[1]):
        for own, part in zip(
            residuals.of_label(label, ALL_ROWS),
            residuals.of_label(label, slice(3, 11)),
            strict=True,
        ):
            assert own[3:11].tobytes() == part.tobytes()
    assert residuals.g.shape == (*residuals.edge_g.shape[1:], *own.shape)


def test_rounds_of_trees_keep_no_linear_scores_and_find_them_again() -> None:
    for rounds in (3, 5):  # the last linear round frees them as well
        trained = booster(rounds)
        assert trained.train._linear.scores is None
        assert trained.train._previous.scores is None
    trees = trained.train.of_trees(trained.potentials.forest)
    np.testing.assert_array_equal(trained.train.linear[:, None] + trees, trained.train.scores)
    assert booster(2).train._linear.scores is not None


def test_large_residuals_are_not_kept_between_steps_and_change_no_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = booster(5)
    assert kept._residuals_now is not None
    monkeypatch.setattr(boosting, "MAX_KEPT_BYTES", 0)
    for last in (5, 3):
        anew = booster(last)
        assert anew._residuals_now is None
    with Workers(1) as workers:
        anew.workers = anew.train.workers = anew.grower.workers = workers
        anew.boost(5)
        assert anew.log_likelihood == kept.log_likelihood
    assert_same(kept.potentials, anew.potentials)


def test_columns_are_transposed_for_the_first_trees_only() -> None:
    assert "input" not in vars(booster(3).grower)
    trained = booster(4)
    np.testing.assert_array_equal(trained.grower.input.columns.T, trained.train.data.feature_ids)


def test_a_direction_by_feature_is_that_by_class_transposed() -> None:
    by_class = np.random.default_rng(0).normal(size=(4, 7)).astype(np.float32)
    found = linear.Direction(list(by_class), []).by_feature()
    np.testing.assert_array_equal(found, by_class.T)
    assert found.flags.c_contiguous
