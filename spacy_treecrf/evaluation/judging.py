"""Judging of a model by annotated data: its labels, their probabilities, P(annotation)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.sequences import UNKNOWN_LABEL
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.spans import sequence_spans
from spacy_treecrf.evaluation.tagger import Chunk, Tagger
from spacy_treecrf.labels.biluo import Label, TokenSpan
from spacy_treecrf.models.predictor import ScoredSequences


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
    cut: bool = False  # whether sequences were cut out of docs, see `sequence_spans`
    # By sequence, gold spans that its tokens cannot spell; see `sequence_spans`.
    unaligned: dict[int, list[TokenSpan]] = field(default_factory=dict)
    all_unaligned: bool = False  # whether a doc is annotated, but its labels fit no token

    def spans(self) -> Iterator[tuple[list[TokenSpan], list[TokenSpan]]]:
        """Gold and predicted spans of each sequence; see `sequence_spans`."""
        for s, (gold, predicted) in enumerate(zip(self.gold, self.predicted, strict=True)):
            yield sequence_spans(gold, predicted, self.cut, self.unaligned.get(s, ()))


def judge(tagger: Tagger, chunks: Iterable[Chunk]) -> Judged:
    """Label all chunks, which must be annotated, and keep what figures need."""
    judged = Judged()
    with Workers(tagger.threads) as workers:
        for chunk in chunks:
            add_chunk(judged, tagger, chunk, tagger.apply(chunk, workers))
    return judged


def require_gold(judged: Judged, model: str, data: str) -> None:
    """Refuse data without any annotation. model, data: Their names."""
    if any(label is not None for labels in judged.gold for label in labels):
        return
    if judged.all_unaligned:
        raise ValueError(
            f"treecrf: {data} is annotated, but its tokens do not align with those into which "
            f"{model} cuts its text, and no label fits; train the pipeline with a tokenizer that "
            "makes such tokens, as `spacy-treecrf init --lang` writes it, or read docs as in "
            "training"
        )
    raise ValueError(
        f"treecrf: {data} holds no gold label for {model}; pass data that are annotated for "
        "its task"
    )


def chosen_probabilities(
    scored: ScoredSequences, names: list[str], labels: list[str]
) -> npt.NDArray[np.float64]:
    """P(label) of the label given for each position; nan of labels that the model lacks.

    names: the model's labels by id.
    """
    ids = label_ids(names, labels)
    if not len(ids):
        return np.zeros(0)
    chosen = scored.marginals()[np.arange(len(ids)), np.maximum(ids, 0)]
    return np.where(ids == UNKNOWN_LABEL, np.nan, chosen)


def label_ids(names: list[str], labels: Sequence[Label]) -> npt.NDArray[np.int32]:
    """Ids of labels; UNKNOWN_LABEL for what is not annotated, and for labels the model lacks."""
    ids: dict[Label, int] = {name: i for i, name in enumerate(names)}
    return np.array([ids.get(label, UNKNOWN_LABEL) for label in labels], np.int32)


def add_chunk(
    judged: Judged, tagger: Tagger, chunk: Chunk, scored: ScoredSequences
) -> npt.NDArray[np.int32]:
    """Judge one more chunk, which is annotated; returns the ids of the labels it got."""
    assert chunk.gold is not None
    names = tagger.model.labels
    judged.cut |= chunk.cut
    judged.all_unaligned |= chunk.all_unaligned
    _add_unaligned(judged, chunk)
    ids = label_ids(names, chunk.gold)
    lacking = (label for label in chunk.gold if label is not None and label not in names)
    judged.unseen.update(lacking)
    judged.log_likelihood += scored.log_probability_of(ids).tolist()
    labels = tagger.label(chunk, scored)
    chosen = chosen_probabilities(scored, names, labels)
    known = ids != UNKNOWN_LABEL
    for a, b in pairwise(chunk.data.offsets.tolist()):
        judged.gold.append(chunk.gold[a:b])
        judged.predicted.append(list(labels[a:b]))
        judged.probabilities.append(chosen[a:b])
        judged.known.append(int(known[a:b].sum()))
    return label_ids(names, labels)


def _add_unaligned(judged: Judged, chunk: Chunk) -> None:
    """Put each span that tokens cannot spell into the sequence that it begins in."""
    offsets = chunk.data.offsets
    for start, end, name in chunk.unaligned:
        own = min(int(np.searchsorted(offsets, start, side="right")), len(offsets) - 1) - 1
        a, b = offsets[own : own + 2].tolist()
        sequence = judged.unaligned.setdefault(len(judged.gold) + own, [])
        sequence.append((start - a, min(end, b) - a, name))
