"""Predictions written to docs: the annotation of the task, and its probabilities."""

from __future__ import annotations

from collections.abc import Sequence

from spacy.tokens import Doc, Span

from spacy_treecrf.labels.biluo import TokenSpan, labels_of_spans
from spacy_treecrf.pipeline.confidence import set_span_probabilities, set_token_probabilities
from spacy_treecrf.pipeline.predictions import Prediction
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
    takes_spans = hasattr(task, "annotate_spans")  # isinstance would take as long as the rest
    if takes_spans:
        made = task.annotate_spans(doc, spans)  # type: ignore[attr-defined]
    elif task.constraints == "biluo":
        made = task.annotate(doc, labels_of_spans(spans, len(doc)))
    else:
        made = task.annotate(doc, prediction.labels)
    if probabilities and prediction.probabilities is not None:
        set_token_probabilities(doc, prediction.probabilities)
        if made and p_of_spans:
            if not takes_spans or len(made) < len(spans):
                made, p_of_spans = _matched(made, spans, p_of_spans)
            set_span_probabilities(made, p_of_spans)


def _matched(
    made: Sequence[Span], spans: Sequence[TokenSpan], p_of_spans: Sequence[float]
) -> tuple[list[Span], list[float]]:
    """The spans that were made of predicted ones, by a token: they may have lost whitespace."""
    p_of_token = {
        token: p
        for (start, end, _), p in zip(spans, p_of_spans, strict=True)
        for token in range(start, end)
    }
    known = [span for span in made if span.start in p_of_token]
    return known, [p_of_token[span.start] for span in known]
