"""The description of all paths for programs: OpenAPI, with schemas that pydantic makes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from starlette.requests import Request
from starlette.responses import Response

from spacy_treecrf import __version__
from spacy_treecrf.explain.explanation import SequenceExplanation
from spacy_treecrf.serve.bodies import JSON_LINES
from spacy_treecrf.serve.metrics import MEDIA_TYPE
from spacy_treecrf.serve.refusals import json_response
from spacy_treecrf.serve.schemas import (
    AnnotateRequest,
    Annotations,
    ErrorAnswer,
    ExplainRequest,
    Health,
    StreamedAnnotation,
    StreamedError,
    StreamedText,
)

JSON = "application/json"
OPENAPI = "3.1.0"
ERRORS = {
    400: "The body is no JSON, or does not follow its schema; the reason names the field.",
    405: "The path does not take this method.",
    408: "The body took too long to come.",
    413: "The body, or a text, is too long.",
    415: "The Content-Type is another one.",
    421: "The server is not known by the name in the Host header.",
    500: "A mistake of the server.",
    503: "The queue is full; the header Retry-After says when to try again.",
    504: "The answer took too long.",
}
OF_ALL = (405, 421, 500)
OF_BODIES = (400, 408, 413, 415, 503, 504)
OF_STREAMS = (415,)


@dataclass(frozen=True)
class Operation:
    """A path with a method: what goes in, and what comes out, each as media type and type."""

    path: str
    method: str
    summary: str
    answer: tuple[str, Any]
    body: tuple[str, Any] | None = None
    errors: tuple[int, ...] = ()
    ended: str | None = None  # what a 503 with the same answer as a 200 says


OPERATIONS = (
    Operation(
        "/annotate",
        "post",
        "Annotate texts; those of many requests are annotated together.",
        (JSON, Annotations),
        (JSON, AnnotateRequest),
        OF_BODIES,
    ),
    Operation(
        "/annotate/stream",
        "post",
        "Annotate texts line by line; each line of the answer belongs to a line of the request.",
        (JSON_LINES[0], StreamedAnnotation | StreamedError),
        (JSON_LINES[0], StreamedText),
        OF_STREAMS,
    ),
    Operation(
        "/explain",
        "post",
        "Explain why tokens of a text got their labels.",
        (JSON, SequenceExplanation),
        (JSON, ExplainRequest),
        OF_BODIES,
    ),
    Operation("/", "get", "A page to try it.", ("text/html", str)),
    Operation(
        "/health",
        "get",
        "Whether the server works.",
        (JSON, Health),
        ended="The server does not annotate any more.",
    ),
    Operation("/metrics", "get", "Counters for Prometheus.", (MEDIA_TYPE, str)),
    Operation("/openapi.json", "get", "This description.", (JSON, dict[str, Any])),
)


class _AsWritten(GenerateJsonSchema):
    """Schemas of what `Explanation.to_dict` writes: there, dicts of labels are lists."""

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        keys = schema.get("keys_schema")
        if keys is None or keys["type"] == "str":
            return super().dict_schema(schema)
        fields = {"label": self.generate_inner(keys)}
        fields["probability"] = self.generate_inner(schema["values_schema"])
        item = {"type": "object", "properties": fields, "required": list(fields)}
        return {"type": "array", "items": item}


@cache
def description() -> dict[str, Any]:
    """The whole description as JSON has it."""
    bodies = [operation.body for operation in OPERATIONS if operation.body is not None]
    types = [kind for _, kind in [*bodies, *(o.answer for o in OPERATIONS)]]
    inputs = [(kind, "validation", TypeAdapter(kind)) for kind in [*types, ErrorAnswer]]
    schemas, definitions = TypeAdapter.json_schemas(
        inputs,  # type: ignore[arg-type]
        ref_template="#/components/schemas/{model}",
        schema_generator=_AsWritten,
    )
    of_type = {kind: schema for (kind, _), schema in schemas.items()}
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation, of_type)
    return {
        "openapi": OPENAPI,
        "info": {"title": "spacy-treecrf serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": definitions["$defs"]},
    }


def _operation(operation: Operation, schemas: dict[Any, Any]) -> dict[str, Any]:
    def content(media_type: str, kind: Any) -> dict[str, Any]:
        return {media_type: {"schema": schemas[kind]}}

    described: dict[str, Any] = {"summary": operation.summary}
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": content(*operation.body)}
    responses = {"200": {"description": "The answer.", "content": content(*operation.answer)}}
    for status in sorted({*OF_ALL, *operation.errors}):
        error = content(JSON, ErrorAnswer)
        responses[str(status)] = {"description": ERRORS[status], "content": error}
    if operation.ended is not None:
        responses["503"] = {"description": operation.ended, "content": content(*operation.answer)}
    described["responses"] = responses
    return described


async def show_description(request: Request) -> Response:
    return json_response(description())
