"""Predictions written to docs: the annotation of the task, and its probabilities."""

from __future__ import annotations

from collections.abc import Sequence

from spacy.tokens import Doc, Span

from spacy_treecrf.labels.biluo import TokenSpan, labels_of_spans
from spacy_treecrf.pipeline.annotation.confidence import (
    set_span_probabilities,
    set_token_probabilities,
)
from spacy_treecrf.pipeline.annotation.predictions import Prediction
from spacy_treecrf.pipeline.tasks.task import Task


def annotate(
    doc: Doc, prediction: Prediction, task: Task, *, min_prob: float, probabilities: bool
) -> None:
    """Write what the model says of a doc.

    min_prob: Spans that are less probable are not set. probabilities: Whether to set them as well.
    """
    spans, p_of_spans = prediction.spans, prediction.span_probabilities
    if p_of_spans and min_prob > 0.0:
        kept = [i for i, p in enumerate(p_of_spans) if p >= min_prob]
        spans, p_of_spans = [spans[i] for i in kept], [p_of_spans[i] for i in kept]
    made: list[Span] | None
    if hasattr(task, "annotate_spans"):  # a SpanTask; isinstance would take as long as the rest
        made = task.annotate_spans(doc, spans)
    elif task.constraints == "biluo":
        made = task.annotate(doc, labels_of_spans(spans, len(doc)))
    else:
        made = task.annotate(doc, prediction.labels)
    if probabilities and prediction.probabilities is not None:
        set_token_probabilities(doc, prediction.probabilities)
        if made and p_of_spans:
            if not _are_in_turn(made, spans):
                made, p_of_spans = _matched(made, spans, p_of_spans)
            set_span_probabilities(made, p_of_spans)


def _are_in_turn(made: Sequence[Span], spans: Sequence[TokenSpan]) -> bool:
    """Whether the spans that were made are the predicted ones; they may have lost whitespace."""
    if len(made) != len(spans):
        return False
    pairs = zip(made, spans, strict=True)
    return all(start <= span.start < end for span, (start, end, _) in pairs)


def _matched(
    made: Sequence[Span], spans: Sequence[TokenSpan], p_of_spans: Sequence[float]
) -> tuple[list[Span], list[float]]:
    """The spans that were made of predicted ones, by a token."""
    p_of_token = {
        token: p
        for (start, end, _), p in zip(spans, p_of_spans, strict=True)
        for token in range(start, end)
    }
    known = [span for span in made if span.start in p_of_token]
    return known, [p_of_token[span.start] for span in known]
