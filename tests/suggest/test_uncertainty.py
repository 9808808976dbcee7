"""Uncertainties of sequences, against sums over all label sequences."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.estimators import BoostedCRF
from spacy_treecrf.labels.schemes import conll_spans, spelled
from spacy_treecrf.models.predictor import Predictor, ScoredSequences
from spacy_treecrf.suggest.uncertainty import STRATEGIES, disagreement, doubt, uncertainties
from tests.engine.enumeration import enumerate_paths

NAMES = ("BIO", "IOB1", "IOE2", "BIOES", "BILUO", "plain")
LENGTHS = (4, 1, 3, 5)


@cache
def model_of(scheme: str, seed: int = 0, free: bool = False, beam: int | None = None) -> BoostedCRF:
    """A weak model of spans of one type.

    free: Whether label sequences that training has not seen are possible, too.
    """
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(40):
        n = int(rng.integers(2, 6))
        words = rng.choice(list("abcd"), n)
        X.append([{"word": word} for word in words])
        spans, t = [], 0
        while t < n:
            length = int(rng.integers(1, 3))
            if words[t] in "ab" and t + length <= n and rng.random() < 0.7:
                spans.append((t, t + length, "X"))
                t += length
            else:
                t += 1
        plain = ["N" if word in "ab" and rng.random() < 0.8 else "V" for word in words]
        y.append(plain if scheme == "plain" else spelled(spans, n, scheme))
    constraints = "none" if scheme == "plain" or free else "observed"
    settings = {"constraints": constraints, "beam": beam}
    return BoostedCRF(rounds=4, linear_rounds=2, min_rows=1, **settings).fit(X, y)


def scored_by(model: BoostedCRF) -> ScoredSequences:
    rng = np.random.default_rng(5)
    X = [[{"word": word} for word in rng.choice(list("abcd"), n)] for n in LENGTHS]
    data = Sequences.unlabelled(*model.model_.columns.encode(X))
    return Predictor(model.model_, Workers(1)).apply(data)


def enumerated(scored: ScoredSequences):
    for first, last in pairwise(scored.data.offsets.tolist()):
        yield slice(first, last), enumerate_paths(scored.scores[first:last], scored.chain)


@pytest.mark.parametrize("scheme", NAMES)
@pytest.mark.parametrize(("free", "beam"), [(False, None), (True, None), (True, 1)])
def test_expected_errors_are_their_mean_over_all_label_sequences(scheme, free, beam):
    model = model_of(scheme, free=free, beam=beam)
    scored, labels = scored_by(model), model.classes_
    assert bool(scored.chain.pruned) == bool(beam)
    predicted = scored.labels()
    found = uncertainties("wrong", scored, labels)
    for s, (rows, every) in enumerate(enumerated(scored)):
        own = [labels[y] for y in predicted[rows]]
        expected = 0.0
        for path, p in zip(every.paths, every.probabilities, strict=True):
            names = [labels[y] for y in path]
            if scheme == "plain":
                expected += p * sum(a != b for a, b in zip(own, names, strict=True))
            else:
                expected += p * len(set(conll_spans(own)) ^ set(conll_spans(names)))
        assert found[s] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("scheme", NAMES)
def test_entropy_and_confidence_are_those_of_all_label_sequences(scheme):
    scored = scored_by(model_of(scheme))
    entropy = uncertainties("entropy", scored, [])
    confidence = uncertainties("confidence", scored, [])
    for s, (_, every) in enumerate(enumerated(scored)):
        p = every.probabilities
        assert entropy[s] == pytest.approx(float(-(p * np.log(p)).sum()), abs=1e-5)
        assert confidence[s] == pytest.approx(float(-np.log(p.max())), abs=1e-5)


def test_a_committee_disagrees_where_its_members_do():
    models = [model_of("BIO", seed) for seed in (0, 1)]
    scored, other = (scored_by(model) for model in models)
    found = uncertainties("committee", scored, [], [other.marginals()])
    assert found.shape == (len(LENGTHS),)
    assert np.all(found > 0.0)
    assert uncertainties("committee", scored, [], [scored.marginals()]) == pytest.approx(0.0)


def test_disagreement_is_largest_between_two_that_are_sure_of_different_labels():
    p = np.array([[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]])
    q = np.array([[0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    found = disagreement([p, q])
    assert found[0] == pytest.approx(np.log(2.0))
    assert found[1] == pytest.approx(0.0)
    assert 0.0 < found[2] < found[0]
    with pytest.raises(ValueError, match="two models or more"):
        disagreement([p])


def test_doubt_is_what_the_best_label_leaves():
    scored = scored_by(model_of("plain"))
    assert doubt(scored) == pytest.approx(1.0 - scored.marginals().max(axis=1))


def test_an_unknown_strategy_is_refused():
    with pytest.raises(ValueError, match="entropy, confidence, wrong, committee"):
        uncertainties("luck", scored_by(model_of("plain")), [])
    assert STRATEGIES == ("entropy", "confidence", "wrong", "committee")
