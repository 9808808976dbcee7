"""Bits of output codes: the mean of several, and what a perceptron's probabilities are like."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spacy_treecrf.engine.boosting.potentials import Potentials, Scorer, mean_potentials
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.codes.bits import bit_probabilities, boosted_bit, perceptron_bit
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.encoding.learned_columns import fit_columns
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from tests.tiny import tiny_data

ALONE = Workers(1)
SETTINGS = Settings(rounds=5, linear_rounds=2, min_rows=1).resolved(2)


def training_bits(seed: int) -> tuple[Sequences, Columns]:
    """Two classes of words; the numeric column is nothing but noise."""
    X, _ = tiny_data(30)
    columns, offsets, feature_ids, _ = fit_columns(X, min_count=1)
    rng = np.random.default_rng(seed)
    labels = (feature_ids[:, 0] % 2).astype(np.int32)
    labels[rng.random(len(labels)) < 0.2] ^= 1
    numeric = np.zeros((len(feature_ids), len(columns.numeric_names)), np.uint8)
    return Sequences(
        offsets, feature_ids, numeric, labels, np.ones(len(feature_ids), np.float32)
    ), columns


def probabilities(bit: Potentials, data: Sequences, columns: Columns) -> np.ndarray:
    scorer = Scorer(bit, columns.bin_values, SETTINGS.context_order)
    return bit_probabilities(scorer, bit.edges, 1, data, ALONE)


def test_the_mean_of_bits_has_the_mean_of_their_scores() -> None:
    data, columns = training_bits(0)
    bits = [
        boosted_bit(training_bits(seed)[0], columns, replace(SETTINGS, seed=seed))
        for seed in range(3)
    ]
    scores = [
        Scorer(b, columns.bin_values, SETTINGS.context_order).score(data, ALONE) for b in bits
    ]
    mean = mean_potentials(bits)
    found = Scorer(mean, columns.bin_values, SETTINGS.context_order).score(data, ALONE)
    assert not np.allclose(scores[0], scores[1], atol=0.05)
    np.testing.assert_allclose(found, np.mean(scores, axis=0), atol=1e-3)
    np.testing.assert_allclose(mean.edges, np.mean([bit.edges for bit in bits], axis=0), atol=1e-6)


def test_the_mean_of_one_bit_is_that_bit() -> None:
    data, columns = training_bits(0)
    bit = boosted_bit(data, columns, SETTINGS)
    assert np.array_equal(
        probabilities(mean_potentials([bit]), data, columns), probabilities(bit, data, columns)
    )


def test_perceptrons_leave_doubt() -> None:
    data, columns = training_bits(0)
    p = probabilities(perceptron_bit(data, columns, 4, 1, 0), data, columns)
    assert np.mean((p > 0.5) == data.labels) > 0.7
    assert np.mean((p > 0.02) & (p < 0.98)) > 0.5
