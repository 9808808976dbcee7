"""Calibration of stored models by annotated data that a tagger reads."""

from __future__ import annotations

from collections.abc import Iterable

from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.judging import label_ids
from spacy_treecrf.evaluation.tagger import Chunk, Tagger
from spacy_treecrf.models.calibration.search import (
    HeldOutLabels,
    Wanted,
    calibratable,
    found_correction,
)
from spacy_treecrf.models.correction import Correction
from spacy_treecrf.models.crf import CRF


def correction_for(
    tagger: Tagger, chunks: Iterable[Chunk], wanted: Wanted
) -> tuple[CRF, Correction]:
    """The tagger's CRF, and what makes its probabilities of the chunks' labels honest."""
    crf = calibratable(tagger.model, tagger.name)
    with Workers(tagger.threads) as workers:
        predictor = tagger.predictor(workers)
        parts = [
            HeldOutLabels.of(predictor, chunk.data, label_ids(crf.labels, chunk.gold))
            for chunk in chunks
            if chunk.gold is not None
        ]
        return crf, found_correction(parts, wanted)
