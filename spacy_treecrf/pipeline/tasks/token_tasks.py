"""Tasks whose label is the value of a token: token.tag_, token.pos_, token._.<attr>."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from spacy.parts_of_speech import IDS as POS_IDS  # type: ignore[import-not-found]
from spacy.scorer import Scorer
from spacy.tokens import Doc, Token
from spacy.tokens.underscore import Underscore
from spacy.training import Example

from spacy_treecrf.labels.biluo import Label
from spacy_treecrf.pipeline.tasks.task import (
    PIPE_WEIGHTS,
    Weights,
    check_length,
    same_tokens,
    token_values,
)


@dataclass(frozen=True)
class AttributeTask:
    """The labels are token.tag_ or token.pos_; an empty value is a missing one.

    overwrite: Whether tokens that have a value get another.
    """

    attr: str  # "TAG" or "POS"
    overwrite: bool = False
    constraints: ClassVar[str] = "none"

    @property
    def score_weights(self) -> Weights:
        return {f"{self.attr.lower()}_acc": 1.0, **PIPE_WEIGHTS}

    def gold(self, example: Example) -> list[Label]:
        if same_tokens(example):
            return self._read(example.reference)
        return [value or None for value in example.get_aligned(self.attr, as_string=True)]

    def preset(self, doc: Doc) -> list[Label] | None:
        if self.overwrite or not token_values(doc, self.attr).any():
            return None
        return self._read(doc)

    def annotate(self, doc: Doc, labels: Sequence[str]) -> None:
        check_length(doc, labels)
        ids = {label: self._id(doc, label) for label in set(labels)}
        new = np.array([ids[label] for label in labels], dtype=np.uint64)
        old = token_values(doc, self.attr)
        keep = (new == 0) if self.overwrite else (old != 0)
        both: Any = np.where(keep, old, new)
        doc.from_array([self.attr], both)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        return Scorer.score_token_attr(examples, self.attr.lower(), **kwargs)

    def _read(self, doc: Doc) -> list[Label]:
        values = token_values(doc, self.attr)
        names = {value: doc.vocab.strings[value] or None for value in np.unique(values).tolist()}
        return [names[value] for value in values.tolist()]

    def _id(self, doc: Doc, label: str) -> int:
        """The value that spaCy stores; 0, which is missing, for a part of speech that it lacks."""
        if self.attr == "POS":
            return int(POS_IDS.get(label, 0))
        return int(doc.vocab.strings.add(label))


@dataclass(frozen=True)
class ExtTask:
    """The labels are token._.<attr>; None and "" are missing, other values become strings.

    The extension is registered, with None as its default, if no one has done it yet: a loaded
    pipeline can then write it in every process.
    """

    attr: str
    constraints: ClassVar[str] = "none"

    def __post_init__(self) -> None:
        if not isinstance(self.attr, str) or not self.attr:
            raise ValueError(
                f"treecrf: attr of the ext task is {self.attr!r}; name a token extension"
            )
        if not Token.has_extension(self.attr):
            Token.set_extension(self.attr, default=None)
        _, method, getter, setter = Token.get_extension(self.attr)
        if method is not None or (getter is not None and setter is None):
            raise ValueError(
                f"treecrf: token extension {self.attr!r} of the ext task cannot be written; "
                "register it with a default, or with a getter and a setter"
            )

    @property
    def score_weights(self) -> Weights:
        return {f"ext_{self.attr}_acc": 1.0, **PIPE_WEIGHTS}

    def gold(self, example: Example) -> list[Label]:
        values = self._read(example.reference)
        if same_tokens(example):
            return values
        aligned = ({values[i] for i in example.alignment.x2y[t.i]} for t in example.predicted)
        return [found.pop() if len(found) == 1 else None for found in aligned]

    def preset(self, doc: Doc) -> None:
        return None

    def annotate(self, doc: Doc, labels: Sequence[str]) -> None:
        check_length(doc, labels)
        for token, label in zip(doc, labels, strict=True):
            token._.set(self.attr, label)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        return Scorer.score_token_attr(
            examples,
            f"ext_{self.attr}",
            getter=lambda token, _: self._value(token),
            **kwargs,
        )

    def _read(self, doc: Doc) -> list[Label]:
        """The labels of all tokens; stored ones come from where spaCy stores them, at once."""
        default, _, getter, _ = Token.get_extension(self.attr)
        if getter is not None or isinstance(default, Underscore.mutable_types):
            return [self._value(token) for token in doc]
        stored: dict[Any, Any] = doc.user_data
        attr = self.attr
        places = token_values(doc, "IDX").tolist()
        return [_label_of(stored.get(("._.", attr, at, None), default)) for at in places]

    def _value(self, token: Token) -> Label:
        return _label_of(token._.get(self.attr))


def _label_of(value: Any) -> Label:
    return None if value is None else str(value) or None
