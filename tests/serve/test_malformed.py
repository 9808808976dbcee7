"""What requests get that are wrong, too large or too slow: one form of error, with a reason."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.serve.servers import JSON_LINES, TIMEOUT, Server, refused

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("path", ["/annotate", "/explain"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nothing",
        b'{"text": "\xff"}',
        b'{"text": "\\ud800"}',
        b'{"text": ' + b"[" * 5000,
        b'{"text": "a"} {"text": "b"}',
    ],
)
def test_what_is_no_json_is_a_400(server: Server, path: str, body: bytes) -> None:
    error = refused(server.client.post(path, content=body, headers=JSON), 400)
    assert "JSON" in error["reason"]
    assert error["field"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": 3}, "text"),
        ({"text": None}, "text"),
        ({"text": float("nan")}, "text"),
        ({"texts": "Ann"}, "texts"),
        ({"texts": ["Ann", None]}, "texts.1"),
        ({"tokens": ["Ann", ""]}, "tokens.1"),
        ({"sequences": [["Ann"], ["saw", 1]]}, "sequences.1.1"),
        ({"text": "Ann", "nbest": -1}, "nbest"),
        ({"text": "Ann", "nbest": 10**9}, "nbest"),
        ({"text": "Ann", "nbest": "2"}, "nbest"),
        ({"text": "Ann", "marginals": 1}, "marginals"),
        ({"text": "Ann", "colour": "red"}, "colour"),
    ],
)
def test_a_wrong_field_is_named(server: Server, body: Any, field: str) -> None:
    sent = json.dumps(body).encode()
    error = refused(server.client.post("/annotate", content=sent, headers=JSON), 400)
    assert error["field"] == field
    assert error["reason"].startswith(f"{field}: ")


@pytest.mark.parametrize("body", [{}, [], "Ann", None, {"text": "Ann", "texts": ["Ann"]}])
def test_exactly_one_kind_of_input_must_be_given(server: Server, body: Any) -> None:
    sent = json.dumps(body).encode()
    error = refused(server.client.post("/annotate", content=sent, headers=JSON), 400)
    assert error["field"] is None


def test_a_path_that_is_not_there_is_a_404(server: Server) -> None:
    for path in ("/anotate", "/annotate/", "/static/../etc/passwd", "/%00", "/<script>"):
        refused(server.client.get(path), 404)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/annotate", "POST"),
        ("DELETE", "/explain", "POST"),
        ("GET", "/annotate/stream", "POST"),
        ("POST", "/health", "GET"),
        ("POST", "/", "GET"),
        ("PUT", "/openapi.json", "GET"),
        ("OPTIONS", "/annotate", "POST"),
    ],
)
def test_another_method_is_a_405(server: Server, method: str, path: str, allowed: str) -> None:
    answer = server.client.request(method, path)
    refused(answer, 405)
    assert allowed in answer.headers["allow"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/x-ndjson"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
def test_another_media_type_is_a_415(server: Server, headers: dict[str, str]) -> None:
    body = b'{"text": "Ann"}'
    refused(server.client.post("/annotate", content=body, headers=headers), 415)


def test_a_stream_of_another_media_type_is_a_415(server: Server) -> None:
    refused(server.client.post("/annotate/stream", content=b"{}", headers=JSON), 415)


def test_media_types_may_have_a_charset_and_capitals(server: Server) -> None:
    headers = {"Content-Type": 'Application/JSON; charset="UTF-8"'}
    answer = server.client.post("/annotate", content=b'{"text": "Ann"}', headers=headers)
    assert answer.status_code == 200


def test_a_body_that_is_too_long_is_a_413(strict_server: Server) -> None:
    error = refused(strict_server.client.post("/annotate", json={"text": "a" * 1000}), 413)
    assert "1000 bytes" in error["reason"]
    assert strict_server.annotate(text="a" * 900)[0]["text"] == "a" * 900


def test_a_body_without_a_length_is_cut_off_when_it_is_too_long(strict_server: Server) -> None:
    parts = (b" " * 400 for _ in range(5))
    answer = strict_server.client.post("/annotate", content=parts, headers=JSON)
    refused(answer, 413)


def test_more_texts_than_the_queue_holds_are_a_413(strict_server: Server) -> None:
    error = refused(strict_server.client.post("/annotate", json={"texts": ["a"] * 6}), 413)
    assert "at most 5" in error["reason"]
    assert len(strict_server.annotate(texts=["a"] * 5)) == 5


def test_a_text_that_is_too_long_for_spacy_is_a_413(model: Path) -> None:
    text = "a b " * 250_001
    with Server(model, "--max-bytes", "10000000") as own:
        error = refused(own.client.post("/annotate", json={"texts": ["a", text]}), 413)
        assert error["field"] == "texts.1"
        refused(own.client.post("/annotate", json={"text": text}), 413)


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /annotate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b'Content-Length: 20\r\n\r\n{"text": "A',
        b"POST /annotate HTTP/1.1\r\nHost: localhost\r\nContent-T",
        b"",
    ],
    ids=["body", "head", "nothing"],
)
def test_what_does_not_come_in_time_is_a_408(strict_server: Server, sent: bytes) -> None:
    head, _, body = strict_server.raw(sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert json.loads(body)["error"]["status"] == 408
    assert b"connection: close" in head.lower()


def test_a_second_request_that_stalls_is_a_408(strict_server: Server) -> None:
    with socket.create_connection(("127.0.0.1", strict_server.port), TIMEOUT) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):  # head and body may come apart
            part = connection.recv(2**16)
            assert part
            answer += part
        assert answer.startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET /he")
        assert connection.recv(2**16).startswith(b"HTTP/1.1 408 ")
        assert connection.recv(2**16) == b""


def test_what_is_no_http_is_a_400(strict_server: Server) -> None:
    assert strict_server.raw(b"HELLO\r\n\r\n", shut=True).startswith(b"HTTP/1.1 400 ")


def test_another_host_is_a_421(server: Server, model: Path) -> None:
    """A page of somebody else whose name leads to this machine must not read answers."""
    for path in ("/health", "/"):
        refused(server.client.get(path, headers={"Host": "evil.example"}), 421)
    refused(server.client.get("/health", headers={"Host": ""}), 421)
    for host in ("localhost", f"127.0.0.1:{server.port}", "[::1]:80", "LocalHost"):
        assert server.client.get("/health", headers={"Host": host}).status_code == 200
    with Server(model, "--allow-host", "ner.example") as own:
        assert own.client.get("/health", headers={"Host": "ner.example"}).status_code == 200
        assert own.client.get("/health").status_code == 200


def test_no_other_origin_may_read_answers(server: Server) -> None:
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    for answer in (
        server.client.options("/annotate", headers=headers),
        server.client.post("/annotate", json={"text": "Ann"}, headers=headers),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_the_server_goes_on_after_all_of_this(server: Server, strict_server: Server) -> None:
    for own in (server, strict_server):
        assert own.annotate(text="Ann saw Rome")[0]["labels"][0] == "U-PERSON"
        assert own.client.get("/health").json()["status"] == "ok"
        assert own.process.poll() is None


def test_clients_that_go_away_do_no_harm(server: Server) -> None:
    body = json.dumps({"texts": ["Ann saw Rome"] * 1000}).encode()
    head = f"POST /annotate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    whole = head.encode() + b"Content-Type: application/json\r\n\r\n" + body
    for sent in (whole, whole[:-9], whole[:99]):
        with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as connection:
            connection.sendall(sent)
    assert server.annotate(text="Ann")[0]["tokens"] == ["Ann"]
    assert server.client.post("/annotate/stream", content=b"", headers=JSON_LINES).text == ""
