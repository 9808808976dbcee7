"""CRFs with a temperature curve, against enumeration of all label sequences."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_treecrf import BoostedCRF
from spacy_treecrf.engine.chain.temperature_curve import TemperatureCurve
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.models.predictor import Predictor
from tests.engine.enumeration import Enumeration, enumerate_paths
from tests.models.calibration.test_temperature import DEV_X, DEV_Y, KINDS, SHORT, X, Y, noisy
from tests.tiny import new

CURVE = TemperatureCurve(-0.2, 0.9, -0.3)
ONE = Workers(1)


def curved(**settings: Any) -> BoostedCRF:
    """A fitted estimator whose temperatures differ much from row to row."""
    estimator = new(**settings).fit(X, Y)
    estimator.model_ = crf_of(estimator).cooled(2.0).curved(CURVE)
    return estimator


def crf_of(estimator: BoostedCRF) -> CRF:
    model = estimator.model_
    assert isinstance(model, CRF)
    return model


def encoded(estimator: BoostedCRF, X: list[Any]) -> Sequences:
    return Sequences.unlabelled(*crf_of(estimator).columns.encode(X))


def naive(estimator: BoostedCRF, x: list[Any]) -> Enumeration:
    """All label sequences, each row's scores divided by a number that all sequences tell."""
    plain = crf_of(estimator).curved(None)
    scores = plain.scores(encoded(estimator, [x]), ONE)
    nodes = enumerate_paths(scores, plain.chain).pair_marginals(len(x)).sum(axis=1)
    logs = np.log(nodes, out=np.zeros_like(nodes), where=nodes > 0)
    entropies = -(nodes * logs).sum(axis=1)
    temperatures = np.exp(CURVE.shift + CURVE.slope * entropies + CURVE.bend * entropies**2)
    divided = (scores / np.clip(temperatures, 0.5, 2.0)[:, None, None]).astype(np.float32)
    return enumerate_paths(divided, plain.chain)


def runs_of(label: int, path: tuple[int, ...]) -> int:
    return sum(own == label for own, _ in groupby(path))


@pytest.mark.parametrize("kind", [*KINDS, "order 0"])
def test_labels_spans_and_sequences_have_the_probabilities_of_one_distribution(kind: str) -> None:
    estimator = curved(**KINDS.get(kind, {"order": 0}))
    predictor = Predictor(crf_of(estimator), ONE)
    for x in SHORT:
        all_paths = naive(estimator, x)
        scored = predictor.apply(encoded(estimator, [x]))
        ((paths, log_p),) = scored.nbest(len(all_paths.paths))
        expected = dict(zip(all_paths.paths, all_paths.probabilities.tolist(), strict=True))
        found = dict(zip(map(tuple, paths.tolist()), np.exp(log_p).tolist(), strict=True))
        assert found == pytest.approx(expected, abs=1e-5)
        best = max(expected, key=expected.__getitem__)
        assert tuple(scored.labels().tolist()) == best
        nodes = all_paths.pair_marginals(len(x)).sum(axis=1)
        np.testing.assert_allclose(scored.marginals(), nodes, atol=1e-5)
        labels, spans = np.array(best, np.int32), [(0, len(x)), (0, min(2, len(x)))]
        of_spans = scored.probabilities_of(labels, spans)[1]
        for (first, last), p in zip(spans, of_spans, strict=True):
            inside = [own for path, own in expected.items() if path[first:last] == best[first:last]]
            assert p == pytest.approx(sum(inside), abs=1e-5)
        assert np.exp(scored.log_probability_of(labels)[0]) == pytest.approx(
            expected[best], abs=1e-5
        )


