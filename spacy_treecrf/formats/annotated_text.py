"""A text with labelled spans of its characters: the form between formats of annotation tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

# Why something of a file is not in the result, as reports say it.
NOT_ACCEPTED = "texts whose answer is not accept"
NOT_ANNOTATED = "texts that are not annotated"
OF_BLANKS = "spans of blanks alone"
BOUNDARIES = "boundaries of sentences within spans"
DISCONTINUOUS = "discontinuous spans"
OTHER_RESULTS = "annotations that are no spans"
MORE_ANNOTATIONS = "further annotations of a text"
MISALIGNED = "spans that do not align with tokens"
OVERLAPPING = "spans that overlap longer ones"


@dataclass(frozen=True, order=True)
class LabelledSpan:
    """A span from the character `start` to the one before `end`, counted in code points.

    score: The probability of a predicted span, if it has one.
    """

    start: int
    end: int
    label: str
    score: float | None = None


@dataclass(frozen=True)
class AnnotatedText:
    """A text and its spans, which may overlap.

    tokens: First and past-the-last character of each token, if they are known.
    predicted: Whether nobody has annotated the text: its spans, if any, are suggestions.
    name: What the text is called, if it has a name.
    """

    text: str
    spans: tuple[LabelledSpan, ...] = ()
    tokens: tuple[tuple[int, int], ...] | None = None
    predicted: bool = False
    name: str = ""


@dataclass
class Tally:
    """What was converted, and what was left out for which reason."""

    texts: int = 0
    spans: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def counted(self, texts: Iterable[AnnotatedText]) -> Iterable[AnnotatedText]:
        """The texts, counted as they pass."""
        for text in texts:
            self.texts += 1
            self.spans += len(text.spans)
            yield text

    def leave_out(self, text: AnnotatedText, why: str) -> None:
        """Count a text that was counted as one that is left out."""
        self.texts -= 1
        self.spans -= len(text.spans)
        self.left_out[why] += 1

    def lines(self) -> list[str]:
        """The report for people."""
        found = [f"{self.texts:,} texts, {self.spans:,} spans"]
        return found + [f"left out: {n:,} {why}" for why, n in sorted(self.left_out.items()) if n]

    def summary(self) -> dict[str, Any]:
        """The report as values that JSON can hold."""
        left_out = {why: n for why, n in sorted(self.left_out.items()) if n}
        return {"texts": self.texts, "spans": self.spans, "left_out": left_out}
