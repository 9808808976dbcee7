"""Predictions written to docs: the annotation of the task, and its probabilities."""

from __future__ import annotations

from spacy.tokens import Doc, Span

from spacy_treecrf.labels.biluo import labels_of_spans
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
    p_of_token: dict[int, float] = {}
    if p_of_spans:
        for (start, end, _), p in zip(spans, p_of_spans, strict=True):
            p_of_token.update(dict.fromkeys(range(start, end), p))
        if min_prob > 0.0:
            spans = [span for span, p in zip(spans, p_of_spans, strict=True) if p >= min_prob]
    made: list[Span] | None
    if hasattr(task, "annotate_spans"):  # a SpanTask; isinstance would take as long as the rest
        made = task.annotate_spans(doc, spans)
    elif task.constraints == "biluo":
        made = task.annotate(doc, labels_of_spans(spans, len(doc)))
    else:
        made = task.annotate(doc, prediction.labels)
    if probabilities and prediction.probabilities is not None:
        set_token_probabilities(doc, prediction.probabilities)
        # by a token: a span may have lost whitespace at its ends
        known = [span for span in made or [] if span.start in p_of_token]
        set_span_probabilities(known, [p_of_token[span.start] for span in known])
