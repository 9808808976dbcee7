"""True labels behind noisy ones: against an enumeration of all label sequences."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.noisy_labels import (
    Judged,
    first_noise,
    noise_counts,
    posterior,
    true_labels,
)
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers

K = 3
OFFSETS = np.array([0, 4, 5, 8])


def judged(order: int, contexts: int) -> Judged:
    random = np.random.default_rng(order + 10 * contexts)
    n = int(OFFSETS[-1])
    labels = random.integers(0, K, n).astype(np.int32)
    labels[2] = UNKNOWN_LABEL
    nothing = np.zeros((n, 0), np.int32)
    data = Sequences(OFFSETS, nothing, np.zeros((n, 0), np.uint8), labels, np.ones(n, np.float32))
    parts = [random.normal(size=shape).astype(np.float32) for shape in ((K,), (K, K), (K,))]
    parts[1][1, 2] = -np.inf
    scores = random.normal(size=(n, contexts, K)).astype(np.float32)
    return Judged(data, scores, Chain(order, *parts))


def path_weight(one: Judged, s: int, y: tuple[int, ...], noise: np.ndarray, power: float) -> float:
    """p(y | x)^power c(given | y), but for a factor of the sequence."""
    first, last = OFFSETS[s], OFFSETS[s + 1]
    given, scores, chain = one.data.labels[first:last], one.scores[first:last], one.chain
    total = float(chain.start[y[0]] + chain.end[y[-1]]) if chain.order else 0.0
    log_noise = 0.0
    for t, label in enumerate(y):
        before = y[t - 1] if t else 0
        total += float(scores[t, before if scores.shape[1] > 1 else 0, label])
        total += float(chain.trans[before, label]) if t and chain.order else 0.0
        wrong = t > 0 and given[t - 1] not in (UNKNOWN_LABEL, before)
        if given[t] != UNKNOWN_LABEL:
            log_noise += np.log(noise[int(wrong), label, given[t]])
    return float(np.exp(power * total + log_noise))


def enumerated(one: Judged, noise: np.ndarray, power: float) -> tuple[np.ndarray, np.ndarray]:
    """P(label before, label) of each row, and expected counts of the noise."""
    pairs = np.zeros((OFFSETS[-1], K, K))
    counts = np.zeros((2, K, K))
    for s in range(len(OFFSETS) - 1):
        first, length = OFFSETS[s], OFFSETS[s + 1] - OFFSETS[s]
        paths = list(product(range(K), repeat=int(length)))
        weights = np.array([path_weight(one, s, y, noise, power) for y in paths])
        for y, q in zip(paths, weights / weights.sum(), strict=True):
            for t, label in enumerate(y):
                pairs[first + t, y[t - 1] if t else 0, label] += q
                given = one.data.labels[first + t]
                before = one.data.labels[first + t - 1] if t else UNKNOWN_LABEL
                wrong = t > 0 and before not in (UNKNOWN_LABEL, y[t - 1])
                if given != UNKNOWN_LABEL:
                    counts[int(wrong), label, given] += q
    return pairs, counts


@pytest.mark.parametrize(("order", "contexts"), [(0, 1), (1, 1), (1, K)])
@pytest.mark.parametrize("power", [1.0, 2.0])
def test_posterior_and_counts_are_those_of_an_enumeration(order, contexts, power):
    one = judged(order, contexts)
    noise = np.random.default_rng(5).dirichlet(np.ones(K), size=(2, K))
    with Workers(1) as workers:
        found = posterior(one.sharpened(power), noise, workers)
    pairs, counts = enumerated(one, noise, power)
    np.testing.assert_allclose(found, pairs, atol=1e-5)
    np.testing.assert_allclose(noise_counts(one.data, found), counts, atol=1e-4)


def test_first_noise_is_a_distribution_that_is_mostly_right():
    given = np.array([0, 0, 0, 1, UNKNOWN_LABEL, 2], np.int32)
    noise = first_noise(given, K, 0.2)
    np.testing.assert_allclose(noise.sum(axis=2), 1.0)
    np.testing.assert_allclose(np.diag(noise[0]), 0.8 + 0.2 * np.array([0.6, 0.2, 0.2]))
    assert (np.diag(noise[1]) < np.diag(noise[0])).all()


def test_noise_is_learned_where_models_are_sure():
    """Of two labels one is given wrongly three times in ten, the other never."""
    random = np.random.default_rng(0)
    n = 4000
    true = random.integers(0, 2, n).astype(np.int32)
    given = np.where((true == 1) & (random.random(n) < 0.3), 0, true).astype(np.int32)
    offsets = np.arange(0, n + 1, 4)
    empty = np.zeros((n, 0), np.int32)
    data = Sequences(offsets, empty, empty.astype(np.uint8), given, np.ones(n, np.float32))
    scores = np.where(np.arange(2) == true[:, None], 2.0, 0.0).astype(np.float32)[:, None, :]
    part = Judged(data, scores, Chain.free(2, 1))
    with Workers(1) as workers:
        pairs, noise = true_labels([part], 0.2, 2.0, workers)
    assert noise[0, 1, 0] == pytest.approx(0.3, abs=0.05)
    assert noise[0, 0, 1] < 0.05
    assert np.mean(pairs[0].sum(axis=1).argmax(axis=1) == true) > 0.97
