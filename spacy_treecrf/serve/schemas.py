"""What requests and answers look like: pydantic checks the ones, and describes both.

Answers are typed dicts: they are made by the thousand, and need no checking.
"""

# No `from __future__ import annotations` here: pydantic reads the types below.
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from typing_extensions import NotRequired, TypedDict

MAX_NBEST = 100
MAX_POSITIONS = 100
MAX_EFFECTS = 100
MAX_WORDS = 20
MAX_TRIED = 200_000  # tokens of the texts in which other words are tried
Word = Annotated[str, StringConstraints(min_length=1)]


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def _optional(description: str, **limits: Any) -> Any:
    """A field that may be left out, and is never null."""
    extra: Any = _without_default
    return Field(default=None, description=description, json_schema_extra=extra, **limits)


def _one_of(*names: str) -> Any:
    return {"oneOf": [{"required": [name]} for name in names]}


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    def chosen(self, *names: str) -> str:
        """The one field of these that is given."""
        given = [name for name in names if name in self.model_fields_set]
        if len(given) != 1:
            wanted = ", ".join(names[:-1]) + f" or {names[-1]}"
            found = " and ".join(given) or "none of them"
            raise ValueError(f"pass exactly one of {wanted}; found {found}")
        return given[0]


class Options(_Request):
    """What to tell of a text beside its labels."""

    nbest: int = Field(
        default=0, ge=0, le=MAX_NBEST, description="How many labellings to tell, best first."
    )
    marginals: bool = Field(
        default=False, description="Whether to tell the probabilities of all labels of each token."
    )

    @property
    def options(self) -> dict[str, Any]:
        return {"nbest": self.nbest, "marginals": self.marginals}


class AnnotateRequest(Options):
    """Texts to annotate: exactly one of text, texts, tokens and sequences."""

    model_config = ConfigDict(json_schema_extra=_one_of("text", "texts", "tokens", "sequences"))

    text: str = _optional("One text.")
    texts: list[str] = _optional("Several texts.")
    tokens: list[Word] = _optional("One text as its tokens, which are then kept.")
    sequences: list[list[Word]] = _optional("Several texts as their tokens.")

    @model_validator(mode="after")
    def _check(self) -> "AnnotateRequest":
        self.chosen("text", "texts", "tokens", "sequences")
        return self

    @property
    def field(self) -> str:
        return self.chosen("text", "texts", "tokens", "sequences")

    @property
    def inputs(self) -> list[str | list[str]]:
        name = self.field
        value: Any = getattr(self, name)
        return [value] if name in ("text", "tokens") else list(value)


class ExplainRequest(_Request):
    """A text of which some tokens are to be explained: either text or tokens."""

    model_config = ConfigDict(json_schema_extra=_one_of("text", "tokens"))

    text: str = _optional("One text.")
    tokens: list[Word] = _optional("One text as its tokens, which are then kept.")
    positions: list[Annotated[int, Field(ge=0)]] = _optional(
        "Numbers of tokens, from 0; by default the tokens of spans, or all where labels are no "
        f"spans, if these are at most {MAX_POSITIONS}.",
        min_length=1,
        max_length=MAX_POSITIONS,
    )
    label: str = _optional("The label to explain; by default the predicted one.")
    against: str = _optional("Another label: what speaks for the one rather than the other.")
    interactions: bool = Field(default=False, description="Whether to tell pairs of features.")
    effects: int = Field(
        default=10, ge=0, le=MAX_EFFECTS, description="How many features to take away, one by one."
    )
    words: list[Word] = Field(
        default=[],
        max_length=MAX_WORDS,
        description="Words to try in the place of each token, for their effect.",
    )
    nbest: int = Field(
        default=5, ge=1, le=MAX_NBEST, description="How many labellings to tell, best first."
    )

    @model_validator(mode="after")
    def _check(self) -> "ExplainRequest":
        self.chosen("text", "tokens")
        return self

    @property
    def input(self) -> str | list[str]:
        value: str | list[str] = getattr(self, self.chosen("text", "tokens"))
        return value

    @property
    def options(self) -> dict[str, Any]:
        """All that was asked beside the text."""
        return self.model_dump(exclude={"text", "tokens"})


class StreamedText(Options):
    """A line of a stream: either text or tokens."""

    model_config = ConfigDict(json_schema_extra=_one_of("text", "tokens"))

    text: str = _optional("One text.")
    tokens: list[Word] = _optional("One text as its tokens, which are then kept.")

    @model_validator(mode="after")
    def _check(self) -> "StreamedText":
        self.chosen("text", "tokens")
        return self

    @property
    def input(self) -> str | list[str]:
        value: str | list[str] = getattr(self, self.chosen("text", "tokens"))
        return value


class SpanAnswer(TypedDict):
    """An entity or another span; its probability is that of exactly these tokens and this label."""

    start: Annotated[int, Field(description="First character.")]
    end: Annotated[int, Field(description="Character behind the last one.")]
    first_token: int
    last_token: Annotated[int, Field(description="The last token of the span itself.")]
    text: str
    label: str
    probability: float | None


class Labelling(TypedDict):
    """Labels of all tokens, and the probability of all of them together."""

    labels: list[str]
    probability: float


class AnnotatedText(TypedDict):
    """A text with its labels. Lists have a value for each token."""

    text: str
    tokens: list[str]
    offsets: Annotated[
        list[tuple[int, int]], Field(description="First character, and the one behind the last.")
    ]
    labels: Annotated[
        list[str | None],
        Field(description="BILUO labels where the pipe labels spans, otherwise the labels."),
    ]
    probabilities: Annotated[
        list[float] | None,
        Field(description="P(label) of each token; null where the pipe does not set them."),
    ]
    spans: list[SpanAnswer]
    nbest: NotRequired[list[Labelling]]
    marginals: NotRequired[
        Annotated[
            list[dict[str, float]],
            Field(description="P of the labels of each token that have at least 0.0005."),
        ]
    ]


class Annotations(TypedDict):
    """The annotated texts, in the order of the request."""

    docs: list[AnnotatedText]


class StreamedAnnotation(AnnotatedText):
    """A line of the answer to a stream."""

    line: Annotated[int, Field(description="The number of the line, from 1.")]


class ErrorDetails(TypedDict):
    """Why a request is not answered as asked."""

    status: int
    reason: str
    field: Annotated[str | None, Field(description="The field that is wrong, as texts.3.")]


class ErrorAnswer(TypedDict):
    """The one form of all errors."""

    error: ErrorDetails


class StreamedError(ErrorAnswer):
    """A line of the answer to a stream whose own line was wrong."""

    line: int


class Health(TypedDict):
    """Whether the server works, and what it serves."""

    status: str
    model: str
    pipe: str
    labels: list[str]
    version: str
    queue: int
