"""What /metrics tells, in the text format of Prometheus."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from spacy_treecrf.serve.metrics import SECONDS, Metrics
from tests.serve.servers import Server

METRICS = 'path="/metrics",method="GET",status="200"'
SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z]+="[^"]*",?)+)\})? ([0-9.e+-]+)$')


def samples(text: str) -> dict[tuple[str, str], float]:
    """Values by name and labels; every line must be well-formed, and its name described before."""
    assert text.endswith("\n")
    described: dict[str, str] = {}
    found = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            described[name] = kind
        elif not line.startswith("# HELP "):
            match = SAMPLE.match(line)
            assert match, line
            name, labels, value = match.groups()
            assert described.get(name) or described.get(name.rpartition("_")[0]) == "histogram"
            found[name, labels or ""] = float(value)
    return found


@pytest.fixture
def own_server(model: Path) -> Iterator[Server]:
    """A server that no other test has asked: long answers are counted when all of them is gone."""
    with Server(model) as running:
        yield running


def test_requests_are_counted_by_path_method_and_status(own_server: Server) -> None:
    server = own_server

    def counted() -> dict[str, float]:
        name = "treecrf_requests_total"
        now = samples(server.client.get("/metrics").text)
        return defaultdict(float, {labels: n for (own, labels), n in now.items() if own == name})

    before = counted()
    server.annotate(text="Ann")
    server.client.post("/annotate", json={"text": 1})
    server.client.get("/annotate")
    for i in range(3):
        server.client.get(f"/no-{i}")
    server.client.request("PROPFIND", "/health")  # known to parsers, and unknown here
    after = counted()
    new = {labels: n - before[labels] for labels, n in after.items() if n != before[labels]}
    assert new == {
        'path="/annotate",method="POST",status="200"': 1,
        'path="/annotate",method="POST",status="400"': 1,
        'path="/annotate",method="GET",status="405"': 1,
        'path="other",method="GET",status="404"': 3,
        'path="/health",method="other",status="405"': 1,
        METRICS: 1,
    }


def test_texts_tokens_and_memory_are_told(server: Server) -> None:
    before = samples(server.client.get("/metrics").text)
    server.annotate(texts=["Ann saw Rome", "Bob"])
    answer = server.client.get("/metrics")
    after = samples(answer.text)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert after["treecrf_texts_total", ""] - before["treecrf_texts_total", ""] == 2
    assert after["treecrf_tokens_total", ""] - before["treecrf_tokens_total", ""] == 4
    assert after["treecrf_queue_length", ""] == 0
    assert after.get(("treecrf_resident_memory_bytes", ""), 1e6) >= 1e6


def test_latencies_are_a_histogram_whose_buckets_add_up() -> None:
    metrics = Metrics()
    values = [0.0, 0.001, 0.0011, 0.3, 99.0]
    for value in values:
        metrics.add_request("/annotate", "POST", 200, value)
    found = samples(metrics.to_text(7, 0))
    for bound in SECONDS:
        key = "treecrf_request_seconds_bucket", f'path="/annotate",le="{bound:g}"'
        assert found[key] == sum(value <= bound for value in values)
    assert found["treecrf_request_seconds_bucket", 'path="/annotate",le="+Inf"'] == 5
    assert found["treecrf_request_seconds_count", 'path="/annotate"'] == 5
    assert abs(found["treecrf_request_seconds_sum", 'path="/annotate"'] - sum(values)) < 1e-6
    assert found["treecrf_queue_length", ""] == 7
