"""Counters, gauges and histograms in the text format of Prometheus."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Upper bounds of the latencies' buckets, in seconds; one more bucket has no bound.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
PREFIX = "treecrf"


@dataclass
class Histogram:
    """Counts of values by bucket, their number and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    total: float = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(SECONDS, value)] += 1
        self.total += value


@dataclass
class Metrics:
    """What the server has done so far. Only the thread of the event loop changes it."""

    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)  # path, method, status
    latencies: dict[str, Histogram] = field(default_factory=lambda: defaultdict(Histogram))
    texts: int = 0
    tokens: int = 0
    batches: int = 0

    def add_request(self, path: str, method: str, status: int, seconds: float) -> None:
        self.requests[path, method, status] += 1
        self.latencies[path].add(seconds)

    def add_batch(self, texts: int, tokens: int) -> None:
        self.batches += 1
        self.texts += texts
        self.tokens += tokens

    def to_text(self, waiting: int, of_annotator: int | None) -> str:
        """All of it for Prometheus.

        waiting: How long the queue is. of_annotator: The bytes that it holds in another process.
        """
        lines = [*self._requests(), *self._latencies()]
        lines += _single("texts_total", "counter", "Texts annotated.", self.texts)
        lines += _single("tokens_total", "counter", "Tokens of these texts.", self.tokens)
        lines += _single("batches_total", "counter", "Batches they came in.", self.batches)
        waiting_help = "Texts that wait or are being annotated."
        lines += _single("queue_length", "gauge", waiting_help, waiting)
        own = resident_bytes()
        if own is not None and of_annotator is not None:
            memory_help = "Memory of the server's processes."
            lines += _single("resident_memory_bytes", "gauge", memory_help, own + of_annotator)
        return "\n".join(lines) + "\n"

    def _requests(self) -> Iterator[str]:
        name = f"{PREFIX}_requests_total"
        yield from _head(name, "counter", "Requests by path, method and status.")
        for (path, method, status), n in sorted(self.requests.items()):
            labels = _labels(path=path, method=method, status=str(status))
            yield f"{name}{labels} {n}"

    def _latencies(self) -> Iterator[str]:
        name = f"{PREFIX}_request_seconds"
        yield from _head(name, "histogram", "Seconds from a request to the end of its answer.")
        for path, histogram in sorted(self.latencies.items()):
            so_far = 0
            bounds = [f"{bound:g}" for bound in SECONDS] + ["+Inf"]
            for bound, n in zip(bounds, histogram.counts, strict=True):
                so_far += n
                yield f"{name}_bucket{_labels(path=path, le=bound)} {so_far}"
            yield f"{name}_sum{_labels(path=path)} {histogram.total:.6f}"
            yield f"{name}_count{_labels(path=path)} {so_far}"


def resident_bytes(process: int | None = None) -> int | None:
    """The memory that a process holds, this one by default; None where the system does not tell."""
    try:
        statm = Path(f"/proc/{process or 'self'}/statm").read_text()
    except OSError:
        return None
    return int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _single(name: str, kind: str, text: str, value: int) -> Iterator[str]:
    yield from _head(f"{PREFIX}_{name}", kind, text)
    yield f"{PREFIX}_{name} {value}"


def _labels(**values: str) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in values.items()) + "}"
