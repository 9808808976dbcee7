"""The part that is held out where none is given."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.models.memm.holding_out import hold_out
from tests.engine.training_data import random_training, sequences_of


def test_a_share_of_the_sequences_is_held_out_and_comes_again() -> None:
    data = random_training(1, n_sequences=50).data
    train, held = hold_out(data, 0.2, 3, seed=0)
    assert held is not None
    assert (train.n_sequences, held.n_sequences) == (40, 10)
    again = hold_out(data, 0.2, 3, seed=0)[1]
    np.testing.assert_array_equal(again.feature_ids, held.feature_ids)
    other = hold_out(data, 0.2, 3, seed=1)[1]
    assert not np.array_equal(other.feature_ids, held.feature_ids)


def test_every_label_keeps_a_sequence_to_learn_from() -> None:
    """Label 2 is in one sequence only."""
    offsets = np.arange(0, 22, 2)
    labels = np.array([0, 1] * 9 + [2, 1])
    for seed in range(10):
        train, held = hold_out(sequences_of(offsets, labels), 0.9, 3, seed)
        assert held is not None
        assert set(train.labels) == {0, 1, 2}
        assert held.n_sequences >= 8


@pytest.mark.parametrize(
    ("offsets", "labels", "share"),
    [([0, 3], [0, 1, 0], 0.5), ([0, 1, 2], [0, 1], 0.5), ([0, 1, 2, 3, 4], [0] * 4, 0.0)],
)
def test_nothing_is_held_out_where_nothing_can_be_spared(offsets, labels, share) -> None:
    data = sequences_of(offsets, labels)
    train, held = hold_out(data, share, 2, 0)
    assert train is data
    assert held is None


def test_sequences_without_any_label_are_not_held_out() -> None:
    labels = np.array([-1, 0, -1, 0, -1, 0, 0, 0])
    for seed in range(5):
        _, held = hold_out(sequences_of(np.arange(9), labels), 0.4, 1, seed)
        assert held is not None
        assert (held.labels == 0).all()
