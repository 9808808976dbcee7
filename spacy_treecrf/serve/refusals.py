"""Errors as answers: a status, a reason, and the field that is wrong, in one form of JSON."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

RETRY_AFTER = {"Retry-After": "1"}
CLOSE = {"Connection": "close"}
CLIENT_CLOSED = 499  # for the metrics: nobody is there to read the answer


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
    return Response(to_json(content), status, headers, "application/json")


def refusal_of_json(error: ValidationError) -> Refusal:
    """The refusal of a body, or line, that is no JSON or does not follow its schema."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return Refusal(400, f"the body is not valid JSON: {first['msg']}")
    field = ".".join(map(str, first["loc"])) or None
    reason = first["msg"].removeprefix("Value error, ")
    return Refusal(400, f"{field}: {reason}" if field else reason, field)


async def answer_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return error.response()


async def answer_http_error(request: Request, error: Exception) -> Response:
    """The answer where starlette finds no route (404), or none of this method (405)."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    reason = f"there is no {path}; /openapi.json lists what there is"
    if error.status_code == 405:
        reason = f"{path} does not take {request.method}"
    elif error.status_code != 404:
        reason = error.detail
    headers = dict(error.headers or {})
    return Refusal(error.status_code, reason, headers=headers).response()


async def answer_disconnect(request: Request, error: Exception) -> Response:
    return Response(status_code=CLIENT_CLOSED)


async def answer_mistake(request: Request, error: Exception) -> Response:
    """The answer after an error of the server's own; uvicorn writes it to the log."""
    return Refusal(500, "the server made a mistake, which its log tells").response()
