"""The protocol of tasks, and how all of them look at docs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from spacy.attrs import IDS as _ATTRIBUTES  # type: ignore[import-not-found]
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_treecrf.labels.biluo import Label, TokenSpan

Weights = dict[str, float | None]

# Scores that the pipe itself adds to those of every task.
PIPE_WEIGHTS: Weights = {"treecrf_nll": None}


@runtime_checkable
class Task(Protocol):
    """What a label means; register a function that returns one to add your own.

    constraints: The hard constraints that its labels follow: "biluo" or "none".
    score_weights: The weights of the scores of `score`; None: not part of the final score.
    """

    @property
    def constraints(self) -> str: ...

    @property
    def score_weights(self) -> Weights: ...

    def gold(self, example: Example) -> list[Label]:
        """The label of each token of example.predicted; None if missing or misaligned."""
        ...

    def preset(self, doc: Doc) -> list[Label] | None:
        """Labels that are set and must stay, None at free tokens; None if all tokens are free."""
        ...

    def annotate(self, doc: Doc, labels: Sequence[str]) -> list[Span] | None:
        """Write one label for each token; return the spans this made, None if it makes none."""
        ...

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Scores of example.predicted, by the scorer that spaCy has for this annotation."""
        ...


@runtime_checkable
class SpanTask(Task, Protocol):
    """A task of spans that takes them as they are, without a way through labels."""

    def annotate_spans(self, doc: Doc, spans: Sequence[TokenSpan]) -> list[Span]:
        """Write spans of tokens; return those that this made."""
        ...


def token_values(doc: Doc, attr: str) -> npt.NDArray[np.uint64]:
    """The values that spaCy stores for an attribute of tokens. shape: (n_tokens,)"""
    values: npt.NDArray[np.uint64] = doc.to_array([_ATTRIBUTES[attr]])  # type: ignore[assignment]
    return values


def same_tokens(example: Example) -> bool:
    """Whether both docs have the same words: then spaCy's alignment, a slow one, is not needed."""
    predicted, reference = example.predicted, example.reference
    if predicted is reference:
        return True
    if len(predicted) != len(reference):
        return False
    return token_values(predicted, "ORTH").tobytes() == token_values(reference, "ORTH").tobytes()


def check_length(doc: Doc, labels: Sequence[str]) -> None:
    if len(labels) != len(doc):
        raise ValueError(f"treecrf: {len(labels)} labels for a doc of {len(doc)} tokens")
