"""How probable the annotation of docs is, and how far probabilities are to be believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from spacy.tokens import Span
from spacy.training import Example

from spacy_treecrf.evaluation.calibration import expected_calibration_error
from spacy_treecrf.labels.biluo import write_span
from spacy_treecrf.pipeline.label_names import unknown_label
from spacy_treecrf.pipeline.pipe_protocols import LearningPipe
from spacy_treecrf.pipeline.sequencing import starts_of

if TYPE_CHECKING:  # numba is loaded when a pipe learns or predicts, not before
    from spacy_treecrf.models.predictor import ScoredSequences


def likelihood_of_examples(
    pipe: LearningPipe, examples: Sequence[Example], agreed: bool = False
) -> dict[str, float | None]:
    """-log P(annotation) per token and calibration error of a pipe.

    agreed: Of the probabilities that the pipe gives, and not of those that it learns by.
    """
    learner = pipe.learner
    ids = learner.label_ids(learner.gold(examples))
    docs = [example.predicted for example in examples]
    with pipe.predictor() as predictor:
        # As in training: rules that gold breaks would leave out what the model does worst.
        scored = predictor.without_rules().apply(pipe.encode(docs))
        return likelihood_of(pipe.agreed(docs, scored) if agreed else scored, ids)


def probability_of_span(pipe: LearningPipe, span: Span, label: str) -> float:
    """P(the tokens of a span are exactly one span of this label)."""
    doc = span.doc
    if pipe.task.constraints != "biluo":
        raise ValueError("treecrf: only entities and spans have a span's probability")
    if label not in pipe.labels:
        raise unknown_label(label, pipe.name, pipe.labels)
    starts = starts_of(doc, pipe.sequence).tolist()
    if not len(span) or any(span.start < s < span.end for s in starts):
        return 0.0
    wanted: list[str | None] = [None] * len(doc)
    write_span(wanted, span.start, span.end, label)
    ids = pipe.learner.label_ids([wanted])
    with pipe.predictor() as predictor:
        scored = pipe.agreed([doc], predictor.apply(pipe.encode([doc])))
        return float(scored.span_probabilities(np.array([[span.start, span.end]]), ids)[0])


def likelihood_of(scored: ScoredSequences, ids: npt.NDArray[np.int32]) -> dict[str, float | None]:
    """-log P(annotation) per annotated token, and calibration error of the most probable labels.

    ids: Of the annotated labels, -1 where there is none.
    """
    known = ids >= 0
    if not known.any():
        return {"treecrf_nll": None, "treecrf_ece": None}
    log_p = scored.log_probability_of(ids)
    nodes = scored.marginals()[known]
    # Constraints may forbid a gold annotation: then nothing can be said of the sequence.
    possible = np.isfinite(log_p)
    n_known = np.add.reduceat(known, scored.data.offsets[:-1])[possible].sum()
    error = expected_calibration_error(nodes.max(axis=1), nodes.argmax(axis=1) == ids[known])
    nll = float(-log_p[possible].sum() / n_known) if n_known else None
    return {"treecrf_nll": nll, "treecrf_ece": error}
