"""/openapi.json is sound, and answers are as it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from spacy_treecrf.serve.app import ROUTES
from tests.serve.servers import JSON_LINES, Server

TEXT = "Paris Lee saw New York with Bob ."


@pytest.fixture(scope="module")
def described(server: Server) -> dict[str, Any]:
    found: dict[str, Any] = server.client.get("/openapi.json").json()
    return found


def operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def check(described: dict[str, Any], schema: dict[str, Any], value: Any) -> None:
    """Refuse a value that does not follow a schema of the description."""
    whole = Resource(contents=described, specification=DRAFT202012)
    at_root = {"$ref": f"urn:api{schema['$ref']}"} if "$ref" in schema else schema
    text = json.dumps(at_root).replace('"#/', '"urn:api#/')
    registry: Registry[Any] = Registry().with_resource("urn:api", whole)
    Draft202012Validator(json.loads(text), registry=registry).validate(value)


def answer_schema(described: dict[str, Any], path: str, method: str, status: int) -> dict[str, Any]:
    content = described["paths"][path][method]["responses"][str(status)]["content"]
    (kind,) = content.values()
    schema: dict[str, Any] = kind["schema"]
    return schema


def body_schema(described: dict[str, Any], path: str) -> dict[str, Any]:
    (kind,) = described["paths"][path]["post"]["requestBody"]["content"].values()
    schema: dict[str, Any] = kind["schema"]
    return schema


def test_every_route_is_described_with_its_method(described: dict[str, Any]) -> None:
    routes = {(r.path, m.lower()) for r in ROUTES for m in r.methods if m != "HEAD"}
    assert {(path, method) for path, method, _ in operations(described)} == routes
    assert described["openapi"].startswith("3.1.")
    assert described["info"]["title"]
    assert described["info"]["version"]


def test_schemas_are_valid_and_what_they_refer_to_is_there(described: dict[str, Any]) -> None:
    for schema in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)

    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, part in value.items():
                if key == "$ref":
                    yield part
                yield from references(part)
        elif isinstance(value, list):
            for part in value:
                yield from references(part)

    found = set(references(described))
    assert found
    for reference in found:
        name = reference.removeprefix("#/components/schemas/")
        assert name in described["components"]["schemas"]


@pytest.mark.parametrize(
    "body",
    [
        {"text": TEXT},
        {"texts": [TEXT, ""], "nbest": 3, "marginals": True},
        {"tokens": TEXT.split()},
        {"sequences": [TEXT.split(), ["Ann"]]},
    ],
)
def test_annotations_are_as_described(
    server: Server, described: dict[str, Any], body: dict[str, Any]
) -> None:
    check(described, body_schema(described, "/annotate"), body)
    answer = server.client.post("/annotate", json=body)
    check(described, answer_schema(described, "/annotate", "post", 200), answer.json())


@pytest.mark.parametrize(
    "body",
    [{}, {"text": None}, {"text": "a", "texts": []}, {"text": "a", "nbest": -1}, {"tokens": [""]}],
)
def test_what_the_schema_forbids_is_refused_as_described(
    server: Server, described: dict[str, Any], body: dict[str, Any]
) -> None:
    from jsonschema import ValidationError

    with pytest.raises(ValidationError):
        check(described, body_schema(described, "/annotate"), body)
    answer = server.client.post("/annotate", json=body)
    assert answer.status_code == 400
    check(described, answer_schema(described, "/annotate", "post", 400), answer.json())


def test_lines_of_streams_are_as_described(server: Server, described: dict[str, Any]) -> None:
    body = {"tokens": ["Ann", "slept"], "nbest": 1}
    check(described, body_schema(described, "/annotate/stream"), body)
    sent = json.dumps(body) + "\nwrong\n"
    answer = server.client.post("/annotate/stream", content=sent, headers=JSON_LINES)
    schema = answer_schema(described, "/annotate/stream", "post", 200)
    for line in answer.text.splitlines():
        check(described, schema, json.loads(line))


def test_health_is_as_described(server: Server, described: dict[str, Any]) -> None:
    told = server.client.get("/health").json()
    check(described, answer_schema(described, "/health", "get", 200), told)
    assert told["labels"] == ["PERSON", "PLACE"]


def test_explanations_are_as_described(server: Server, described: dict[str, Any]) -> None:
    body = {"text": TEXT, "positions": [0, 3], "interactions": True}
    check(described, body_schema(described, "/explain"), body)
    answer = server.client.post("/explain", json=body)
    assert answer.status_code == 200, answer.text
    check(described, answer_schema(described, "/explain", "post", 200), answer.json())
