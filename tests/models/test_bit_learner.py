"""Bits of an output code, learned by themselves."""

from __future__ import annotations

import copy

import numpy as np

from spacy_treecrf import SECOCCRF, BoostedCRF
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.models.secoc.bit_learner import BitLearner
from tests.tiny import tiny_data, word_labels

LABELS = ("A", "B", "C", "D", "E")


def make_learner(n_folds: int) -> BitLearner:
    X, _ = tiny_data(20)
    Y = word_labels(X, LABELS)
    base = BoostedCRF(rounds=2, linear_rounds=1, min_rows=1, min_count=1)
    model = SECOCCRF(base=base, training="columns", bits=4, threads=1).fit(X, Y).model_
    labels = np.array([model.labels.index(label) for own in Y for label in own], np.int32)
    weights = np.ones(len(labels), np.float32)
    data = Sequences(*model.columns.encode(X), labels, weights)
    return BitLearner(model.settings, model.code, model.columns, data, n_folds)


def test_folds_predict_every_row_once_and_learn_from_the_others() -> None:
    learner = make_learner(3)
    every = np.arange(learner.data.n_rows)
    assert np.array_equal(np.sort(np.concatenate([f.predicted_rows for f in learner.folds])), every)
    for fold in learner.folds:
        both = np.concatenate([fold.learned_rows, fold.predicted_rows])
        assert np.array_equal(np.sort(both), every)
        assert np.array_equal(fold.learned.labels, learner.data.labels[fold.learned_rows])


def test_a_learner_that_travels_has_no_folds_with_it_and_learns_the_same() -> None:
    learner = make_learner(3)
    here, seen_here = learner(1, 2)
    other = copy.copy(learner)
    assert "folds" in vars(learner)
    assert "folds" not in vars(other)
    there, seen_there = other(1, 2)
    assert np.array_equal(seen_here, seen_there)
    assert np.array_equal(here.linear.categorical, there.linear.categorical)
    assert np.array_equal(here.edges, there.edges)
