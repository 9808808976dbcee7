"""The process that annotates: what it says over its pipes, and what happens when it dies."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.serve.asking import Asked, Reply
from spacy_treecrf.serve.frames import (
    decode_asked,
    decode_replies,
    encode_asked,
    encode_replies,
    read_frame,
    write_frame,
)
from spacy_treecrf.serve.refusals import Refusal
from tests.serve.servers import TIMEOUT, Server, refused, wait_until

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ASKED = st.builds(
    Asked,
    st.sampled_from(["annotate", "explain"]),
    st.one_of(TEXT, st.lists(TEXT)),
    st.dictionaries(TEXT, st.one_of(st.booleans(), st.integers(-(2**40), 2**40), st.none(), TEXT)),
)
REPLY = st.builds(Reply, st.integers(100, 599), st.binary(), st.integers(0, 2**40))


@given(st.lists(ASKED), st.lists(REPLY))
def test_what_is_sent_is_what_comes(asked: list[Asked], replies: list[Reply]) -> None:
    stream = io.BytesIO()
    write_frame(stream, encode_asked(asked))
    write_frame(stream, *encode_replies(replies))
    stream.seek(0)
    assert decode_asked(read_frame(stream)) == asked
    assert decode_replies(read_frame(stream)) == replies
    with pytest.raises(EOFError):
        read_frame(stream)


@given(st.binary(min_size=1), st.data())
def test_a_message_that_breaks_off_is_an_end(message: bytes, data: st.DataObject) -> None:
    stream = io.BytesIO()
    write_frame(stream, message)
    cut = data.draw(st.integers(0, len(stream.getvalue()) - 1))
    with pytest.raises(EOFError):
        read_frame(io.BytesIO(stream.getvalue()[:cut]))


@given(TEXT, st.one_of(st.none(), TEXT))
def test_a_refusal_keeps_its_reason_and_its_field(reason: str, field: str | None) -> None:
    found = Reply.of_refusal(Refusal(400, reason, field)).refusal
    assert (found.status, found.reason, found.field) == (400, reason, field)


def annotating_process(server: Server) -> int:
    threads = Path(f"/proc/{server.process.pid}/task")
    if not threads.exists():
        pytest.skip("the system does not tell which processes there are")
    found = "".join((thread / "children").read_text() for thread in threads.iterdir())
    (child,) = map(int, found.split())
    return child


def has_mail(child: int) -> bool:
    """Whether something waits that the process has not read."""
    import fcntl  # not on Windows, which has no /proc either
    import termios

    streams = Path(f"/proc/{child}/fd").iterdir()
    for stream in [s for s in streams if int(s.name) > 2 and "pipe" in str(s.readlink())]:
        with stream.open("rb", buffering=0) as pipe:
            if any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))):
                return True
    return False


def kill_in_flight(server: Server, child: int) -> dict[str, Any]:
    """Kill the process while it has a text; returns the error that the text gets."""
    os.kill(child, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        url, text = f"{server.address}/annotate", {"text": "Ann saw Rome"}
        answer = pool.submit(httpx.post, url, json=text, timeout=TIMEOUT)
        wait_until(lambda: has_mail(child))
        os.kill(child, signal.SIGKILL)
        return refused(answer.result(), 500)


def is_dead(child: int) -> bool:
    """Whether a process has ended, with all its threads, and its parent has not heard of it."""
    process = Path(f"/proc/{child}")
    state = process.joinpath("stat").read_text().rpartition(")")[2].split()[0]
    return state == "Z" and len(list(process.joinpath("task").iterdir())) == 1


@pytest.mark.parametrize("in_flight", [False, True])
def test_a_process_that_was_killed_is_replaced(model: Path, in_flight: bool) -> None:
    with Server(model) as server:
        before = server.annotate(text="Ann saw Rome")
        first = annotating_process(server)
        if in_flight:
            assert "has ended with -9" in kill_in_flight(server, first)["reason"]
        else:
            os.kill(first, signal.SIGKILL)
            wait_until(lambda: is_dead(first))
        assert server.annotate(text="Ann saw Rome") == before
        assert server.client.get("/health").status_code == 200
        assert annotating_process(server) != first
        code, _, err = server.end(signal.SIGTERM)
    assert code == 0
    assert err.count("has ended with -9") == 1


def test_signals_for_all_processes_leave_what_is_in_flight_alone(model: Path) -> None:
    with Server(model) as server:
        child = annotating_process(server)
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(child, number)
        assert server.annotate(text="Ann saw Rome")[0]["text"] == "Ann saw Rome"
        assert annotating_process(server) == child


def test_a_process_that_does_not_come_up_is_tried_again(model: Path, tmp_path: Path) -> None:
    own = tmp_path / "model"
    shutil.copytree(model, own)
    with Server(own) as server:
        own.rename(tmp_path / "away")
        kill_in_flight(server, annotating_process(server))
        answer = server.client.post("/annotate", json={"text": "Ann"})
        refused(answer, 503)
        assert int(answer.headers["retry-after"]) >= 1
        (tmp_path / "away").rename(own)
        assert server.annotate(text="Ann")[0]["text"] == "Ann"


def test_a_process_that_is_killed_while_it_loads_is_told_in_one_line(model: Path) -> None:
    script = f"""
import os, signal, sys
from spacy_treecrf.cli import serve
from spacy_treecrf.cli.app import main

serve.command = lambda *_: [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
sys.argv = ['spacy-treecrf', 'serve', {str(model)!r}, '--port', '0']
main()
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 1
    (line,) = run.stderr.splitlines()
    assert "signal 9" in line


@pytest.mark.parametrize("busy", [False, True])
def test_the_process_ends_when_the_server_is_killed(model: Path, busy: bool) -> None:
    with Server(model) as server, ThreadPoolExecutor(1) as pool:
        child = annotating_process(server)
        if busy:
            long = {"texts": ["Ann Lee saw New York . " * 500] * 60}
            pool.submit(httpx.post, f"{server.address}/annotate", json=long, timeout=TIMEOUT)
            wait_until(lambda: server.metric("queue_length"))
        server.process.kill()
        server.process.communicate()
        wait_until(lambda: not Path(f"/proc/{child}").exists())


def test_a_component_that_prints_does_not_disturb_the_answers(model: Path) -> None:
    script = f"""
import sys
from spacy.language import Language
from spacy_treecrf.serve import child

@Language.component("chatty")
def chatty(doc):
    print("here is", doc)
    return doc

load = child.PipelineAnnotator.load.__func__
def with_chatty(cls, *args):
    annotator = load(cls, *args)
    annotator.nlp.add_pipe("chatty")
    return annotator
child.PipelineAnnotator.load = classmethod(with_chatty)
child.run({str(model)!r}, None, 1)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert b"PERSON" in read_frame(process.stdout)  # type: ignore[arg-type]
    write_frame(process.stdin, encode_asked([Asked("annotate", "Ann saw Rome", {})]))  # type: ignore[arg-type]
    (reply,) = decode_replies(read_frame(process.stdout))  # type: ignore[arg-type]
    assert (reply.status, reply.n_tokens) == (200, 3)
    _, err = process.communicate()
    assert process.returncode == 0
    assert b"here is Ann saw Rome" in err


def test_a_model_that_cannot_be_loaded_is_told_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spacy_treecrf", "serve", str(tmp_path), "--port", "0"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1
    assert str(tmp_path) in run.stderr
