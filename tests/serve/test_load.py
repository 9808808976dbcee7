"""Many clients at once, for a bounded number of requests; and memory that stays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fresh_environment import ROOT
from tests.serve.servers import Server
from tests.serve.test_limits import Held, client_of

BENCHMARK = ROOT / "benchmarks" / "bench_serve.py"
LOAD = """
import asyncio, json, sys
sys.path.insert(0, {folder!r})
import bench_serve
bench_serve.MOST_REQUESTS = {most}
texts = ["Ann Lee saw New York .", "Bob left Paris", "they slept", "in Rome Ann slept"]
print(json.dumps(asyncio.run(bench_serve.load({port}, texts, 64, 600.0))))
"""


@pytest.mark.slow
def test_64_clients_at_once_get_no_error(model: Path) -> None:
    """The client of the benchmark, in a process of its own."""
    most = 3000
    with Server(model) as server:
        code = LOAD.format(folder=str(BENCHMARK.parent), most=most, port=server.port)
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        seen = json.loads(run.stdout)
        assert seen["errors"] == 0
        assert most <= seen["requests"] < most + 64
        assert server.metric("texts_total") == seen["requests"]
        assert server.metric("batches_total") < seen["requests"]
        assert server.metric("queue_length") == 0


def test_new_words_do_not_stay_in_the_vocabulary(model: Path) -> None:
    held = Held(model)
    held.warm_up()
    before = set(held.nlp.vocab.strings)
    with client_of(held) as client:
        for i in range(20):
            words = " ".join(f"word{i}x{j}" for j in range(200))
            assert client.post("/annotate", json={"text": words}).status_code == 200
    assert set(held.nlp.vocab.strings) == before


# A zone ends after each text, so that words of two of them are known at most, each with its shape.
def test_memory_zones_end_while_the_server_goes_on(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spacy_treecrf.serve.batching.ZONE_CHARACTERS", 1000)
    held = Held(model)
    held.warm_up()
    before = len(held.nlp.vocab.strings)
    with client_of(held) as client:
        for i in range(20):
            words = " ".join(f"word{i}x{j}" for j in range(200))
            assert client.post("/annotate", json={"text": words}).status_code == 200
            assert len(held.nlp.vocab.strings) <= before + 2 * 2 * 200
