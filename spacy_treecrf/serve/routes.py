"""What each path does."""

from __future__ import annotations

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from spacy_treecrf import __version__
from spacy_treecrf.serve.asking import Asked
from spacy_treecrf.serve.bodies import JSON_LINES, check_headers, read_body
from spacy_treecrf.serve.live_page import name_of
from spacy_treecrf.serve.metrics import MEDIA_TYPE
from spacy_treecrf.serve.refusals import json_bytes, json_response, refusal_of_json
from spacy_treecrf.serve.schemas import AnnotateRequest, ExplainRequest
from spacy_treecrf.serve.state import service_of
from spacy_treecrf.serve.streaming import StreamedAnswer


async def annotate(request: Request) -> Response:
    service = service_of(request)
    body = await read_body(request, service.limits)
    try:
        wanted = AnnotateRequest.model_validate_json(body)
    except ValidationError as error:
        raise refusal_of_json(error) from None
    inputs = wanted.inputs
    service.served.check(inputs, wanted.field)
    answers = await service.answers([Asked("annotate", own, wanted.options) for own in inputs])
    return json_bytes(b'{"docs":[' + b",".join(answers) + b"]}")


async def explain(request: Request) -> Response:
    service = service_of(request)
    body = await read_body(request, service.limits)
    try:
        wanted = ExplainRequest.model_validate_json(body)
    except ValidationError as error:
        raise refusal_of_json(error) from None
    service.served.check([wanted.input], "text")
    (told,) = await service.answers([Asked("explain", wanted.input, wanted.options)])
    return json_bytes(told)


async def annotate_stream(request: Request) -> Response:
    check_headers(request, JSON_LINES)
    return StreamedAnswer(request, service_of(request))


async def health(request: Request) -> Response:
    service = service_of(request)
    served = service.served
    alive = service.batcher.alive
    told = {
        "status": "ok" if alive else "ended",
        "model": name_of(served.name),
        "pipe": served.pipe,
        "labels": served.labels,
        "version": __version__,
        "queue": service.batcher.waiting,
    }
    return json_response(told, 200 if alive else 503)


async def metrics(request: Request) -> Response:
    service = service_of(request)
    text = service.metrics.to_text(service.batcher.waiting, service.annotator.resident_bytes())
    return Response(text, media_type=MEDIA_TYPE)
