"""Errors as answers: a status, a reason, and the field that is wrong, in one form of JSON."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json
from starlette.responses import Response

RETRY_AFTER = {"Retry-After": "1"}
CLOSE = {"Connection": "close"}


class Refusal(Exception):
    """A request that is not answered as asked.

    field: The path of the field that is wrong, as "texts.3". headers: Further ones of the answer.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        field: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.field = field
        self.headers = headers

    def to_dict(self) -> dict[str, Any]:
        error = {"status": self.status, "reason": self.reason, "field": self.field}
        return {"error": error}

    def response(self) -> Response:
        return json_response(self.to_dict(), self.status, self.headers)


def json_response(
    content: object, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    return json_bytes(to_json(content), status, headers)


def json_bytes(
    content: bytes, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    return Response(content, status, headers, "application/json")


def refusal_of_json(error: ValidationError) -> Refusal:
    """The refusal of a body, or line, that is no JSON or does not follow its schema."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return Refusal(400, f"the body is not valid JSON: {first['msg']}")
    field = ".".join(map(str, first["loc"])) or None
    reason = first["msg"].removeprefix("Value error, ")
    return Refusal(400, f"{field}: {reason}" if field else reason, field)