def test_masks_and_rules_give_conditional_probabilities_of_the_same_distribution() -> None:
    estimator, ruled = curved(), curved(rules=["A once"])
    n_labels, a = len(estimator.classes_), estimator.classes_.index("A")
    for x in [x for x in SHORT if len(x) > 1]:
        all_paths, data = naive(estimator, x), encoded(estimator, [x])
        p = all_paths.probabilities
        allowed = np.ones((len(x), n_labels), np.uint8)
        allowed[0, a] = 0
        kept = {
            "mask": np.array([path[0] != a for path in all_paths.paths]),
            "rules": np.array([runs_of(a, path) <= 1 for path in all_paths.paths]),
        }
        found = {
            "mask": Predictor(crf_of(estimator), ONE).apply(data).under(allowed).marginals(),
            "rules": Predictor(crf_of(ruled), ONE).apply(data).marginals(),
        }
        for name, own in kept.items():
            nodes = np.zeros((len(x), n_labels))
            for path, share in zip(all_paths.paths, p * own / p[own].sum(), strict=True):
                nodes[np.arange(len(x)), list(path)] += share
            np.testing.assert_allclose(found[name], nodes, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_short_inputs_long_ones_and_threads_agree(kind: str) -> None:
    estimator = curved(**KINDS[kind])
    together = estimator.set_params(threads=2).predict_marginals(DEV_X * 20)
    labels = estimator.predict(DEV_X * 20)
    estimator.set_params(threads=1)
    for x, rows, own in zip(DEV_X, together, labels, strict=False):
        assert estimator.predict_marginals([x]) == [rows]
        assert estimator.predict([x]) == [own]


def test_calibration_by_a_curve_replaces_an_earlier_one() -> None:
    estimator = new().fit(X, Y).calibrate(DEV_X, noisy(DEV_Y), curve=True)
    first, temperature = estimator.curve_, estimator.temperature_
    assert first is not None
    estimator.calibrate(DEV_X, noisy(DEV_Y), curve=True)
    assert estimator.temperature_ == pytest.approx(temperature, rel=5e-3)
    second = estimator.curve_
    assert second is not None
    assert vars(second) == pytest.approx(vars(first), abs=0.02)
    estimator.calibrate(DEV_X, noisy(DEV_Y))
    assert estimator.curve_ is None
    assert estimator.temperature_ == pytest.approx(temperature, rel=5e-3)


def test_rules_do_not_count_in_calibration() -> None:
    free, ruled = (
        new(rules=rules).fit(X, Y).calibrate(DEV_X, noisy(DEV_Y), curve=True)
        for rules in (None, ["A once"])
    )
    assert free.temperature_ == ruled.temperature_
    assert free.curve_ == ruled.curve_


def test_training_that_goes_on_drops_the_curve() -> None:
    estimator = curved(warm_start=True)
    estimator.set_params(rounds=6).fit(X, Y)
    assert estimator.curve_ is None
    with_label = crf_of(curved()).with_labels(["D"])
    assert with_label.curve == crf_of(curved()).curve  # nothing was learned yet


def test_files_keep_the_curve_and_have_no_field_without_one(tmp_path: Path) -> None:
    estimator = curved()
    for compact in (False, True):
        estimator.save(tmp_path / "model", compact=compact)
        loaded = BoostedCRF.load(tmp_path / "model")
        assert loaded.curve_ == CURVE
        assert loaded.predict_marginals(DEV_X) == estimator.predict_marginals(DEV_X)
    copied = pickle.loads(pickle.dumps(crf_of(estimator)))
    assert copied.curve == CURVE
    assert crf_of(estimator).without_small_weights(0.01).curve == CURVE
    plain = crf_of(estimator).curved(None)
    assert "curve" not in plain.to_state()
    assert plain.quick is not None
    assert crf_of(estimator).uncurved.to_state().keys() == plain.to_state().keys()


@pytest.mark.parametrize("broken", [{"bend": float("nan")}, {"slope": "x"}, {"more": 1.0}])
def test_broken_curves_in_files_are_refused_by_name(broken: dict[str, Any]) -> None:
    state = crf_of(curved()).to_state()
    assert CRF.from_state(state).curve == CURVE
    (name,) = broken
    with pytest.raises(ValueError, match=f"curve.{name}"):
        CRF.from_state(state | {"curve": state["curve"] | broken})
    for other in ({}, 3.0, None):
        with pytest.raises(ValueError, match="curve"):
            CRF.from_state(state | {"curve": other})


def test_models_without_a_curve_score_as_ever() -> None:
    crf = crf_of(new().fit(X, Y))
    data = Sequences.unlabelled(*crf.columns.encode(DEV_X))
    assert crf.uncurved is crf
    np.testing.assert_array_equal(crf.scores(data, ONE), crf.scorer.score(data, ONE))
    flat = crf.curved(TemperatureCurve(0.0, 0.0, 0.0))
    np.testing.assert_array_equal(flat.scores(data, ONE), crf.scores(data, ONE))
    assert replace(crf, potentials=crf.potentials).curve is None
