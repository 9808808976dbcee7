"""Curves that are learned from held-out data: what they find, and what few data let them find."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.engine.chain.temperature_curve import TemperatureCurve
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.calibration import expected_calibration_error
from spacy_treecrf.models.calibration.curve_fitting import N_KNOTS, _HeldOut, _Point, honest_curve
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.predictor import Predictor, ScoredSequences
from tests.tiny import new, tiny_data

ONE = Workers(1)
TRUE = TemperatureCurve(-0.3, 1.0, -0.2)


def unsure(n: int) -> tuple[CRF, Sequences]:
    """A model that has learned little, and sequences with as many labels as there are."""
    X, Y = tiny_data(30)
    model = new(rounds=1, linear_rounds=1).fit(X, Y).model_
    assert isinstance(model, CRF)
    crf = model.cooled(0.5)
    return crf, Sequences.unlabelled(*crf.columns.encode(tiny_data(n, seed=3)[0]))


def drawn(crf: CRF, data: Sequences, seed: int = 0) -> np.ndarray:
    """Labels of each row, drawn from the marginals of a model."""
    nodes = Predictor(crf, ONE).apply(data).marginals()
    below = np.random.default_rng(seed).random(len(nodes))[:, None] > nodes.cumsum(axis=1)
    return np.minimum(below.sum(axis=1), nodes.shape[1] - 1).astype(np.int32)


def error(scored: ScoredSequences, labels: np.ndarray) -> float:
    chosen = scored.labels()
    p = scored.marginals()[np.arange(len(chosen)), chosen]
    found = expected_calibration_error(p, chosen == labels)
    assert found is not None
    return found


def test_labels_drawn_by_a_curve_are_honest_by_the_learned_one() -> None:
    crf, data = unsure(4000)
    labels = drawn(crf.curved(TRUE), data)
    scored = Predictor(crf, ONE).apply(data)
    found = honest_curve([(scored, labels)], 1.0)
    after = error(Predictor(crf.curved(found), ONE).apply(data), labels)
    assert error(scored, labels) > 0.04
    assert after < 0.01


def test_parts_count_together_and_rows_without_gold_labels_do_not() -> None:
    crf, data = unsure(200)
    labels = drawn(crf.curved(TRUE), data)
    predictor = Predictor(crf, ONE)
    whole = honest_curve([(predictor.apply(data), labels)], 1.0)
    cut = [(0, 80), (80, 200)]
    parts = [(predictor.apply(data.part(*own)), labels[data.rows_of(own)]) for own in cut]
    assert vars(honest_curve(parts, 1.0)) == pytest.approx(vars(whole), abs=1e-3)
    nothing = np.full(data.rows_of(cut[1]).stop - data.rows_of(cut[1]).start, UNKNOWN_LABEL)
    first = honest_curve(parts[:1], 1.0)
    both = honest_curve([parts[0], (parts[1][0], nothing.astype(np.int32))], 1.0)
    assert vars(both) == pytest.approx(vars(first), abs=1e-6)


@pytest.mark.parametrize("right", [True, False])
def test_few_answers_bend_little(right: bool) -> None:
    crf, data = unsure(3)
    scored = Predictor(crf, ONE).apply(data)
    labels = scored.labels()
    found = honest_curve([(scored, labels if right else (labels + 1) % 3)], 1.0)
    assert abs(found.slope) < 1.0
    assert abs(found.bend) < 1.0


def test_gaps_near_knots_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(50), [0.0, 1.0, 0.1, 0.95]])
    right = (rng.random(len(p)) < p).astype(np.float64)
    sums, counts = np.zeros(N_KNOTS), np.ones(N_KNOTS)
    for own, answer in zip(p, right, strict=True):
        for knot in range(N_KNOTS):
            share = max(0.0, 1.0 - abs(own * (N_KNOTS - 1) - knot))
            sums[knot] += share * (answer - own)
            counts[knot] += share
    np.testing.assert_allclose(_Point(np.zeros(3), p, right).gaps, sums / np.sqrt(counts))


@pytest.mark.parametrize("temperature", [0.7, 0.5, 0.35])
def test_no_curve_nearby_or_drawn_at_random_is_better(temperature: float) -> None:
    crf, data = unsure(60)
    crf = crf.cooled(temperature)
    parts = [(Predictor(crf, ONE).apply(data), drawn(crf.curved(TRUE), data, seed=1))]
    held_out = _HeldOut(parts, 1.0)
    found = np.array(list(vars(honest_curve(parts, 1.0)).values()))
    rng = np.random.default_rng(0)
    others = [*(found + rng.normal(0, 0.2, (40, 3))), *rng.normal(0, 0.7, (60, 3))]
    assert held_out.at(found).loss < 1.05 * min(held_out.at(other).loss for other in others)
