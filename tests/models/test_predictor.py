"""The one way from a model to labels, marginals, n-best lists and span probabilities."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import BoostedCRF, BoostedMEMM, PerceptronTagger
from spacy_treecrf.engine.chain.temperature_curve import TemperatureCurve
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.estimators import SequenceEstimator
from spacy_treecrf.models import predictor, scored_blocks
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.predictor import Predictor
from tests.engine.enumeration import enumerate_paths
from tests.tiny import SMALL, tiny_data

X, Y = tiny_data(20)
FEW = [items[:4] for items in X[:6]]
ONE = Workers(1)
ESTIMATORS: dict[str, SequenceEstimator] = {
    "separate": BoostedCRF(**SMALL),
    "joint": BoostedCRF(**{**SMALL, "family": "joint", "order": 2}),
    "constrained": BoostedCRF(**SMALL, constraints="observed"),
    "curved": BoostedCRF(**SMALL),
    "marginal": BoostedCRF(**SMALL, predictor="marginal"),
    "perceptron": PerceptronTagger(rounds=2),
    "memm": BoostedMEMM(rounds=4, min_rows=1, min_count=1),
    "memm beam": BoostedMEMM(rounds=4, min_rows=1, min_count=1, search="beam", beam_width=3),
}


@pytest.fixture(scope="module", params=list(ESTIMATORS))
def fitted(request: pytest.FixtureRequest) -> SequenceEstimator:
    estimator = ESTIMATORS[request.param].fit(X, Y)
    if request.param == "curved":
        assert isinstance(estimator.model_, CRF)
        estimator.model_ = estimator.model_.curved(TemperatureCurve(-0.2, 0.9, -0.3))
    return estimator


def encoded(fitted: SequenceEstimator) -> Sequences:
    return Sequences.unlabelled(*fitted.model_.columns.encode(FEW))


def random_mask(n_rows: int, n_labels: int) -> Any:
    """Every third row is fixed to one label."""
    rng = np.random.default_rng(0)
    allowed = np.ones((n_rows, n_labels), np.uint8)
    for row in range(0, n_rows, 3):
        allowed[row] = 0
        allowed[row, rng.integers(n_labels)] = 1
    return allowed


def test_all_that_is_predicted_follows_from_the_same_scores(fitted: SequenceEstimator) -> None:
    data = encoded(fitted)
    scored = Predictor(fitted.model_, ONE).apply(data)
    n_labels = scored.chain.n_labels
    for first, last in itertools.pairwise(data.offsets.tolist()):
        truth = enumerate_paths(scored.scores[first:last], scored.chain)
        paths = np.array(truth.paths)
        for t in range(last - first):
            expected = np.bincount(paths[:, t], truth.probabilities, minlength=n_labels)
            np.testing.assert_allclose(scored.marginals()[first + t], expected, atol=1e-6)
        some = len(paths) // 2
        labels = np.full(data.n_rows, -1, np.int32)
        labels[first:last] = paths[some]
        (found,) = scored.span_probabilities(np.array([[first, last]]), labels)
        assert found == pytest.approx(truth.probabilities[some], abs=1e-6)


def test_probabilities_of_spans_are_exact_under_a_beam() -> None:
    pruned = BoostedCRF(**{**SMALL, "beam": 2, "constraints": "none"}).fit(X, Y)
    data = encoded(pruned)
    scored = Predictor(pruned.model_, ONE).apply(data)
    assert scored.chain.pruned
    labels, (first, last) = scored.labels(), data.offsets[:2].tolist()
    truth = enumerate_paths(scored.scores[first:last], replace(scored.chain, beam=None))
    paths = np.array(truth.paths)
    for a, b in itertools.combinations(range(last - first + 1), 2):
        p = truth.probabilities[(paths[:, a:b] == labels[first + a : first + b]).all(axis=1)].sum()
        (found,) = scored.span_probabilities(np.array([[first + a, first + b]]), labels)
        assert found == pytest.approx(p, abs=1e-6)


def test_a_mask_rules_labels_out_before_or_after_scoring(fitted: SequenceEstimator) -> None:
    data = encoded(fitted)
    predictor = Predictor(fitted.model_, ONE)
    allowed = random_mask(data.n_rows, len(fitted.model_.labels))
    plain = predictor.apply(data)
    before, after = predictor.apply(data, allowed), plain.under(allowed)
    np.testing.assert_array_equal(before.labels(), after.labels())
    np.testing.assert_array_equal(before.marginals(), after.marginals())
    np.testing.assert_array_equal(plain.scores, predictor.apply(data).scores)
    if fitted.model_.settings.constraints == "none":
        assert allowed[np.arange(data.n_rows), before.labels()].all()
        np.testing.assert_allclose(before.marginals()[allowed == 0], 0.0, atol=1e-6)


def test_a_model_is_asked_for_its_scores_once(
    fitted: SequenceEstimator, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    kind = type(fitted.model_)
    for name in ("scores", "search"):
        original = getattr(kind, name)

        def counted(*args: Any, original: Any = original, name: str = name) -> Any:
            calls.append(name)
            return original(*args)

        monkeypatch.setattr(kind, name, counted)
    scored = Predictor(fitted.model_, ONE).apply(encoded(fitted))
    scored.labels(), scored.marginals(), scored.nbest(2)
    scored.log_probability_of(np.zeros(scored.data.n_rows, np.int32))
    searched = calls == ["search"]
    assert searched or calls == ["search", "scores"]
    assert searched == ("beam" in str(fitted))


def test_log_probability_of_partial_annotation_sums_over_what_is_not_annotated(
    fitted: SequenceEstimator,
) -> None:
    data = encoded(fitted)
    scored = Predictor(fitted.model_, ONE).apply(data)
    labels = np.full(data.n_rows, -1, np.int32)
    labels[data.offsets[:-1]] = 1  # the first position of each sequence
    found = scored.log_probability_of(labels)
    expected = scored.marginals()[data.offsets[:-1], 1]
    np.testing.assert_allclose(np.exp(found), expected, atol=1e-6)


def test_scores_in_blocks_answer_the_same_bit_by_bit(
    fitted: SequenceEstimator, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = encoded(fitted)
    model = fitted.model_
    n_labels = len(model.labels)
    masks = [None, random_mask(data.n_rows, n_labels)]
    gold = np.zeros(data.n_rows, np.int32)
    spans = np.array([[first, first + 1] for first in data.offsets[:-1].tolist()])

    def answers(allowed: Any) -> list[Any]:
        scored = Predictor(model, ONE).apply(data, allowed)
        nbest = scored.nbest(3)
        return [
            scored.scores,
            scored.labels(),
            scored.marginals(),
            *(paths for paths, _ in nbest),
            *(log_p for _, log_p in nbest),
            scored.span_probabilities(spans, gold),
            scored.log_probability_of(gold),
            scored.probability_of_pairs(np.eye(n_labels, dtype=np.bool_)),
            scored.under(random_mask(data.n_rows, n_labels)).marginals(),
        ]

    at_once = [answers(mask) for mask in masks]
    monkeypatch.setattr(scored_blocks, "BLOCK_BYTES", 1)  # a block for each sequence
    assert len(scored_blocks.blocks(data.offsets, model.score_bytes)) == data.n_sequences
    for mask, expected in zip(masks, at_once, strict=True):
        for found, wanted in zip(answers(mask), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_pairs_of_labels_are_summed_in_parts_that_fit_into_a_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitted = BoostedCRF(**SMALL).fit(X, Y)
    data = encoded(fitted)
    sizes = []
    original = predictor.edge_marginals

    def measured(*args: Any) -> Any:
        edges = original(*args)
        sizes.append(edges.nbytes)
        return edges

    monkeypatch.setattr(predictor, "edge_marginals", measured)
    monkeypatch.setattr(scored_blocks, "BLOCK_BYTES", data.n_rows * fitted.model_.score_bytes + 1)
    scored = Predictor(fitted.model_, ONE).apply(data)
    assert len(scored_blocks.blocks(data.offsets, fitted.model_.score_bytes)) == 1
    found = scored.probability_of_pairs(np.ones((scored.chain.n_labels,) * 2, np.bool_))
    is_first = np.isin(np.arange(data.n_rows), data.offsets)
    np.testing.assert_allclose(found, np.where(is_first, 0.0, 1.0), atol=1e-6)
    a_sequence = 4 * scored.chain.n_labels**2 * 4
    assert max(sizes) < scored_blocks.BLOCK_BYTES + a_sequence < sum(sizes)


def test_sequence_whose_scores_are_too_large_is_named(
    fitted: SequenceEstimator, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = encoded(fitted)
    most = int(np.diff(data.offsets).max()) * fitted.model_.score_bytes
    monkeypatch.setattr(scored_blocks, "MAX_SEQUENCE_BYTES", most - 1)
    with pytest.raises(ValueError, match=r"^treecrf: sequence \d has 4 positions.*limit"):
        Predictor(fitted.model_, ONE).apply(data)
