"""Spans that fitted estimators find together, by the means of their probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice

from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.estimators.base import SequenceEstimator, encoded
from spacy_treecrf.estimators.checking import FeatureSequences
from spacy_treecrf.models.predictor import Predictor, ScoredSequences
from spacy_treecrf.models.spans.probable_spans import (
    ProbableSpan,
    Spelling,
    expected_number,
    probable_spans,
)
from spacy_treecrf.models.spans.spans_for_f1 import (
    FOR_F1,
    LOWEST_THRESHOLD,
    best_spans,
    check_threshold,
    highest_f1,
)

# Sequences that several models score together.
SPANS_OF_MODELS_AT_ONCE = 500


def spans_of(
    models: Sequence[SequenceEstimator], X: FeatureSequences, threshold: float | str
) -> list[list[ProbableSpan]]:
    """The spans of each sequence that are above a threshold, and do not overlap."""
    check_threshold(threshold)
    if isinstance(threshold, str):
        assert threshold == FOR_F1
        found, n_expected = possible_spans(models, X)
        lowest = max(highest_f1(found, n_expected) / 2.0, LOWEST_THRESHOLD)
    else:
        found, _ = possible_spans(models, X, threshold)
        lowest = threshold
    return [best_spans(own, lowest) for own in found]


def possible_spans(
    models: Sequence[SequenceEstimator], X: FeatureSequences, threshold: float = LOWEST_THRESHOLD
) -> tuple[list[list[ProbableSpan]], float]:
    """All spans above a threshold, and the number of spans that the models expect in X."""
    spellings = [Spelling.of(each._fitted().labels) for each in models]
    found: list[list[ProbableSpan]] = []
    n_expected = 0.0
    with ExitStack() as stack:
        predictors = [stack.enter_context(each._predictor()) for each in models]
        for scored in _scored(predictors, X):
            found += probable_spans(scored, spellings, threshold)
            numbers = map(expected_number, scored, spellings)
            n_expected += sum(numbers) / len(models)
    return found, n_expected


def _scored(
    predictors: Sequence[Predictor], X: FeatureSequences
) -> Iterator[list[ScoredSequences]]:
    """Some sequences after others, each time under all models."""
    if len(predictors) == 1:
        for data in encoded(predictors[0].model, X):
            yield [predictors[0].apply(data)]
        return
    sequences = iter(X)
    while some := list(islice(sequences, SPANS_OF_MODELS_AT_ONCE)):
        yield [
            predictor.apply(Sequences.unlabelled(*predictor.model.columns.encode(some)))
            for predictor in predictors
        ]
