"""Residuals of bits against the labels' residuals summed over code words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.engine.boosting.annotation import Annotated
from spacy_treecrf.engine.boosting.linear import LinearWeights
from spacy_treecrf.engine.boosting.potentials import Potentials, Scorer
from spacy_treecrf.engine.boosting.residuals import compute_residuals
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.chain.chain import Chain
from spacy_treecrf.engine.chain.constraints import constrain
from spacy_treecrf.engine.codes.code_words import make_code
from spacy_treecrf.engine.codes.coded import code_scores, compute_coded_residuals
from spacy_treecrf.engine.codes.coded_boosting import CodedBooster, damping
from spacy_treecrf.engine.codes.course import Course
from spacy_treecrf.engine.threads import Workers
from tests.engine.training_data import random_annotation, random_training


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    unknown=st.sampled_from([0.0, 0.4]),
    weighted=st.booleans(),
)
def test_bits_get_the_residuals_of_their_labels(seed, lengths, unknown, weighted) -> None:
    n_labels, n_bits = 4, 5
    case = random_annotation(
        seed, 1, n_labels, lengths, joint=False, unknown=unknown, weighted=weighted
    )
    code = make_code("random", n_labels, n_bits, seed % 5)
    rng = np.random.default_rng(seed)
    bit_scores = rng.normal(size=(case.data.n_rows, n_bits)).astype(np.float32)
    scores = np.zeros((case.data.n_rows, 1, n_labels), np.float32)
    for row in range(case.data.n_rows):
        for y in range(n_labels):
            scores[row, 0, y] = sum(
                bit_scores[row, j] * (float(code[y, j]) - 0.5) for j in range(n_bits)
            )
    rows = [(0, case.data.n_rows)]
    np.testing.assert_allclose(
        code_scores(bit_scores, code, rows, Workers(1)), scores, rtol=1e-5, atol=1e-5
    )
    annotated = Annotated(case.data, n_labels, 1, False)
    chain = case.problem.chain
    truth = compute_residuals(annotated, scores, chain, None, Workers(1))
    found = compute_coded_residuals(annotated, bit_scores, code, chain, 3.0, Workers(1))
    expected = np.einsum("kj,kn->jn", code.astype(float), truth.g[:, :, 0])
    np.testing.assert_allclose(found.g, expected, atol=1e-4)
    np.testing.assert_allclose(found.edge_g, truth.edge_g, atol=1e-3)
    assert found.log_likelihood == pytest.approx(truth.log_likelihood, rel=1e-4, abs=1e-3)
    assert np.all(found.h >= np.abs(found.g) / 3.0 - 1e-5)


def test_damping_is_none_for_one_bit_per_class_and_grows_with_the_bits() -> None:
    assert damping(make_code("one_per_class", 30)) == 1.0
    short, long = damping(make_code("random", 30, 8)), damping(make_code("random", 30, 64))
    assert 1.0 <= short < 2.0
    assert 7.0 < long < 9.0


@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_boosting_raises_the_likelihood_and_its_model_scores_as_it_did(unknown) -> None:
    training = random_training(2, n_labels=4, unknown=unknown)
    code = make_code("random", 4, 6)
    booster = _booster(training, code)
    values = [booster.log_likelihood]
    for rounds in range(1, 7):
        potentials = booster.boost(rounds).potentials
        values.append(booster.log_likelihood)
    assert np.all(np.diff(values) >= 0.0)
    assert values[-1] > values[0] + 0.3
    assert potentials.rounds == 6
    scores = Scorer(potentials, training.columns.bin_values, 0).score(training.data, Workers(1))
    np.testing.assert_allclose(scores[:, 0], booster.train.scores, atol=1e-3)


def test_threads_do_not_change_what_is_learned() -> None:
    training = random_training(4, n_labels=4)
    code = make_code("random", 4, 6)
    one = _booster(training, code, 1).boost(4).potentials
    many = _booster(training, code, 3).boost(4).potentials
    assert np.array_equal(one.edges, many.edges)
    for name, value in one.forest.to_state().items():
        assert np.array_equal(value, many.forest.to_state()[name]), name


def test_beam_of_all_labels_trains_bit_for_bit_the_same() -> None:
    training = random_training(5, n_labels=4)
    code = make_code("random", 4, 6)
    exact = _booster(training, code).boost(4).potentials
    beam = _booster(training, code, beam=4).boost(4).potentials
    assert np.array_equal(exact.edges, beam.edges)
    assert np.array_equal(exact.forest.value, beam.forest.value)


def _booster(training, code, threads=1, beam=None) -> CodedBooster:
    n_labels, n_bits = code.shape
    columns = training.columns
    zeros = LinearWeights.zeros(len(columns.counts), len(columns.bin_values), n_bits)
    potentials = Potentials(np.zeros((n_labels + 1, n_labels), np.float32), zeros, zeros, (), 0)
    masks = constrain("none", training.labels, order=1)
    base = Settings(family="separate", min_rows=1, leaves=8, trim=0.0)
    return CodedBooster(
        training.data,
        columns,
        code,
        masks,
        replace(base, beam=beam),
        Workers(threads),
        Course.start(potentials),
    )


def test_a_chain_of_one_label_per_bit_is_the_plain_chain() -> None:
    """Where bits are labels, residuals of bits are residuals of labels."""
    case = random_annotation(1, 1, 3, [4, 2], joint=False)
    annotated = Annotated(case.data, 3, 1, False)
    code = make_code("one_per_class", 3)
    chain = Chain(1, case.problem.chain.start, case.problem.chain.trans, case.problem.chain.end)
    scores = case.problem.scores
    truth = compute_residuals(annotated, scores, chain, None, Workers(1))
    found = compute_coded_residuals(
        annotated, np.ascontiguousarray(scores[:, 0]), code, chain, 3.0, Workers(1)
    )
    np.testing.assert_allclose(found.g, truth.g[:, :, 0], atol=1e-5)
