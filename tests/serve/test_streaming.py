"""Streams of JSON lines: an answer for each line, in order, while lines still come."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

from tests.serve.servers import JSON_LINES, TIMEOUT, Server, wait_until

HEAD = (
    b"POST /annotate/stream HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    b"Content-Type: application/x-ndjson\r\n\r\n"
)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def streamed(server: Server, content: Any) -> list[dict[str, Any]]:
    answer = server.client.post("/annotate/stream", content=content, headers=JSON_LINES)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def test_every_line_is_answered_in_its_order(server: Server) -> None:
    texts = [f"Ann saw Rome {i} times" for i in range(2000)]

    def lines() -> Iterator[bytes]:
        for text in texts:
            yield json.dumps({"text": text}).encode() + b"\n"

    told = streamed(server, lines())
    assert [own["text"] for own in told] == texts
    assert [own["line"] for own in told] == list(range(1, 2001))
    expected = {**server.annotate(text=texts[7])[0], "line": 8}
    assert told[7] == expected


def test_lines_may_be_cut_anywhere(server: Server) -> None:
    whole = '{"text": "Änn saw Röme"}\r\n{"tokens": ["Bob", "Lee"], "nbest": 2}'.encode()
    for step in (1, 3, 7, 1000):
        parts = (whole[i : i + step] for i in range(0, len(whole), step))
        first, second = streamed(server, parts)
        assert first["text"] == "Änn saw Röme"
        assert len(second["nbest"]) == 2


def test_a_wrong_line_is_told_in_its_place_and_others_go_on(server: Server) -> None:
    lines = [b'{"text": "Ann"}', b"nonsense", b"", b'{"txt": 1}', b"\xff", b'{"text": "Bob"}', b""]
    told = streamed(server, b"\n".join(lines))
    assert [own["line"] for own in told] == [1, 2, 4, 5, 6]
    assert [own.get("error", {}).get("status") for own in told] == [None, 400, 400, 400, None]
    assert told[2]["error"]["field"] == "txt"


def test_a_line_that_is_too_long_is_a_413_in_its_place(strict_server: Server) -> None:
    long = json.dumps({"text": "a" * 2000}).encode()
    for size in (50, 5000):  # whether or not it comes in one piece
        whole = b"\n".join([b'{"text": "Ann"}', long, b'{"text": "Bob"}', long])
        parts = (whole[i : i + size] for i in range(0, len(whole), size))
        told = streamed(strict_server, parts)
        assert [own["line"] for own in told] == [1, 2, 3, 4]
        statuses = [own.get("error", {}).get("status") for own in told]
        assert statuses == [None, 413, None, 413]


def test_streams_that_are_longer_than_the_queue_wait(strict_server: Server) -> None:
    """The queue holds 5 texts: the client has to wait, and gets no 503."""
    told = streamed(strict_server, b'{"text": "Ann saw Rome"}\n' * 200)
    assert len(told) == 200
    assert not [own for own in told if "error" in own]


def test_answers_come_while_the_request_goes_on(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as connection:
        answers = connection.makefile("rb")
        connection.sendall(HEAD)
        for text in ("Ann", "Bob", "Rome"):
            connection.sendall(chunk(b'{"text": "%s"}\n' % text.encode()))
            while not (line := answers.readline()).startswith(b"{"):
                assert line
            assert json.loads(line)["text"] == text
        connection.sendall(b"0\r\n\r\n")


def test_a_client_that_stops_sending_is_told_so_and_let_go(strict_server: Server) -> None:
    answers = strict_server.raw(HEAD + chunk(b'{"text": "Ann"}\n') + chunk(b'{"text": '))
    lines = [json.loads(line) for line in answers.split(b"\r\n") if line.startswith(b"{")]
    assert [own.get("error", {}).get("status") for own in lines] == [None, 408]
    assert answers.endswith(b"0\r\n\r\n")


def test_a_client_that_goes_away_leaves_nothing_behind(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as connection:
        connection.sendall(HEAD + chunk(b'{"text": "Ann saw Rome"}\n' * 500))
    wait_until(lambda: not server.metric("queue_length"))
    assert server.annotate(text="Ann")[0]["tokens"] == ["Ann"]
