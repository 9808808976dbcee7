"""SIGTERM and SIGINT: what is in flight is answered, then the server ends with 0."""

from __future__ import annotations

import json
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.hardening.children import LOST, Child
from tests.serve.servers import TIMEOUT, Server, wait_until
from tests.serve.test_streaming import HEAD, chunk

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs signals")
LONG = ["Ann Lee saw New York . " * 500] * 60  # takes a while


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_requests_in_flight_are_answered(model: Path, number: int) -> None:
    with Server(model, "--batch", "1", "--timeout", "120") as server, ThreadPoolExecutor(1) as pool:
        url = f"{server.address}/annotate"
        asked = pool.submit(httpx.post, url, json={"texts": LONG}, timeout=TIMEOUT)
        wait_until(lambda: server.metric("queue_length") or asked.done())
        assert not asked.done(), "the texts are too short for this test"
        code, out, err = server.end(number)
        answer = asked.result()
    assert code == 0
    assert (out, err) == ("", "")
    assert answer.status_code == 200
    assert [len(told["tokens"]) for told in answer.json()["docs"]] == [3000] * 60


def test_an_idle_server_ends_at_once_and_frees_its_port(model: Path) -> None:
    with Server(model) as server:
        assert server.client.get("/health").status_code == 200  # a connection that stays open
        code, out, err = server.end(signal.SIGTERM)
        assert (code, out, err) == (0, "", "")
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.address}/health")


def test_a_stream_that_does_not_end_is_cut_off_after_the_timeout(model: Path) -> None:
    with (
        Server(model, "--timeout", "2") as server,
        socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as connection,
    ):
        answers = connection.makefile("rb")
        connection.sendall(HEAD + chunk(b'{"text": "Ann"}\n'))
        while not (line := answers.readline()).startswith(b"{"):
            assert line
        code, _, _ = server.end(signal.SIGTERM)
        assert code == 0
        assert json.loads(line)["text"] == "Ann"


def test_a_signal_while_the_model_loads_ends_the_server(model: Path) -> None:
    """Before it serves, the usual rules hold: one line, and the code of an interrupt."""
    script = (
        "import sys\n"
        "from spacy_treecrf.cli.app import main\n"
        f"sys.argv = ['spacy-treecrf', 'serve', {str(model)!r}, '--port', '0']\n"
        "print('ready', flush=True)\n"
        "main()\n"
    )
    with Child.script(script) as child:
        child.wait_until_ready()
        child.send(signal.SIGINT, after=1.0)
        _, err = child.end(within=LOST)
        assert child.code in (0, 130), err
        assert "Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_a_finalizer_drops_still_ends_the_server(model: Path, number: int) -> None:
    script = f"""
import signal, sys
from spacy_treecrf.cli.app import main
from spacy_treecrf.serve.process import ProcessAnnotator

class Dropping:
    def __del__(self):
        signal.raise_signal({int(number)})

sys.unraisablehook = lambda dropped: print("dropped", dropped.exc_type.__name__)
start = ProcessAnnotator._start
ProcessAnnotator._start = lambda self: (start(self), Dropping())[0]
sys.argv = ['spacy-treecrf', 'serve', {str(model)!r}, '--port', '0']
main()
"""
    with Child.script(script) as child:
        out, err = child.end(within=LOST)
        assert out == "dropped KeyboardInterrupt\n"
        assert child.code == 130, err
        assert err == "treecrf: interrupted; files that were there are as before\n"
