"""Texts of many requests gathered into batches, which one thread annotates.

The event loop puts jobs into a queue; the thread takes whatever waits, up to a batch, and so never
waits for a batch to fill: batches grow by themselves while the thread is busy. Only that thread
touches the pipeline.
"""

from __future__ import annotations

import asyncio
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
    answer: Callable[[Doc], Answer]
    future: asyncio.Future[Answer]


# What became of a job: an answer or an error, and the number of tokens.
Outcome = tuple[Job, Answer | Exception, int]


class Batcher:
    """The queue and its thread. All methods are for the thread of the event loop."""

    def __init__(self, annotator: Annotator, limits: Limits, metrics: Metrics) -> None:
        self.waiting = 0  # jobs that have no outcome yet
        self._limits = limits
        self._metrics = metrics
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()  # None: the end
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Event()
        worker = _Worker(annotator, limits.batch, self._jobs, self._deliver_soon)
        self._thread = threading.Thread(target=worker.run, name="treecrf-annotate")
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def submit(
        self, inputs: Sequence[Input], answer: Callable[[Doc], Answer]
    ) -> list[asyncio.Future[Answer]]:
        """Futures of the answers; a refusal if so many inputs do not fit into the queue."""
        limit = self._limits.queue
        if not self.alive:
            raise Refusal(503, "the server does not annotate any more", headers=RETRY_AFTER)
        if len(inputs) > limit:
            raise Refusal(413, f"{len(inputs)} texts at once; send at most {limit}, or a stream")
        if self.waiting + len(inputs) > limit:
            raise Refusal(503, "the queue is full; try again", headers=RETRY_AFTER)
        return [self._put(own, answer) for own in inputs]

    async def submit_with_patience(
        self, input: Input, answer: Callable[[Doc], Answer]
    ) -> asyncio.Future[Answer]:
        """The future of an answer, once the queue is less than half full."""
        while self.waiting >= self._limits.queue_of_streams:
            self._room.clear()
            await self._room.wait()
        return self._put(input, answer)

    def close(self) -> None:
        """End the thread after the jobs that wait."""
        self._jobs.put(None)
        self._thread.join()

    def _put(self, input: Input, answer: Callable[[Doc], Answer]) -> asyncio.Future[Answer]:
        job = Job(input, answer, self._loop.create_future())
        self.waiting += 1
        self._jobs.put(job)
        return job.future

    def _deliver_soon(self, outcomes: list[Outcome]) -> None:
        """Hand outcomes over to the event loop; called by the other thread."""
        try:
            self._loop.call_soon_threadsafe(self._deliver, outcomes)
        except RuntimeError:  # the loop was stopped by force, and nobody waits any more
            logger.warning("treecrf: %d answers came too late", len(outcomes))

    def _deliver(self, outcomes: list[Outcome]) -> None:
        self.waiting -= len(outcomes)
        self._metrics.add_batch(len(outcomes), sum(n_tokens for _, _, n_tokens in outcomes))
        for job, found, _ in outcomes:
            if job.future.done():  # given up
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
        batch: int,
        jobs: queue.SimpleQueue[Job | None],
        deliver: Callable[[list[Outcome]], None],
    ) -> None:
        self._annotator = annotator
        self._batch = batch
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
                    n_characters += sum(_n_characters(job.input) for job in first)
                    first = [] if n_characters > ZONE_CHARACTERS else self._take()

    def _take(self) -> list[Job]:
        """The jobs of the next batch: waits for one, and takes those behind it; none at the end."""
        taken: list[Job] = []
        while not self._ended and len(taken) < self._batch:
            try:
                job = self._jobs.get(block=not taken)
            except queue.Empty:
                break
            if job is None:
                self._ended = True
            else:
                taken.append(job)
        return taken

    def _outcomes(self, jobs: list[Job]) -> list[Outcome]:
        given_up: list[Outcome] = []
        wanted: list[Job] = []
        for job in jobs:
            if job.future.done():
                given_up.append((job, {}, 0))
            else:
                wanted.append(job)
        try:
            docs = self._annotator.annotate([job.input for job in wanted])
        except Exception:  # of which text, can only be told one by one
            return given_up + [self._alone(job) for job in wanted]
        return given_up + [self._outcome(job, doc) for job, doc in zip(wanted, docs, strict=True)]

    def _outcome(self, job: Job, doc: Doc) -> Outcome:
        try:
            return job, job.answer(doc), len(doc)
        except Exception as error:
            return job, _as_refusal(error), len(doc)

    def _alone(self, job: Job) -> Outcome:
        try:
            (doc,) = self._annotator.annotate([job.input])
        except Exception as error:
            return job, _as_refusal(error), 0
        return self._outcome(job, doc)


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
