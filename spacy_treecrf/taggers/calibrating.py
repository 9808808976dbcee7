"""Calibration of stored models by annotated data that a tagger reads."""

from __future__ import annotations

from collections.abc import Iterable

from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.judging import label_ids
from spacy_treecrf.evaluation.tagger import Chunk, Tagger
from spacy_treecrf.models.calibrating import best_temperature


def temperature_for(tagger: Tagger, chunks: Iterable[Chunk]) -> float:
    """The temperature under which the annotation of the chunks is most probable."""
    names = tagger.model.labels
    with Workers(tagger.threads) as workers:
        predictor = tagger.predictor(workers).without_rules()
        parts = [
            (predictor.apply(chunk.data), label_ids(names, chunk.gold))
            for chunk in chunks
            if chunk.gold is not None
        ]
        return best_temperature(parts)
