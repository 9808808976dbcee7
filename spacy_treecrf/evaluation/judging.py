"""What a model says of annotated data: its labels, how sure it is, and how probable the gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting import predict_marginals
from spacy_treecrf.engine.chain import log_probability_of
from spacy_treecrf.engine.residuals import allowed_labels
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.labels import Label
from spacy_treecrf.evaluation.taggers import Chunk, Tagger
from spacy_treecrf.models.model import Predictor


@dataclass
class Judged:
    """Sequences with gold and predicted labels; lists have an entry for each sequence."""

    gold: list[list[Label]] = field(default_factory=list)
    predicted: list[list[Label]] = field(default_factory=list)
    # P(predicted label) of each position
    probabilities: list[npt.NDArray[np.float64]] = field(default_factory=list)
    # log P(annotation), -inf where constraints forbid it
    log_likelihood: list[float] = field(default_factory=list)
    # annotated positions whose label the model knows: those that log_likelihood covers
    known: list[int] = field(default_factory=list)
    unseen: Counter[str] = field(default_factory=Counter)  # gold labels that the model lacks


def judge(tagger: Tagger, chunks: Iterable[Chunk]) -> Judged:
    """Label all chunks, which must be annotated."""
    judged = Judged()
    for chunk in chunks:
        _add(judged, tagger, chunk)
    return judged


def positions(chunk: Chunk, tagger: Tagger, labels: list[str]) -> npt.NDArray[np.float64]:
    """P(label) of the label given for each position; nan of labels that the model lacks."""
    return _chosen(_marginals(chunk, tagger), labels, tagger)


def _add(judged: Judged, tagger: Tagger, chunk: Chunk) -> None:
    model = tagger.model
    assert chunk.gold is not None
    ids_of = {label: i for i, label in enumerate(model.labels)}
    ids = np.array([ids_of.get(str(label), UNKNOWN_LABEL) for label in chunk.gold], np.int32)
    ids[[label is None for label in chunk.gold]] = UNKNOWN_LABEL
    judged.unseen.update(label for label in chunk.gold if label is not None and label not in ids_of)
    with Workers(tagger.threads) as workers:
        predictor = Predictor(model, workers)
        scores = predictor.scores(chunk.data)
        nodes = predict_marginals(scores, chunk.data, model.chain, workers)
    allowed = allowed_labels(ids, len(model.labels))
    judged.log_likelihood += log_probability_of(
        scores, chunk.data.offsets, model.chain, allowed
    ).tolist()
    labels = tagger.label(chunk)
    chosen = _chosen(nodes, labels, tagger)
    known = ids != UNKNOWN_LABEL
    for a, b in pairwise(chunk.data.offsets.tolist()):
        judged.gold.append(chunk.gold[a:b])
        judged.predicted.append(list(labels[a:b]))
        judged.probabilities.append(chosen[a:b])
        judged.known.append(int(known[a:b].sum()))


def _marginals(chunk: Chunk, tagger: Tagger) -> npt.NDArray[np.float64]:
    with Workers(tagger.threads) as workers:
        return Predictor(tagger.model, workers).marginals(chunk.data)


def _chosen(
    nodes: npt.NDArray[np.float64], labels: list[str], tagger: Tagger
) -> npt.NDArray[np.float64]:
    ids_of = {label: i for i, label in enumerate(tagger.model.labels)}
    ids = np.array([ids_of.get(label, -1) for label in labels], np.int64)
    if not len(ids):
        return np.zeros(0)
    return np.where(ids >= 0, nodes[np.arange(len(ids)), ids], np.nan)
