"""Calibration of stored models by annotated data that a tagger reads."""

from __future__ import annotations

from collections.abc import Iterable

from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.judging import label_ids
from spacy_treecrf.evaluation.tagger import Chunk, Tagger
from spacy_treecrf.models.calibrating import calibrated, calibration_predictor
from spacy_treecrf.models.crf import CRF


def calibrated_by(tagger: Tagger, chunks: Iterable[Chunk], curve: bool) -> CRF:
    """The tagger's CRF, whose labels of the chunks are right as often as it says.

    curve: Whether temperatures depend on how unsure the CRF is.
    """
    crf = tagger.model
    if not isinstance(crf, CRF):
        raise ValueError(
            f"treecrf: {tagger.name} holds a {type(crf).__name__}; only boosted CRFs can be "
            "calibrated"
        )
    with Workers(tagger.threads) as workers:
        predictor = calibration_predictor(tagger.predictor(workers))
        parts = [
            (predictor.apply(chunk.data), label_ids(crf.labels, chunk.gold))
            for chunk in chunks
            if chunk.gold is not None
        ]
        return calibrated(crf, parts, curve)
