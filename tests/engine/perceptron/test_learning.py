"""The perceptron's kernel against a twin that keeps all weights it ever had."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest

from spacy_treecrf.engine.chain.chain import StepPotentials
from spacy_treecrf.engine.perceptron.learning import (
    HEAD_START,
    draw_order,
    perceptron_pass,
    training_rows,
    zero_weights,
)
from tests.engine.training_data import random_training


def naive(training, order, orders, weighted):
    """Averaged weights of features and bigrams, by enumeration and plain sums."""
    data, columns = training.data, training.columns
    n_labels = len(training.labels)
    now: dict = defaultdict(float)
    total: dict = defaultdict(float)
    n_sums = 1  # the weights before the first step, all zero

    def parts(s, labels):
        found: dict = defaultdict(float)
        for t, y in enumerate(labels):
            row = data.offsets[s] + t
            for code in data.feature_ids[row]:
                if code >= 0:
                    found["f", int(code), y] += 1.0
            for d, bin_ in enumerate(data.numeric[row]):
                found["n", d, y] += columns.bin_values[d, bin_]
            if order:
                found["e", labels[t - 1] if t else n_labels, y] += 1.0
        return found

    def score(s, labels):
        return sum(now[key] * value for key, value in parts(s, labels).items())

    def best(s, possible, gold):
        def rank(path):
            wrong = sum(z >= 0 and y != z for y, z in zip(path, gold, strict=True))
            # Viterbi prefers the lowest last label among equals, and so on back
            return round(score(s, path) + HEAD_START * wrong, 4), [-y for y in path[::-1]]

        return max(itertools.product(*possible), key=rank)

    for sequences in orders:
        for s in sequences:
            rows = slice(data.offsets[s], data.offsets[s + 1])
            free = [range(n_labels)] * (rows.stop - rows.start)
            gold = data.labels[rows].tolist()
            known = [[y] if y >= 0 else range(n_labels) for y in gold]
            wrong, right = best(s, free, gold), best(s, known, gold)
            size = float(data.weights[rows.start])
            for key, value in parts(s, right).items():
                now[key] += size * value
            for key, value in parts(s, wrong).items():
                now[key] -= size * value
            for key, value in now.items():
                total[key] += value
            n_sums += 1
    return {key: value / n_sums for key, value in total.items()}


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(("unknown", "weighted"), [(0.0, False), (0.3, True)])
def test_averages_are_means_of_all_weights_on_the_way(order, unknown, weighted) -> None:
    training = random_training(
        7, n_sequences=12, n_labels=3, longest=4, unknown=unknown, weighted=weighted
    )
    data, columns = training.data, training.columns
    weights, totals = (
        zero_weights(len(columns.counts), len(columns.bin_values), 3) for _ in range(2)
    )
    orders = [draw_order(data.n_sequences, 1, round_) for round_ in range(3)]
    wrong = []
    for round_, sequences in enumerate(orders):
        wrong.append(
            perceptron_pass(
                training_rows(data, columns.bin_values),
                sequences,
                StepPotentials(order, np.zeros((4, 3)), np.zeros(3)),
                0,
                weights,
                totals,
                float(round_ * data.n_sequences),
            )
        )
    assert wrong[-1] < wrong[0]
    share = 1.0 / (3 * data.n_sequences + 1)
    average = [now - share * total for now, total in zip(weights, totals, strict=True)]
    expected = naive(training, order, orders, weighted)
    for (kind, i, y), value in expected.items():
        at = {"f": 0, "n": 1, "e": 2}[kind]
        assert average[at][i, y] == pytest.approx(value, abs=1e-3), (kind, i, y)


def test_orders_are_permutations_that_come_again() -> None:
    first = draw_order(50, 3, 0)
    assert sorted(first.tolist()) == list(range(50))
    assert np.array_equal(first, draw_order(50, 3, 0))
    assert not np.array_equal(first, draw_order(50, 3, 1))
    assert not np.array_equal(first, draw_order(50, 4, 0))
