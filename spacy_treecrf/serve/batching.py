"""Texts of many requests gathered into batches, which one thread annotates.

The event loop puts jobs into a queue; the thread takes whatever waits, up to a batch, and so never
waits for a batch to fill: batches grow by themselves while the thread is busy. Only that thread
touches the pipeline.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from spacy.tokens import Doc

from spacy_treecrf.serve.limits import Limits
from spacy_treecrf.serve.metrics import Metrics
from spacy_treecrf.serve.refusals import RETRY_AFTER, Refusal

Input = str | list[str]  # a text, or the words of one
Answer = dict[str, Any]

# A zone of spaCy's memory lasts for so many characters: ending it drops what is known of words.
ZONE_CHARACTERS = 1_000_000

logger = logging.getLogger("uvicorn.error")


class Annotator(Protocol):
    """What annotates a batch; called by one thread."""

    def memory_zone(self) -> AbstractContextManager[Any]:
        """A zone at whose end all docs of it are dropped."""
        ...

    def annotate(self, inputs: Sequence[Input]) -> list[Doc]: ...


@dataclass(slots=True, eq=False)
class Job:
    """A text that waits, what to make of its doc, and the future that gets it."""

    input: Input
    n_characters: int
    answer: Callable[[Doc], Answer]
    future: asyncio.Future[Answer]


# What became of a job: an answer or an error, and the number of tokens. None: nobody waited for it.
Outcome = tuple[Job, Answer | Exception | None, int]


class Batcher:
    """The queue and its thread. All methods are for the thread of the event loop."""

    def __init__(self, annotator: Annotator, limits: Limits, metrics: Metrics) -> None:
        self._pending: set[Job] = set()  # those that have no outcome yet
        self._n_characters = 0  # of these
        self._ended = False
        self._limits = limits
        self._metrics = metrics
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()  # None: the end
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Event()
        self._worker = _Worker(annotator, limits, self._jobs, self._deliver_soon)
        # A daemon: the process may end before a text that takes for ever.
        self._thread = threading.Thread(target=self._work, name="treecrf-annotate", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return not self._ended

    @property
    def waiting(self) -> int:
        """How many texts wait or are being annotated."""
        return len(self._pending)

    def submit(
        self, inputs: Sequence[Input], answer: Callable[[Doc], Answer]
    ) -> list[asyncio.Future[Answer]]:
        """Futures of the answers; a refusal if so many inputs do not fit into the queue."""
        limit = self._limits.queue
        self._check_alive()
        if len(inputs) > limit:
            raise Refusal(413, f"{len(inputs)} texts at once; send at most {limit}, or a stream")
        n_characters = self._n_characters + sum(map(_n_characters, inputs))
        if self.waiting + len(inputs) > limit or n_characters > self._limits.most_characters:
            raise Refusal(503, "the queue is full; try again", headers=RETRY_AFTER)
        return [self._put(own, answer) for own in inputs]

    async def submit_with_patience(
        self, input: Input, answer: Callable[[Doc], Answer]
    ) -> asyncio.Future[Answer]:
        """The future of an answer, once the queue is less than half full."""
        while self.alive and self._is_half_full():
            self._room.clear()
            await self._room.wait()
        self._check_alive()
        return self._put(input, answer)

    async def close(self) -> None:
        """End the thread after the jobs that wait, or leave it alone if these take too long."""
        self._jobs.put(None)
        await self._loop.run_in_executor(None, self._thread.join, self._limits.timeout)

    def _check_alive(self) -> None:
        if not self.alive:
            raise _no_more()

    def _is_half_full(self) -> bool:
        limits = self._limits
        too_long = self._n_characters >= max(1, limits.most_characters // 2)
        return too_long or self.waiting >= limits.queue_of_streams

    def _put(self, input: Input, answer: Callable[[Doc], Answer]) -> asyncio.Future[Answer]:
        job = Job(input, _n_characters(input), answer, self._loop.create_future())
        self._pending.add(job)
        self._n_characters += job.n_characters
        self._jobs.put(job)
        return job.future

    def _work(self) -> None:
        """What the thread does; whatever ends it, nobody waits for it afterwards."""
        try:
            self._worker.run()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop has ended before
                self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self._ended = True
        self._settle([(job, _no_more(), 0) for job in self._pending])

    def _deliver_soon(self, outcomes: list[Outcome]) -> None:
        """Hand outcomes over to the event loop; called by the other thread."""
        try:
            self._loop.call_soon_threadsafe(self._deliver, outcomes)
        except RuntimeError:  # the loop was stopped by force, and nobody waits any more
            logger.warning("treecrf: %d answers came too late", len(outcomes))

    def _deliver(self, outcomes: list[Outcome]) -> None:
        sizes = [n_tokens for _, found, n_tokens in outcomes if found is not None]
        if sizes:
            self._metrics.add_batch(len(sizes), sum(sizes))
        self._settle(outcomes)

    def _settle(self, outcomes: list[Outcome]) -> None:
        for job, found, _ in outcomes:
            self._pending.discard(job)
            self._n_characters -= job.n_characters
            if found is None or job.future.done():  # given up
                continue
            if isinstance(found, Exception):
                job.future.set_exception(found)
            else:
                job.future.set_result(found)
        self._room.set()


class _Worker:
    """What the thread does."""

    def __init__(
        self,
        annotator: Annotator,
        limits: Limits,
        jobs: queue.SimpleQueue[Job | None],
        deliver: Callable[[list[Outcome]], None],
    ) -> None:
        self._annotator = annotator
        self._limits = limits
        self._jobs = jobs
        self._deliver = deliver
        self._ended = False

    def run(self) -> None:
        while not self._ended:
            n_characters = 0
            first = self._take()
            with self._annotator.memory_zone():
                while first:
                    self._deliver(self._outcomes(first))
                    n_characters += sum(job.n_characters for job in first)
                    first = [] if n_characters > ZONE_CHARACTERS else self._take()

    def _take(self) -> list[Job]:
        """The jobs of the next batch: waits for one, and takes those behind it; none at the end."""
        taken: list[Job] = []
        room = self._limits.batch_characters
        while not self._ended and room > 0 and len(taken) < self._limits.batch:
            try:
                job = self._jobs.get(block=not taken)
            except queue.Empty:
                break
            if job is None:
                self._ended = True
            else:
                taken.append(job)
                room -= job.n_characters
        return taken

    def _outcomes(self, jobs: list[Job]) -> list[Outcome]:
        wanted = [job for job in jobs if not job.future.done()]
        kept = set(wanted)
        given_up: list[Outcome] = [(job, None, 0) for job in jobs if job not in kept]
        if not wanted:
            return given_up
        try:
            docs = self._annotator.annotate([job.input for job in wanted])
        except Exception:  # of which text, can only be told one by one
            return given_up + [self._alone(job) for job in wanted]
        return given_up + [self._outcome(job, doc) for job, doc in zip(wanted, docs, strict=True)]

    def _outcome(self, job: Job, doc: Doc) -> Outcome:
        if job.future.done():  # given up while other texts of the batch were worked on
            return job, None, 0
        try:
            return job, job.answer(doc), len(doc)
        except Exception as error:
            return job, _as_refusal(error), len(doc)

    def _alone(self, job: Job) -> Outcome:
        if job.future.done():
            return job, None, 0
        try:
            (doc,) = self._annotator.annotate([job.input])
        except Exception as error:
            return job, _as_refusal(error), 0
        return self._outcome(job, doc)


def _no_more() -> Refusal:
    return Refusal(503, "the server does not annotate any more", headers=RETRY_AFTER)


def _as_refusal(error: Exception) -> Refusal:
    """The refusal that tells of an error; mistakes of the server's own are told in its log."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, ValueError) and str(error).startswith("treecrf: "):
        return Refusal(400, str(error).removeprefix("treecrf: "))
    logger.error("treecrf: a text could not be annotated", exc_info=error)
    return Refusal(500, f"the text could not be annotated ({type(error).__name__})")


def _n_characters(input: Input) -> int:
    return len(input) if isinstance(input, str) else sum(map(len, input)) + len(input)
