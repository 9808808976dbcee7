"""The numbers of a report: what evaluation finds out about a model on annotated data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spacy_treecrf.evaluation.bootstrap import CONFIDENCE, RESAMPLES
from spacy_treecrf.evaluation.calibration import CalibrationBins, calibration_bins
from spacy_treecrf.evaluation.figures import (
    N_BINS,
    Comparison,
    Figures,
    Progress,
    compare_judged,
    figures_of,
)
from spacy_treecrf.evaluation.groups import (
    LENGTH_GROUPS,
    SEQUENCE_LENGTH_GROUPS,
    GroupScore,
    label_groups,
    length_group,
    sequence_length_group,
    span_groups,
    token_groups,
    word_is_known,
)
from spacy_treecrf.evaluation.inspection import Summary, inspection_of
from spacy_treecrf.evaluation.observing import LabelError, Observed
from spacy_treecrf.evaluation.span_confusion import SpanConfusion, span_confusion
from spacy_treecrf.evaluation.thresholds import (
    OperatingPoint,
    operating_points,
    span_answers,
    token_answers,
)
from spacy_treecrf.labels.biluo import Label, TokenSpan
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.report.learning import LearningCurve

KNOWN, UNKNOWN = "known words only", "with unknown words"
MOST_LABELS = 40  # that have scores of their own, where labels mark no spans
TOP_FEATURES = 12


@dataclass(frozen=True)
class Resampling:
    """How intervals are made."""

    resamples: int = RESAMPLES
    confidence: float = CONFIDENCE
    seed: int = 0
    progress: Progress = iter

    @property
    def options(self) -> dict[str, Any]:
        return dict(vars(self))

    @property
    def quiet(self) -> dict[str, Any]:
        return {**self.options, "progress": iter}


@dataclass(frozen=True)
class ShownError:
    """One of the errors that the model is most sure of."""

    words: list[str]  # of the sequence
    gold: list[Label]
    predicted: list[Label]
    error: LabelError
    explanation: dict[str, Any] | None  # JSON of the token explanation, where there is one


@dataclass(frozen=True)
class Groups:
    """Scores of parts of the data."""

    by_type: list[GroupScore]
    by_words: list[GroupScore] | None  # None: the model has no features of words
    by_length: list[GroupScore]  # of spans; none where labels mark no spans
    by_sequence: list[GroupScore]  # by the length of the sequence


@dataclass(frozen=True)
class Report:
    """All numbers of a report."""

    model: str
    data: str
    confidence: float
    has_spans: bool
    figures: Figures
    groups: Groups
    span_calibration: CalibrationBins | None
    points: list[OperatingPoint]
    confusion: SpanConfusion | None  # None: labels mark no spans
    errors: list[ShownError]
    n_errors: int
    curves: list[LearningCurve]
    inspection: Summary


@dataclass(frozen=True)
class Rival:
    """Another model on the same data."""

    model: str
    figures: Figures
    points: list[OperatingPoint]
    comparison: Comparison


Explain = Callable[[ShownError], "dict[str, Any] | None"]


def report_of(
    names: tuple[str, str],
    model: SequenceModel,
    observed: Observed,
    *,
    curves: Sequence[LearningCurve] = (),
    explain: Explain = lambda error: None,
    most_errors: int = 20,
    resampling: Resampling | None = None,
) -> Report:
    """The report on a model. names: of the model and the data.

    explain: A function that explains an error's first wrong token.
    """
    resampling = resampling or Resampling()
    answers = (span_answers if observed.has_spans else token_answers)(observed)
    span_calibration = None
    if observed.has_spans:
        known = answers.probabilities == answers.probabilities  # not nan
        span_calibration = calibration_bins(
            answers.probabilities[known], answers.right[known], n_bins=N_BINS
        )
    return Report(
        *names,
        confidence=resampling.confidence,
        has_spans=observed.has_spans,
        figures=figures_of(observed.judged, **resampling.options),
        groups=groups_of(observed, model, resampling),
        span_calibration=span_calibration,
        points=operating_points(answers),
        confusion=span_confusion(observed.judged) if observed.has_spans else None,
        errors=_errors(observed, most_errors, explain),
        n_errors=len(observed.errors),
        curves=list(curves),
        inspection=inspection_of(model, TOP_FEATURES),
    )


def rival_of(
    name: str, own: Observed, other: Observed, resampling: Resampling | None = None
) -> Rival:
    """The other model, and whether it is better than the model of the report."""
    resampling = resampling or Resampling()
    answers = (span_answers if other.has_spans else token_answers)(other)
    return Rival(
        name,
        figures_of(other.judged, **resampling.quiet),
        operating_points(answers),
        compare_judged(own.judged, other.judged, **resampling.options),
    )


def groups_of(observed: Observed, model: SequenceModel, resampling: Resampling) -> Groups:
    """Scores by type or label, by known and unknown words, and by length."""
    judged, options = observed.judged, resampling.quiet
    lengths = [sequence_length_group(len(words)) for words in observed.words]
    is_known = word_is_known(model.columns.feature_names)

    def by_words(s: int, start: int, end: int) -> str:
        assert is_known is not None
        return KNOWN if all(map(is_known, observed.words[s][start:end])) else UNKNOWN

    if observed.has_spans:
        names = sorted(figures_of(judged, resamples=0).per_type)
        return Groups(
            span_groups(judged, lambda s, span: span[2], names, **options),
            span_groups(
                judged, lambda s, span: by_words(s, *_tokens(span)), [KNOWN, UNKNOWN], **options
            )
            if is_known
            else None,
            span_groups(
                judged,
                lambda s, span: length_group(len(range(*_tokens(span)))),
                LENGTH_GROUPS,
                **options,
            ),
            span_groups(judged, lambda s, span: lengths[s], SEQUENCE_LENGTH_GROUPS, **options),
        )
    labels = figures_of(judged, resamples=0).confusion.labels[:MOST_LABELS]
    return Groups(
        label_groups(judged, labels, **options),
        token_groups(judged, lambda s, i: by_words(s, i, i + 1), [KNOWN, UNKNOWN], **options)
        if is_known
        else None,
        [],
        token_groups(judged, lambda s, i: lengths[s], SEQUENCE_LENGTH_GROUPS, **options),
    )


def _tokens(span: TokenSpan) -> tuple[int, int]:
    """The tokens of a span; one that tokens cannot spell is empty, and has that at its start."""
    return span[0], max(span[0] + 1, span[1])


def _errors(observed: Observed, most: int, explain: Explain) -> list[ShownError]:
    judged = observed.judged
    shown = []
    for error in observed.errors[:most]:
        s = error.sequence
        own = ShownError(observed.words[s], judged.gold[s], judged.predicted[s], error, None)
        shown.append(ShownError(own.words, own.gold, own.predicted, error, explain(own)))
    return shown
