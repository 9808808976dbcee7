"""A pipe that is calibrated by a curve: one distribution in all that it says, stored and loaded."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.engine.limits import QUICK_AFTER
from spacy_treecrf.models.crf import CRF
from tests.pipeline.tiny_pipes import corpus, new_nlp, pipe_of, trained_nlp


def test_probabilities_of_docs_are_those_of_the_curved_chain() -> None:
    nlp = trained_nlp(probabilities=True)
    pipe, examples = pipe_of(nlp), corpus(nlp)
    before = pipe.marginals(examples[0].reference)
    assert pipe.calibrate(examples, curve=True) == pytest.approx(pipe.shim.trained.temperature)
    trained = pipe.shim.trained
    assert isinstance(trained, CRF)
    assert trained.curve is not None
    assert not np.allclose(pipe.marginals(examples[0].reference), before, atol=1e-3)
    texts = [own.reference.text for own in examples]
    for _ in range(QUICK_AFTER + 2):  # the first docs and later ones go other ways
        for doc in map(nlp, texts):
            nodes = pipe.marginals(doc).max(axis=1)
            assert [token._.treecrf_prob for token in doc] == pytest.approx(nodes, abs=1e-6)
            for ent in doc.ents:
                assert ent._.treecrf_prob == pytest.approx(pipe.span_probability(ent), abs=1e-6)


def test_bytes_keep_the_curve() -> None:
    nlp = trained_nlp()
    pipe_of(nlp).calibrate(corpus(nlp), curve=True)
    loaded = new_nlp().from_bytes(nlp.to_bytes())
    models = [pipe_of(own).shim.trained for own in (nlp, loaded)]
    assert all(isinstance(own, CRF) and own.curve is not None for own in models)
    doc = corpus(nlp)[0].reference
    np.testing.assert_array_equal(*(pipe_of(own).marginals(doc) for own in (nlp, loaded)))
