"""Tasks whose labels are spans in BILUO: doc.ents, doc.spans[key]."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from spacy.pipeline.spancat import spancat_score
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.util import filter_spans

from spacy_treecrf.labels.biluo import OUTSIDE, Label, TokenSpan, biluo_spans, write_span
from spacy_treecrf.pipeline.tasks.task import (
    PIPE_WEIGHTS,
    Weights,
    check_length,
    same_tokens,
    token_values,
)

Flags = npt.NDArray[np.bool_]

# Values of token.ent_iob; a token with BEGIN and no type is blocked: never part of an entity.
_INSIDE, _OUTSIDE, _BEGIN = 1, 2, 3


@dataclass(frozen=True)
class EntsTask:
    """The labels are doc.ents in BILUO.

    overwrite: False keeps the entities and blocked tokens that a Doc has, like spaCy's `ner`, and
        adds entities between them; True replaces all of them. A token that is only marked as
        outside is free either way.
    Whitespace is cut off both ends of an entity, which spaCy calls invalid there.
    """

    overwrite: bool = False
    constraints: ClassVar[str] = "biluo"

    @property
    def score_weights(self) -> Weights:
        return {
            "ents_f": 1.0,
            "ents_p": 0.0,
            "ents_r": 0.0,
            "ents_per_type": None,
            "ents_token_acc": None,
            **PIPE_WEIGHTS,
        }

    def gold(self, example: Example) -> list[Label]:
        if not same_tokens(example):
            return _trim(example.predicted, list(example.get_aligned_ner()))
        labels = self._read(example.reference)
        if example.reference.has_annotation("ENT_IOB"):
            for i in np.flatnonzero(token_values(example.predicted, "IS_SPACE")):
                labels[i] = labels[i] or OUTSIDE
        return _trim(example.predicted, labels)

    def preset(self, doc: Doc) -> list[Label] | None:
        blocked, taken = ([], None) if self.overwrite else _held(doc)
        if taken is None:
            return None
        labels: list[Label] = [None] * len(doc)
        for i in blocked:
            labels[i] = OUTSIDE
        _write_spans(labels, doc.ents)
        return labels

    def annotate(self, doc: Doc, labels: Sequence[str]) -> list[Span]:
        check_length(doc, labels)
        return self.annotate_spans(doc, biluo_spans(labels))

    def annotate_spans(self, doc: Doc, spans: Sequence[TokenSpan]) -> list[Span]:
        if self.overwrite:
            _forget_ids(doc)
        blocked, taken = ([], None) if self.overwrite else _held(doc)
        kept = [] if taken is None else doc.ents
        made = _make_spans(doc, spans, taken)
        doc.set_ents([*kept, *made], blocked=[doc[i : i + 1] for i in blocked], default="outside")
        return made

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        examples = list(examples)
        pairs = ((self._read(example.predicted), self.gold(example)) for example in examples)
        return {**get_ner_prf(examples, **kwargs), "ents_token_acc": _token_accuracy(pairs)}

    def _read(self, doc: Doc) -> list[Label]:
        iob = token_values(doc, "ENT_IOB").tolist()
        labels: list[Label] = [OUTSIDE if value == _OUTSIDE else None for value in iob]
        _write_spans(labels, doc.ents)
        return labels


@dataclass(frozen=True)
class SpansTask:
    """The labels are doc.spans[key] in BILUO, for instance chunks.

    A Doc without the key is not annotated; a key without spans says that there are none. One label
    per token cannot express overlapping spans: the longest is learned, and of the others the
    tokens outside of it count as not annotated, as do the tokens of spans without a label. Scores
    count all gold spans.

    overwrite: False keeps the spans that a Doc has under the key and adds others between them.
    """

    key: str = "sc"
    overwrite: bool = True
    constraints: ClassVar[str] = "biluo"

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not self.key:
            raise ValueError(
                f"treecrf: key of the spans task is {self.key!r}; name a key of doc.spans"
            )

    @property
    def score_weights(self) -> Weights:
        name = f"spans_{self.key}"
        return {
            f"{name}_f": 1.0,
            f"{name}_p": 0.0,
            f"{name}_r": 0.0,
            f"{name}_per_type": None,
            f"{name}_token_acc": None,
            **PIPE_WEIGHTS,
        }

    def gold(self, example: Example) -> list[Label]:
        if same_tokens(example):
            return _trim(example.predicted, self._read(example.reference))
        spans, flat = self._spans(example.reference)
        if spans is None:
            return [None] * len(example.predicted)
        labels: list[Label] = [OUTSIDE] * len(example.predicted)
        for span in spans:
            for i in example.alignment.y2x[span.start : span.end]:
                labels[i] = None
        _write_spans(labels, example.get_aligned_spans_y2x(flat))
        return _trim(example.predicted, labels)

    def preset(self, doc: Doc) -> list[Label] | None:
        spans, flat = self._spans(doc)
        if self.overwrite or not spans:
            return None
        labels: list[Label] = [None] * len(doc)
        for span in spans:
            labels[span.start : span.end] = [OUTSIDE] * len(span)
        _write_spans(labels, flat)
        return labels

    def annotate(self, doc: Doc, labels: Sequence[str]) -> list[Span]:
        check_length(doc, labels)
        return self.annotate_spans(doc, biluo_spans(labels))

    def annotate_spans(self, doc: Doc, spans: Sequence[TokenSpan]) -> list[Span]:
        old = None if self.overwrite else doc.spans.get(self.key)
        if old is None:
            made = _make_spans(doc, spans, None)
            doc.spans[self.key] = made
            return made
        taken = np.zeros(len(doc), dtype=bool)
        for span in old:
            taken[span.start : span.end] = True
        made = _make_spans(doc, spans, taken)
        both = sorted([*old, *made], key=lambda span: (span.start, span.end))
        doc.spans[self.key] = SpanGroup(doc, name=old.name, attrs=old.attrs, spans=both)
        return made

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        examples = list(examples)
        pairs = ((self._read(example.predicted), self.gold(example)) for example in examples)
        scores = spancat_score(examples, **{**kwargs, "spans_key": self.key})
        return {**scores, f"spans_{self.key}_token_acc": _token_accuracy(pairs)}

    def _spans(self, doc: Doc) -> tuple[list[Span] | None, list[Span]]:
        """All spans of a doc (None: not annotated), and those that labels can express."""
        group = doc.spans.get(self.key)
        if group is None:
            return None, []
        spans = [span for span in group if len(span)]
        return spans, filter_spans(span for span in spans if span.label_)

    def _read(self, doc: Doc) -> list[Label]:
        spans, flat = self._spans(doc)
        if spans is None:
            return [None] * len(doc)
        labels: list[Label] = [OUTSIDE] * len(doc)
        for span in spans:
            labels[span.start : span.end] = [None] * len(span)
        _write_spans(labels, flat)
        return labels


def _write_spans(labels: list[Label], spans: Iterable[Span]) -> None:
    for span in spans:
        write_span(labels, span.start, span.end, span.label_)


def _trim(doc: Doc, labels: list[Label]) -> list[Label]:
    """The labels with whitespace taken off both ends of every span."""
    for start, end, name in biluo_spans(labels):
        first, last = _without_whitespace(doc, start, end)
        if (first, last) != (start, end):
            labels[start:end] = [OUTSIDE] * (end - start)
            if first < last:
                write_span(labels, first, last, name)
    return labels


def _make_spans(doc: Doc, spans: Sequence[TokenSpan], taken: Flags | None) -> list[Span]:
    """The spans without whitespace at their ends, apart from those on taken tokens."""
    made = []
    for start, end, name in spans:
        if doc[start].is_space or doc[end - 1].is_space:
            start, end = _without_whitespace(doc, start, end)
        if start < end and (taken is None or not taken[start:end].any()):
            made.append(Span(doc, start, end, label=name))
    return made


def _without_whitespace(doc: Doc, start: int, end: int) -> tuple[int, int]:
    while start < end and doc[start].is_space:
        start += 1
    while start < end and doc[end - 1].is_space:
        end -= 1
    return start, end


def _held(doc: Doc) -> tuple[list[int], Flags | None]:
    """The blocked tokens, and which tokens these and entities take; None: no token is taken."""
    if not doc.has_annotation("ENT_IOB"):
        return [], None
    iob = token_values(doc, "ENT_IOB")
    taken = (iob == _BEGIN) | (iob == _INSIDE)
    if not taken.any():
        return [], None
    blocked = (iob == _BEGIN) & (token_values(doc, "ENT_TYPE") == 0)
    return np.flatnonzero(blocked).tolist(), taken


def _forget_ids(doc: Doc) -> None:
    """Remove what linkers and rulers said about old entities; set_ents would hand it on."""
    for entity in doc.ents:
        for token in entity:
            token.ent_id = 0
            token.ent_kb_id = 0


def _token_accuracy(pairs: Iterable[tuple[list[Label], list[Label]]]) -> float | None:
    """The share of annotated tokens whose label is right; None if no token is annotated."""
    right = annotated = 0
    for labels, gold in pairs:
        annotated += sum(label is not None for label in gold)
        right += sum((a or OUTSIDE) == b for a, b in zip(labels, gold, strict=True))
    return right / annotated if annotated else None
