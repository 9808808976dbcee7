"""The noise model of annotators: EM's steps against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.annotators import (
    PRIOR_ROWS,
    as_evidence,
    confusions_of,
    estimated,
    log_prior,
)
from spacy_treecrf.engine.boosting.boosting import Booster
from spacy_treecrf.engine.boosting.residuals import compute_residuals
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.chain.constraints import constrain
from spacy_treecrf.engine.threads import Workers
from tests.engine.enumeration import enumerate_paths
from tests.engine.training_data import random_annotation, random_training

WORKERS = Workers(1)
ANNOTATOR = np.array([1, 0, 1])


def case(order, joint, n_labels):
    """Sequences with given labels, some of them unknown, and confusions that were drawn."""
    annotation = random_annotation(
        11, order, n_labels, [3, 2, 3], joint=joint, unknown=0.2, weighted=True
    )
    data = as_evidence(annotation.data, ANNOTATOR, n_labels)
    rng = np.random.default_rng(1)
    drawn = rng.random((data.n_rows, n_labels))
    soft = estimated(data.soft, drawn / drawn.sum(axis=1, keepdims=True), data.weights)
    return annotation, data, soft


@pytest.mark.parametrize(
    ("order", "joint", "n_labels"), [(0, False, 3), (1, False, 3), (1, True, 3), (2, True, 2)]
)
def test_what_is_expected_of_true_labels_is_that_of_enumeration(order, joint, n_labels):
    annotation, data, soft = case(order, joint, n_labels)
    problem = annotation.problem
    confusions = confusions_of(soft)
    np.testing.assert_allclose(confusions.sum(axis=2), 1.0, rtol=1e-6)
    annotated = Annotated(data, n_labels, order, joint).with_soft(soft)
    found = compute_residuals(annotated, problem.scores, problem.chain, None, WORKERS)
    expected = np.zeros((data.n_rows, n_labels))
    total = 0.0
    for s, rows in enumerate(problem.rows()):
        free = enumerate_paths(problem.scores[rows], problem.chain)
        given = annotation.data.labels[rows]
        noise = np.array(
            [
                np.prod(
                    [
                        confusions[ANNOTATOR[s], y, g]
                        for y, g in zip(path, given, strict=True)
                        if g >= 0
                    ]
                )
                for path in free.paths
            ]
        )
        posterior = free.probabilities * noise
        total += float(data.weights[rows.start]) * np.log(posterior.sum())
        for path, p in zip(free.paths, posterior / posterior.sum(), strict=True):
            for t, y in enumerate(path):
                expected[rows.start + t, y] += p
    assert found.log_likelihood == pytest.approx(total, abs=1e-5)
    np.testing.assert_allclose(found.clamped.sum(axis=1), expected, atol=1e-5)

    counts = np.zeros((2, n_labels, n_labels))
    rows_of = [range(rows.start, rows.stop) for rows in problem.rows()]
    for s, row in itertools.chain.from_iterable(
        [(s, row) for row in rows] for s, rows in enumerate(rows_of)
    ):
        if (given := annotation.data.labels[row]) >= 0:
            counts[ANNOTATOR[s], :, given] += data.weights[row] * expected[row]
    counts += PRIOR_ROWS * soft.prior
    after = estimated(soft, expected, data.weights)
    np.testing.assert_allclose(
        confusions_of(after), counts / counts.sum(axis=2, keepdims=True), rtol=1e-5
    )


@pytest.mark.parametrize("family", ["separate", "joint"])
def test_the_objective_does_not_fall_over_rounds_and_estimates(family):
    training = random_training(3, n_sequences=60, noise=0.3)
    n_labels = len(training.labels)
    annotator = np.arange(training.data.n_sequences) % 2
    data = as_evidence(training.data, annotator, n_labels)
    settings = Settings(family=family, linear_rounds=3, min_rows=1)
    masks = constrain("none", training.labels, order=1)
    booster = Booster(data, training.columns, n_labels, masks, settings, WORKERS)
    values = []
    for _ in range(15):
        booster.learn_round()
        values.append(booster._current().log_likelihood + log_prior(booster.soft))
    for _ in range(3):
        booster.estimate_confusions(booster.soft)
        values.append(booster._current().log_likelihood + log_prior(booster.soft))
    assert np.all(np.diff(values) > -1e-3), values
    assert values[-1] > values[0]
    assert not np.allclose(*confusions_of(booster.soft))
