"""`spacy-treecrf serve` under load, beside nlp.pipe on the same texts.

Clients that each send one sentence after the other, in one process; the server in another, on the
loopback address; nlp.pipe in a third. Without --model, a small one is trained on CoNLL-2003.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

from timing import report, run_python

STEPS, TRAINING_DOCUMENTS = 8, 400
MOST_REQUESTS = 1_000_000
TICKS = os.sysconf("SC_CLK_TCK")


def sentences() -> list[str]:
    """Sentences of the dev part, as texts."""
    from corpora import read_conll2003

    found = []
    for document in read_conll2003("eng.testa"):
        starts = [i for i, is_start in enumerate(document.starts) if is_start]
        bounds = pairwise([*starts, len(document.words)])
        found += [" ".join(document.words[a:b]) for a, b in bounds]
    return found


def train(folder: Path) -> Path:
    from corpora import read_conll2003
    from spacy_data import CONFIGS, run_spacy, write_docs

    write_docs(folder / "train.spacy", read_conll2003("eng.train", TRAINING_DOCUMENTS))
    write_docs(folder / "dev.spacy", read_conll2003("eng.testa", 20))
    settings = {"paths.train": folder / "train.spacy", "paths.dev": folder / "dev.spacy"}
    steps = {"training.max_steps": STEPS, "training.eval_frequency": STEPS}
    run_spacy(
        "train", CONFIGS / "ner.cfg", "-o", folder, **settings, **steps, **{"training.patience": 0}
    )
    return folder / "model-last"


class Server:
    """The server in a process of its own, on a port that is free."""

    def __init__(self, model: str, *options: str) -> None:
        command = [sys.executable, "-m", "spacy_treecrf", "serve", model, "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if " at http://" not in line:
            raise SystemExit(f"the server did not start: {line}")
        self.port = int(line.rpartition(":")[2])

    def processes(self) -> list[int]:
        """The server and the process that annotates for it."""
        threads = Path(f"/proc/{self.process.pid}/task")
        found = [thread / "children" for thread in threads.iterdir()] if threads.exists() else []
        children = "".join(path.read_text() for path in found).split()
        return [self.process.pid, *map(int, children)]

    def cpu_seconds(self) -> float:
        ticks = 0
        for process in self.processes():
            stat = Path(f"/proc/{process}/stat")
            if not stat.exists():
                return float("nan")
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS

    def megabytes(self) -> float:
        pages = 0
        for process in self.processes():
            statm = Path(f"/proc/{process}/statm")
            if not statm.exists():
                return float("nan")
            pages += int(statm.read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


async def request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes, body: bytes
) -> int:
    """Send one request over an open connection; returns the status of its answer."""
    writer.write(head % len(body) + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
    await reader.readexactly(length)
    return int(answer.split(b" ", 2)[1])


async def load(port: int, texts: Sequence[str], clients: int, seconds: float) -> dict[str, Any]:
    """What clients see that send sentence after sentence, each over its own connection."""
    head = f"POST /annotate HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode()
    head += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    bodies = cycle([json.dumps({"text": text}).encode() for text in texts])
    latencies: list[float] = []
    errors = 0
    end = time.perf_counter() + seconds

    async def client() -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < end and len(latencies) < MOST_REQUESTS:
            began = time.perf_counter()
            try:
                errors += await request(reader, writer, head, next(bodies)) != 200
            except (OSError, asyncio.IncompleteReadError):
                errors += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            latencies.append(time.perf_counter() - began)
        writer.close()

    began = time.perf_counter()
    cpu = time.process_time()
    await asyncio.gather(*(client() for _ in range(clients)))
    took = time.perf_counter() - began
    latencies.sort()
    at = {f"p{q}_ms": 1000 * latencies[len(latencies) * q // 100] for q in (50, 90, 99)}
    return {
        "requests": len(latencies),
        "errors": errors,
        "texts_per_second": len(latencies) / took,
        **at,
        "client_cpu_seconds": time.process_time() - cpu,
    }


def pipe(model: str, seconds: float, threads: int) -> dict[str, Any]:
    """nlp.pipe on the same sentences, for so long each way, in batches of the server's size.

    In zones its memory is flat, as the server's is. Without them all words are known by now, and
    the tokenizer need not cut any.
    """
    import spacy

    nlp = spacy.load(model)
    for _, own in nlp.pipeline:
        if hasattr(own, "shim"):
            own.shim.recipe = own.shim.recipe.changed(threads=threads)
    texts = sentences()
    list(nlp.pipe(texts[:500]))
    in_zones = _passes(nlp, texts, seconds / 2, nlp.memory_zone)
    list(nlp.pipe(texts))
    known = _passes(nlp, texts, seconds / 2, nullcontext)
    return {"in_zones": in_zones, "known_words": known}


def _passes(nlp: Any, texts: list[str], seconds: float, zone: Callable[[], Any]) -> float:
    """Texts in a second, over several passes."""
    n = 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        with zone():
            n += sum(1 for _ in nlp.pipe(texts, batch_size=128))
    return n / (time.perf_counter() - began)


def measure(model: str, options: argparse.Namespace) -> None:
    """Both sides by turns, so that other programs on the machine disturb both."""
    sizes = ("--seconds", str(options.seconds), "--threads", str(options.threads))
    server = Server(model, "--threads", str(options.threads))
    try:
        run_client = (__file__, "--client", str(server.port), "--clients", str(options.clients))
        run_python(*run_client, "--seconds", "2")  # warm
        for turn in range(options.turns):
            alone = run_python(__file__, "--pipe", model, *sizes)
            before, cpu = server.megabytes(), server.cpu_seconds()
            seen = run_python(*run_client, *sizes)
            cpu = server.cpu_seconds() - cpu
            report(
                "serve",
                turn=turn,
                clients=options.clients,
                **seen,
                server_texts_per_cpu_second=seen["requests"] / cpu if cpu else None,
                pipe_texts_per_second=alone["in_zones"],
                share_of_pipe=seen["texts_per_second"] / alone["in_zones"],
                pipe_of_known_words=alone["known_words"],
                share_of_pipe_of_known_words=seen["texts_per_second"] / alone["known_words"],
                megabytes_before=before,
                megabytes_after=server.megabytes(),
            )
    finally:
        code = server.end()
    report("serve_end", exit_code=code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="spaCy pipeline; default: trained here")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="10 s, one turn")
    parser.add_argument("--client", type=int, help=argparse.SUPPRESS)  # port
    parser.add_argument("--pipe", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.turns = 10.0, 1
    if options.client:
        print(
            json.dumps(
                asyncio.run(load(options.client, sentences(), options.clients, options.seconds))
            )
        )
    elif options.pipe:
        print(json.dumps(pipe(options.pipe, options.seconds, options.threads)))
    elif options.model:
        measure(options.model, options)
    else:
        with tempfile.TemporaryDirectory() as folder:
            measure(str(train(Path(folder))), options)


if __name__ == "__main__":
    main()
