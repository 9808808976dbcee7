"""A closer look at a model on annotated data: words, probabilities of spans, and its errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.evaluation.figures import have_spans
from spacy_treecrf.evaluation.judging import Judged, add_chunk
from spacy_treecrf.evaluation.spans import sequence_spans
from spacy_treecrf.evaluation.tagger import Chunk, Tagger
from spacy_treecrf.labels.biluo import Label, TokenSpan
from spacy_treecrf.labels.schemes import are_span_labels, conll_spans
from spacy_treecrf.models.predictor import ScoredSequences
from spacy_treecrf.models.scored_blocks import Evidence
from spacy_treecrf.models.spans.read_spans import read_span_probabilities

MOST_ERRORS = 20  # that are kept with their encoded rows


@dataclass(frozen=True)
class LabelError:
    """Neighbouring tokens with wrong labels, and all of the spans that these belong to."""

    sequence: int
    start: int
    end: int
    wrong: int  # the first token whose label is wrong
    probability: float  # P(the predicted labels from start to end), nan where it is not known
    rows: Sequences | None = None  # the sequence as the model sees it, of the most probable errors
    evidence: Evidence | None = None  # what was added to the model's scores of these rows


@dataclass
class Observed:
    """Judged sequences and what else is known of them; lists have an entry for each sequence."""

    judged: Judged = field(default_factory=Judged)
    words: list[list[str]] = field(default_factory=list)
    # P(exactly this span) of each predicted one, in the order of `conll_spans(predicted)`; nan
    # where the model lacks one of its labels
    span_probabilities: list[npt.NDArray[np.float64]] = field(default_factory=list)
    errors: list[LabelError] = field(default_factory=list)  # the most probable first
    has_spans: bool = False  # whether the labels mark spans


def observe(tagger: Tagger, chunks: Iterable[Chunk], most_errors: int = MOST_ERRORS) -> Observed:
    """Label all chunks, which must be annotated, and look closely.

    most_errors: How many errors keep the rows that can explain them.
    """
    observed = Observed(has_spans=are_span_labels(tagger.model.labels))
    with Workers(tagger.threads) as workers:
        for chunk in chunks:
            scored = tagger.apply(chunk, workers)
            ids = add_chunk(observed.judged, tagger, chunk, scored)
            _add_details(observed, chunk, scored, ids, tagger.model.labels)
            _drop_rows(observed.errors, most_errors)
    observed.has_spans = observed.has_spans and have_spans(observed.judged)
    return observed


def error_ranges(
    gold: Sequence[Label], predicted: Sequence[Label], spans: bool
) -> list[tuple[int, int, int]]:
    """Wrong tokens as (start, end, first wrong one), widened to the whole spans they are in."""
    wrong = [i for i, a in enumerate(gold) if a is not None and a != predicted[i]]
    around: list[TokenSpan] = []
    if spans:
        around = [span for own in sequence_spans(gold, predicted) for span in own]
    found: list[tuple[int, int, int]] = []
    for i in wrong:
        start, end = i, i + 1
        for first, last, _ in around:
            if first <= i < last:
                start, end = min(start, first), max(end, last)
        if found and (start < found[-1][1] or i == found[-1][1]):
            start, end = min(start, found[-1][0]), max(end, found[-1][1])
            i = found.pop()[2]
        found.append((start, end, i))
    return found


def _add_details(
    observed: Observed,
    chunk: Chunk,
    scored: ScoredSequences,
    ids: npt.NDArray[np.int32],
    labels: Sequence[str],
) -> None:
    judged = observed.judged
    first = len(observed.words)
    offsets = chunk.data.offsets.tolist()
    words = [word for s in range(len(chunk.rows)) for word in chunk.words(s)]
    spans: list[TokenSpan] = []
    errors: list[tuple[int, int, int, int]] = []
    counts = []
    for s, (a, b) in enumerate(pairwise(offsets), start=first):
        observed.words.append(words[a:b])
        gold, predicted = judged.gold[s], judged.predicted[s]
        read = conll_spans(predicted) if observed.has_spans else []
        own = [(a + i, a + j, name) for i, j, name in read]
        counts.append(len(own))
        spans += own
        errors += [
            (s, a + i, a + j, a + k)
            for i, j, k in error_ranges(gold, predicted, observed.has_spans)
        ]
    rows_of_spans = np.array([span[:2] for span in spans], np.int64).reshape(-1, 2)
    exact = read_span_probabilities(scored, spans, labels)
    exact[_lacks_labels(rows_of_spans, ids)] = np.nan
    rows_of_errors = np.array([(i, j) for _, i, j, _ in errors], np.int64).reshape(-1, 2)
    chances = _probabilities(scored, rows_of_errors, ids)
    ends = np.cumsum([0, *counts])
    observed.span_probabilities += [exact[a:b] for a, b in pairwise(ends.tolist())]
    evidence = scored.evidence
    for (s, i, j, k), p in zip(errors, chances.tolist(), strict=True):
        a, b = offsets[s - first], offsets[s - first + 1]
        rows = chunk.data.part(s - first, s - first + 1)
        added = None if evidence is None else evidence[a:b]
        observed.errors.append(LabelError(s, i - a, j - a, k - a, p, rows, added))


def _probabilities(
    scored: ScoredSequences, spans: npt.NDArray[np.int64], ids: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64]:
    """P(the labels of each span); nan where the model lacks one of them."""
    unknown = _lacks_labels(spans, ids)
    found = np.full(len(spans), np.nan)
    found[~unknown] = scored.span_probabilities(spans[~unknown], np.maximum(ids, 0))
    return found


def _lacks_labels(
    spans: npt.NDArray[np.int64], ids: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Whether the model lacks a label of each span."""
    lacking = np.concatenate([[0], np.cumsum(ids == UNKNOWN_LABEL)])
    found: npt.NDArray[np.bool_] = lacking[spans[:, 1]] > lacking[spans[:, 0]]
    return found


def _drop_rows(errors: list[LabelError], most: int) -> None:
    """Sort errors, the most probable first, and let the rows of all but the first go."""
    errors.sort(
        key=lambda one: (-np.nan_to_num(one.probability, nan=-1.0), one.sequence, one.start)
    )
    for i, error in enumerate(errors[most:], start=most):
        if error.rows is not None:
            errors[i] = LabelError(
                error.sequence, error.start, error.end, error.wrong, error.probability
            )
