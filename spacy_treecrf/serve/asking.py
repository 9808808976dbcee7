"""What is asked of an annotator and what comes back: plain data that goes between processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from pydantic_core import from_json, to_json

from spacy_treecrf.serve.refusals import RETRY_AFTER, Refusal

OK = 200
Input = str | list[str]  # a text, or the words of one


class Asked(NamedTuple):
    """A text, and what to tell of it. options: The fields of the request that say what."""

    kind: Literal["annotate", "explain"]
    input: Input
    options: dict[str, Any]

    @property
    def n_characters(self) -> int:
        own = self.input
        return len(own) if isinstance(own, str) else sum(map(len, own)) + len(own)


class Reply(NamedTuple):
    """The answer as JSON. status: 200, or that of a refusal, whose error is then the body."""

    status: int
    body: bytes
    n_tokens: int

    @classmethod
    def of_refusal(cls, refusal: Refusal, n_tokens: int = 0) -> Reply:
        return cls(refusal.status, to_json([refusal.reason, refusal.field]), n_tokens)

    @property
    def refusal(self) -> Refusal:
        reason, field = from_json(self.body)
        headers = RETRY_AFTER if self.status == 503 else None
        return Refusal(self.status, reason, field, headers)


@dataclass(frozen=True)
class Served:
    """What is known of the pipeline where the requests come in.

    name: The package or path. pipe: The treecrf pipe's name. max_length: Of a text, in characters.
    """

    name: str
    pipe: str
    labels: list[str]
    has_spans: bool
    max_length: int

    def check(self, inputs: Sequence[Input], field: str) -> None:
        """Refuse texts that spaCy would refuse for their length."""
        longest = self.max_length
        for i, text in enumerate(inputs):
            if isinstance(text, str) and len(text) > longest:
                where = f"{field}.{i}" if field == "texts" else field
                reason = f"{where}: the text has {len(text)} characters, more than {longest}"
                raise Refusal(413, reason, where)


class Annotator(Protocol):
    """What answers a batch; one thread calls it."""

    @property
    def served(self) -> Served: ...

    def answers(self, asked: Sequence[Asked]) -> list[Reply]:
        """A reply to each; what is wrong with one text is told in its own reply."""
        ...

    def resident_bytes(self) -> int | None:
        """The memory that it holds beside that of this process; None if that is not known."""
        ...

    def close(self) -> None: ...

    def abandon(self) -> None:
        """End at once, whatever it does; any thread may call this."""
        ...
