"""A full queue, slow answers and failing texts, with an annotator that waits when it is told to."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from spacy.tokens import Doc

from spacy_treecrf.serve.annotating import PipelineAnnotator
from spacy_treecrf.serve.app import make_app
from spacy_treecrf.serve.asking import Asked, Input
from spacy_treecrf.serve.batching import Batcher
from spacy_treecrf.serve.limits import Limits
from spacy_treecrf.serve.metrics import Metrics
from spacy_treecrf.serve.server import address_of, bind
from spacy_treecrf.taggers.loading import load_pipe
from tests.serve.servers import JSON_LINES, TIMEOUT, refused, wait_until
from tests.serve.test_openapi import answer_schema, check

BAD = "this text fails"


class Held(PipelineAnnotator):
    """Annotates as ever, but only while it is let go, and fails for one text."""

    def __init__(self, model: Path) -> None:
        super().__init__(*load_pipe(str(model), None), str(model))
        self.let_go = threading.Event()
        self.let_go.set()
        self.batches: list[int] = []

    def annotate(self, inputs: Sequence[Input]) -> list[Doc]:
        self.let_go.wait()
        self.batches.append(len(inputs))
        if BAD in inputs:
            raise RuntimeError("no")
        return super().annotate(inputs)


@pytest.fixture
def held(model: Path) -> Held:
    return Held(model)


@contextmanager
def client_of(held: Held, **limits: float) -> Iterator[httpx.Client]:
    """A client of a server in a thread of this process."""
    app = make_app(held, Limits(**limits))  # type: ignore[arg-type]
    bound = bind("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, log_level="warning"))
    thread = threading.Thread(target=server.run, args=([bound],))
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        assert thread.is_alive()
        with httpx.Client(base_url=address_of(bound), timeout=TIMEOUT) as client:
            yield client
    finally:
        held.let_go.set()
        server.should_exit = True
        thread.join()


def queue_of(client: httpx.Client) -> int:
    n: int = client.get("/health").json()["queue"]
    return n


def test_a_full_queue_is_a_503_that_says_when_to_come_again(held: Held) -> None:
    with client_of(held, queue=3) as client, ThreadPoolExecutor(3) as pool:
        held.let_go.clear()
        body = {"text": "Ann saw Rome"}
        asked = [pool.submit(client.post, "/annotate", json=body) for _ in range(3)]
        wait_until(lambda: queue_of(client) == 3)
        answer = client.post("/annotate", json=body)
        error = refused(answer, 503)
        assert "queue" in error["reason"]
        assert int(answer.headers["retry-after"]) >= 1
        held.let_go.set()
        assert [one.result().status_code for one in asked] == [200] * 3
        assert client.post("/annotate", json=body).status_code == 200
        assert queue_of(client) == 0


def test_what_waits_is_annotated_together_up_to_a_batch(held: Held) -> None:
    with client_of(held, batch=4) as client, ThreadPoolExecutor(11) as pool:
        held.let_go.clear()
        first = pool.submit(client.post, "/annotate", json={"text": "Ann"})
        wait_until(lambda: queue_of(client) == 1)
        others = [pool.submit(client.post, "/annotate", json={"text": "Bob"}) for _ in range(10)]
        wait_until(lambda: queue_of(client) == 11)
        held.let_go.set()
        assert [one.result().status_code for one in [first, *others]] == [200] * 11
    assert sum(held.batches) == 11
    assert held.batches[1:] == sorted(held.batches[1:], reverse=True)
    assert max(held.batches) == 4


def test_an_answer_that_takes_too_long_is_a_504_and_its_text_is_dropped(held: Held) -> None:
    held.warm_up()
    held.batches.clear()
    with client_of(held, timeout=5.0, batch=1) as client:
        held.let_go.clear()
        answer = client.post("/annotate", json={"texts": ["Ann", "Bob", "Rome"]})
        refused(answer, 504)
        held.let_go.set()
        assert client.post("/annotate", json={"text": "Ann"}).status_code == 200
        assert queue_of(client) == 0
        counted = client.get("/metrics").text
    assert held.batches == [1, 1]  # of the three the first, which had been begun
    assert "treecrf_texts_total 1\n" in counted  # nobody got that one
    assert "treecrf_batches_total 1\n" in counted


def test_explanations_that_were_given_up_are_not_begun(held: Held) -> None:
    explained = []
    held.explain = lambda doc, wanted: explained.append(doc.text) or {}  # type: ignore
    with client_of(held, timeout=0.5) as client, ThreadPoolExecutor(3) as pool:
        held.let_go.clear()
        texts = ["Ann saw Rome", "Bob saw Ann", "Rome"]
        asked = [pool.submit(client.post, "/explain", json={"text": text}) for text in texts]
        for one in asked:
            refused(one.result(), 504)
        held.let_go.set()
        wait_until(lambda: queue_of(client) == 0)
    assert held.batches == [1]  # which had been begun
    assert len(explained) == 1


def test_an_explanation_is_a_batch_of_its_own(held: Held) -> None:
    with client_of(held) as client, ThreadPoolExecutor(5) as pool:
        held.let_go.clear()
        paths = ["/annotate", "/annotate", "/explain", "/annotate", "/annotate"]
        asked = []
        for n, path in enumerate(paths):
            asked.append(pool.submit(client.post, path, json={"text": "Ann saw Rome"}))
            wait_until(lambda n=n: queue_of(client) == n + 1)  # type: ignore[misc]
        held.let_go.set()
        assert [one.result().status_code for one in asked] == [200] * 5
    assert held.batches == [1, 1, 1, 2]


def test_batches_end_where_their_characters_do(held: Held) -> None:
    with client_of(held, batch_characters=20) as client, ThreadPoolExecutor(6) as pool:
        held.let_go.clear()
        texts = ["Ann", *["Ann saw Rome"] * 5]
        first = pool.submit(client.post, "/annotate", json={"text": "Ann"})
        wait_until(lambda: queue_of(client) == 1)
        others = [pool.submit(client.post, "/annotate", json={"text": t}) for t in texts[1:]]
        wait_until(lambda: queue_of(client) == 6)
        held.let_go.set()
        assert [one.result().status_code for one in [first, *others]] == [200] * 6
    assert held.batches == [1, 2, 2, 1]


def test_a_queue_that_is_full_of_characters_is_a_503(held: Held) -> None:
    limits = {"max_bytes": 1000, "queue_characters": 1500}
    with client_of(held, **limits) as client, ThreadPoolExecutor(1) as pool:
        held.let_go.clear()
        body = {"text": "Ann " * 200}
        asked = pool.submit(client.post, "/annotate", json=body)
        wait_until(lambda: queue_of(client) == 1)
        refused(client.post("/annotate", json=body), 503)
        held.let_go.set()
        assert asked.result().status_code == 200
        assert client.post("/annotate", json=body).status_code == 200
        lines = json.dumps(body) + "\n"
        answers = client.post("/annotate/stream", content=lines * 5, headers=JSON_LINES).text
        assert "error" not in answers  # streams wait


def test_the_end_does_not_wait_for_ever_for_a_text(held: Held) -> None:
    async def ends() -> bool:
        batcher = Batcher(held, Limits(timeout=0.2), Metrics())
        held.let_go.clear()
        batcher.submit([Asked("annotate", "Ann", {})])
        await batcher.close()
        return batcher.alive

    assert asyncio.run(ends())
    held.let_go.set()


def test_a_text_that_fails_fails_alone(held: Held) -> None:
    with client_of(held) as client, ThreadPoolExecutor(8) as pool:
        held.let_go.clear()
        texts = ["Ann", BAD, "Bob", "Rome"]
        asked = [pool.submit(client.post, "/annotate", json={"text": text}) for text in texts]
        wait_until(lambda: queue_of(client) == 4)
        held.let_go.set()
        answers = [one.result() for one in asked]
        assert [answer.status_code for answer in answers] == [200, 500, 200, 200]
        error = refused(answers[1], 500)
        assert "RuntimeError" in error["reason"]
        refused(client.post("/annotate", json={"texts": texts}), 500)
        lines = client.post(
            "/annotate/stream",
            content="\n".join(json.dumps({"text": text}) for text in texts),
            headers={"Content-Type": "application/x-ndjson"},
        )
        told = [("error" in line) for line in lines.text.splitlines()]
        assert told == [False, True, False, False]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_health_is_a_503_once_the_thread_has_ended(held: Held) -> None:
    def fails(*_: object) -> None:
        raise SystemExit  # what no text can do

    held.annotate = fails  # type: ignore[method-assign, assignment]
    with client_of(held, queue=4) as client:
        assert client.get("/health").json()["status"] == "ok"
        lines = '{"text": "Ann"}\n' * 20  # more than the queue holds
        told = client.post("/annotate/stream", content=lines, headers=JSON_LINES).text
        statuses = [json.loads(line)["error"]["status"] for line in told.splitlines()]
        assert statuses == [503] * 20
        refused(client.post("/annotate", json={"text": "Ann"}), 503)
        answer = client.get("/health")
        described = client.get("/openapi.json").json()
    assert answer.status_code == 503
    assert answer.json()["status"] == "ended"
    check(described, answer_schema(described, "/health", "get", 503), answer.json())
