"""scripts/reproduce/secoc_limits.py against enumeration of all label sequences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from scripts.reproduce.secoc_limits import best_possible, matrices, posteriors
from spacy_treecrf.corpora import Synthetic

MODEL = Synthetic(n_labels=3, n_observations=4, p_o=0.5, k_o=2, p_l=0.3, k_l=2, seed=5)
LENGTH = 4


def test_rows_are_distributions_and_samples_follow_them() -> None:
    transitions, observations = matrices(MODEL)
    assert transitions.sum(axis=1) == pytest.approx(1.0)
    assert observations.sum(axis=1) == pytest.approx(1.0)
    moves, shown = np.zeros_like(transitions), np.zeros_like(observations)
    for sequence in MODEL.sample(3000, length=10):
        labels = [int(label[1:]) for label in sequence.labels["tag"]]
        for a, b in itertools.pairwise(labels):
            moves[a, b] += 1
        for label, word in zip(labels, sequence.words, strict=True):
            shown[label, int(word[1:])] += 1
    assert moves / moves.sum(axis=1, keepdims=True) == pytest.approx(transitions, abs=0.02)
    assert shown / shown.sum(axis=1, keepdims=True) == pytest.approx(observations, abs=0.02)


@pytest.mark.parametrize("width", [1, 3, 5, None])
def test_posteriors_are_those_of_enumeration(width: int | None) -> None:
    transitions, observations = matrices(MODEL)
    for sequence in MODEL.sample(10, length=LENGTH, stream="test"):
        seen = [int(word[1:]) for word in sequence.words]
        found = posteriors(MODEL, sequence.words, width)
        for t in range(LENGTH):
            half = LENGTH if width is None else width // 2
            inside = range(max(0, t - half), min(LENGTH, t + half + 1))
            expected = np.zeros(3)
            for path in itertools.product(range(3), repeat=LENGTH):
                p = np.prod([transitions[a, b] for a, b in itertools.pairwise(path)])
                expected[path[t]] += p * np.prod([observations[path[u], seen[u]] for u in inside])
            assert found[t] == pytest.approx(expected / expected.sum())


def test_a_wider_window_tells_more() -> None:
    sequences = MODEL.sample(300, stream="test")
    limits = [best_possible(MODEL, sequences, width) for width in (1, 3, None)]
    assert limits == sorted(limits)
    assert limits[0] < limits[-1]
