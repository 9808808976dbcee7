"""Calibration of stored models by annotated data that a tagger reads."""

from __future__ import annotations

from collections.abc import Iterable

from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.judging import label_ids
from spacy_treecrf.evaluation.tagger import Chunk, Tagger
from spacy_treecrf.models.correction import Correction, HeldOutLabels, found_correction


def correction_for(tagger: Tagger, chunks: Iterable[Chunk], outside: bool) -> Correction:
    """What makes probabilities of the labels of the chunks honest, see `found_correction`."""
    names = tagger.model.labels
    with Workers(tagger.threads) as workers:
        predictor = tagger.predictor(workers).without_rules()
        parts = [
            HeldOutLabels(predictor.apply(chunk.data), label_ids(names, chunk.gold), names)
            for chunk in chunks
            if chunk.gold is not None
        ]
        return found_correction(parts, outside)
