"""Spans that fitted estimators find together, by the means of their probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.estimators.base import SequenceEstimator, encoded
from spacy_treecrf.estimators.checking import FeatureSequences
from spacy_treecrf.models.predictor import Predictor, ScoredSequences
from spacy_treecrf.models.spans.probable_spans import (
    ProbableSpan,
    Spelling,
    begun_inside,
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

# Labels must be those of IOB1 where I begins so many spans, and so many for each that B begins.
FEWEST_OF_IOB1, OF_IOB1 = 30.0, 4.0
# Sequences that several models score together.
SPANS_OF_MODELS_AT_ONCE = 500


def with_others(
    model: SequenceEstimator, beside: Sequence[SequenceEstimator], kind: type[SequenceEstimator]
) -> list[SequenceEstimator]:
    """A model and those beside it, which must be of a kind."""
    if isinstance(beside, SequenceEstimator):
        raise ValueError("treecrf: beside is one model; use a list of models")
    for each in beside:
        if not isinstance(each, kind):
            raise ValueError(
                f"treecrf: beside holds a {type(each).__name__}; use fitted {kind.__name__}s"
            )
    return [model, *beside]


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
    expected = np.zeros(len(models))
    inside = np.zeros(len(models))
    with ExitStack() as stack:
        predictors = [stack.enter_context(each._predictor()) for each in models]
        for scored in _scored(predictors, X):
            found += probable_spans(scored, spellings, threshold)
            expected += [*map(expected_number, scored, spellings)]
            inside += [
                begun_inside(own, spelling) if spelling.may_be_iob1 else 0.0
                for own, spelling in zip(scored, spellings, strict=True)
            ]
    _refuse_iob1(expected, inside)
    return found, float(expected.mean())


def _refuse_iob1(expected: npt.NDArray[np.float64], inside: npt.NDArray[np.float64]) -> None:
    """Refuse models whose spans begin with I although they have B, as labels of IOB1 do.

    expected: How many spans B begins, for each model. inside: How many I begins, or 0.
    """
    for by_b, by_i in zip(expected, inside, strict=True):
        if by_i > max(FEWEST_OF_IOB1, OF_IOB1 * by_b):
            raise ValueError(
                f"treecrf: a model expects that I begins {by_i:.0f} spans and B {by_b:.0f}, so its "
                "labels are IOB1; train it on BIO labels, which "
                "spacy_treecrf.labels.schemes.to_bio makes of them"
            )


def _scored(
    predictors: Sequence[Predictor], X: FeatureSequences
) -> Iterator[list[ScoredSequences]]:
    """Some sequences after others, each time under all models; a beam prunes nothing of them."""
    if len(predictors) == 1:
        for data in encoded(predictors[0].model, X):
            yield [predictors[0].apply(data).unpruned()]
        return
    sequences = iter(X)
    while some := list(islice(sequences, SPANS_OF_MODELS_AT_ONCE)):
        yield [
            predictor.apply(Sequences.unlabelled(*predictor.model.columns.encode(some))).unpruned()
            for predictor in predictors
        ]
