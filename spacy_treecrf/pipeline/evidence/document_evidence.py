"""What the rest of a document says, as evidence for the labels of spans; and how much it counts.

The weights are settings `agreement` and `parallels` of a pipe, or what the pipe was initialized
with. That stands in the pipe's cfg, so that pipes that were stored before there was a default
label as they did.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from spacy.attrs import IS_ALPHA, LOWER, ORTH  # type: ignore[import-not-found]
from spacy.tokens import Doc

from spacy_treecrf.pipeline.evidence.agreement import repeated_words
from spacy_treecrf.pipeline.evidence.opinion_pool import evidence_of, types_of, words_of
from spacy_treecrf.pipeline.evidence.parallels import FEWEST, like_places, may_look_alike
from spacy_treecrf.pipeline.tasks.span_tasks import EntsTask
from spacy_treecrf.pipeline.tasks.task import Task

if TYPE_CHECKING:  # numba is loaded when a pipe learns or predicts, not before
    from spacy_treecrf.models.predictor import ScoredSequences

# The settings, and their places in the pipe's cfg.
AGREEMENT, PARALLELS = WEIGHTS = "agreement", "parallels"
OF_ENTITIES = 0.5  # of both; found on held-out documents of the CoNLL-2003 training file
NONE = 0.0


class Weights(NamedTuple):
    """How much the evidence counts; None: as the pipe was initialized.

    agreement: of words that the document repeats. parallels: of places that look alike.
    """

    agreement: float | None
    parallels: float | None

    def initial(self, task: Task) -> dict[str, float]:
        """The weights of a newly initialized pipe, by name: where they are None, those of the task.

        Names of entities mean the same all over a document; of other spans nothing is known.
        """
        default = OF_ENTITIES if isinstance(task, EntsTask) else NONE
        own = self._asdict().items()
        return {name: default if weight is None else weight for name, weight in own}

    def decided(self, cfg: dict[str, Any]) -> Weights:
        """The weights with those of the pipe's cfg where they are None; 0 where it has none."""
        agreement, parallels = self
        if agreement is None:
            agreement = cfg.get(AGREEMENT, NONE)
        if parallels is None:
            parallels = cfg.get(PARALLELS, NONE)
        return Weights(agreement, parallels)


def is_weight(value: Any) -> bool:
    """Whether a value is a number from 0 to 1."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and bool(0.0 <= value <= 1.0)


def with_document_evidence(
    docs: Sequence[Doc], scored: ScoredSequences, labels: Sequence[str], weights: Weights
) -> ScoredSequences:
    """The scored sequences of docs, with so much of what the rest of each document says.

    weights: none of them None.
    """
    if not scored.data.n_rows or not any(weights):
        return scored
    if len(docs) == 1 and not may_have_places(docs[0], scored.data.n_sequences):
        return scored
    words, offsets = words_of(docs), scored.data.offsets
    found = []
    if weights.agreement:
        found.append((weights.agreement, repeated_words(words, offsets)))
    if weights.parallels:
        found.append((weights.parallels, like_places(docs, words, offsets)))
    places = [(weight, together) for weight, together in found if together is not None]
    if not places:
        return scored
    types, marginals = types_of(labels), scored.marginals()
    evidence = [np.float32(weight) * evidence_of(own, marginals, types) for weight, own in places]
    return scored.with_evidence(evidence[0] if len(evidence) == 1 else evidence[0] + evidence[1])


def may_have_places(doc: Doc, n_sequences: int) -> bool:
    """Whether a doc repeats a capitalised word, or may have places that look alike.

    Most sentences that come one by one have neither, and need none of the arrays.
    """
    values = doc.to_array([ORTH, LOWER, IS_ALPHA]).tolist()
    names = [lower for orth, lower, _ in values if orth != lower]
    if len(set(names)) < len(names):
        return True
    if len(names) < FEWEST or n_sequences > 1:  # sequences cut runs
        return len(names) >= FEWEST
    return may_look_alike(values)
