"""Models of few rounds and small trees for tests of boosting."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_treecrf.engine.boosting.boosting import Booster
from spacy_treecrf.engine.boosting.settings import Settings
from spacy_treecrf.engine.chain.chain import log_normalizers, path_scores
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.crf import CRF, new_crf
from spacy_treecrf.models.predictor import Predictor
from spacy_treecrf.storage import container
from tests.engine.training_data import Training

ONE = Workers(1)
SMALL = {"shrinkage": 1.0, "leaves": 5, "min_rows": 2}
FAMILIES = [("separate", 0), ("separate", 1), ("joint", 1), ("joint", 2)]
families = pytest.mark.parametrize(("family", "order"), FAMILIES)


def empty_model(training: Training, **settings) -> CRF:
    return new_crf(Settings(**SMALL | settings), training.labels, training.columns, training.data)


def fitted(training: Training, rounds: int, *, held_out=None, callback=None, **settings) -> CRF:
    crf = empty_model(training, **settings)
    return crf.boosted(training.data, rounds, ONE, held_out, callback)


def as_bytes(crf: CRF) -> bytes:
    return container.dump(crf.to_state())


def log_likelihood_of(crf: CRF, data: Sequences) -> float:
    """Of fully annotated sequences."""
    scores = Predictor(crf, ONE).scores(data)
    paths = path_scores(scores, data.offsets, data.labels, crf.chain)
    per_sequence = paths - log_normalizers(scores, data.offsets, crf.chain)
    first = data.weights[data.offsets[:-1]].astype(float)
    return float(first @ per_sequence)


def climb(training: Training, rounds: int, **settings) -> list[float]:
    """The log-likelihood per annotated row, before the first and after every round."""
    values = []
    start = empty_model(training, **settings)
    booster = Booster(
        training.data,
        training.columns,
        len(training.labels),
        start.masks,
        start.settings,
        ONE,
    )
    values.append(booster._residuals().log_likelihood / booster.n_annotated)
    booster.boost(rounds, lambda info: values.append(info.log_likelihood))
    return values


def assert_never_falls(values: list[float]) -> None:
    assert np.isfinite(values).all()
    assert (np.diff(values) >= 0.0).all(), values
