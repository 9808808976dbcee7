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


@pytest.fixture
def words_that_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zones from the first text on, each for less than one of the texts below."""
    monkeypatch.setattr("spacy_treecrf.serve.annotating.KEPT_CHARACTERS", 0)
    monkeypatch.setattr("spacy_treecrf.serve.annotating.ZONE_CHARACTERS", 1000)


def texts_of_new_words() -> list[str]:
    return [" ".join(f"word{i}x{j}" for j in range(200)) for i in range(20)]


@pytest.mark.usefixtures("words_that_go")
def test_new_words_do_not_stay_in_the_vocabulary(model: Path) -> None:
    held = Held(model)
    held.warm_up()
    before = set(held.nlp.vocab.strings)
    with client_of(held) as client:
        for text in texts_of_new_words():
            assert client.post("/annotate", json={"text": text}).status_code == 200
            # Those of one text are known, each with its shape and affixes.
            assert len(held.nlp.vocab.strings) <= len(before) + 3 * 200
    assert set(held.nlp.vocab.strings) == before


def test_words_of_the_first_texts_stay_known(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = texts_of_new_words()
    monkeypatch.setattr("spacy_treecrf.serve.annotating.KEPT_CHARACTERS", len(first))
    held = Held(model)
    with client_of(held) as client:
        for text in (first, *others):
            assert client.post("/annotate", json={"text": text}).status_code == 200
    known = held.nlp.vocab.strings
    assert all(word in known for word in first.split())
    assert not any(word in known for text in others for word in text.split())
