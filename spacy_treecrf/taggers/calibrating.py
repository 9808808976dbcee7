"""Calibration of stored models by annotated data that a tagger reads."""

from __future__ import annotations

from collections.abc import Iterable

from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.judging import label_ids
from spacy_treecrf.evaluation.tagger import Chunk, Tagger
from spacy_treecrf.models.calibrating import honest_temperature


def temperature_for(tagger: Tagger, chunks: Iterable[Chunk]) -> float:
    """The temperature at which labels of the chunks are right as often as the model says."""
    names = tagger.model.labels
    with Workers(tagger.threads) as workers:
        predictor = tagger.predictor(workers).without_rules()
        parts = [
            (predictor.apply(chunk.data), label_ids(names, chunk.gold))
            for chunk in chunks
            if chunk.gold is not None
        ]
        return honest_temperature(parts)
