"""Texts of many requests gathered into batches, which one thread has annotated.

The event loop puts jobs into a queue; the thread takes whatever waits, up to a batch, and so never
waits for a batch to fill: batches grow by themselves while the annotator is busy. Only that thread
talks to the annotator.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spacy_treecrf.serve.asking import OK, Annotator, Asked, Reply
from spacy_treecrf.serve.limits import Limits
from spacy_treecrf.serve.metrics import Metrics
from spacy_treecrf.serve.refusals import RETRY_AFTER, Refusal

logger = logging.getLogger("uvicorn.error")


@dataclass(slots=True, eq=False)
class Job:
    """A text that waits, and the future that gets the answer as JSON."""

    asked: Asked
    n_characters: int
    future: asyncio.Future[bytes]


# What became of a job. None: nobody waited for it.
Outcome = tuple[Job, Reply | None]


class Batcher:
    """The queue and its thread. All methods are for the thread of the event loop."""

    def __init__(self, annotator: Annotator, limits: Limits, metrics: Metrics) -> None:
        self._pending: set[Job] = set()  # those that have no outcome yet
        self._n_characters = 0  # of these
        self._ended = False
        self._annotator = annotator
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

    def submit(self, asked: Sequence[Asked]) -> list[asyncio.Future[bytes]]:
        """Futures of the answers; a refusal if so many texts do not fit into the queue."""
        limit = self._limits.queue
        self._check_alive()
        if len(asked) > limit:
            raise Refusal(413, f"{len(asked)} texts at once; send at most {limit}, or a stream")
        n_characters = self._n_characters + sum(one.n_characters for one in asked)
        if self.waiting + len(asked) > limit or n_characters > self._limits.most_characters:
            raise Refusal(503, "the queue is full; try again", headers=RETRY_AFTER)
        return [self._put(one) for one in asked]

    async def submit_with_patience(self, asked: Asked) -> asyncio.Future[bytes]:
        """The future of an answer, once the queue is less than half full."""
        while self.alive and self._is_half_full():
            self._room.clear()
            await self._room.wait()
        self._check_alive()
        return self._put(asked)

    async def close(self) -> None:
        """End the thread after the jobs that wait, or abandon these if they take too long."""
        self._jobs.put(None)
        await self._loop.run_in_executor(None, self._thread.join, self._limits.timeout)
        if self._thread.is_alive():
            self._annotator.abandon()

    def _check_alive(self) -> None:
        if not self.alive:
            raise _no_more()

    def _is_half_full(self) -> bool:
        limits = self._limits
        too_long = self._n_characters >= max(1, limits.most_characters // 2)
        return too_long or self.waiting >= limits.queue_of_streams

    def _put(self, asked: Asked) -> asyncio.Future[bytes]:
        job = Job(asked, asked.n_characters, self._loop.create_future())
        self._pending.add(job)
        self._n_characters += job.n_characters
        self._jobs.put(job)
        return job.future

    def _work(self) -> None:
        """What the thread does; whatever ends it, nobody waits for it afterwards."""
        try:
            self._worker.run()
        except EOFError:
            logger.warning("treecrf: texts that took too long are abandoned")
        finally:
            with contextlib.suppress(RuntimeError):  # the loop has ended before
                self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self._ended = True
        no_more = Reply.of_refusal(_no_more())
        self._settle([(job, no_more) for job in self._pending])

    def _deliver_soon(self, outcomes: list[Outcome]) -> None:
        """Hand outcomes over to the event loop; called by the other thread."""
        try:
            self._loop.call_soon_threadsafe(self._deliver, outcomes)
        except RuntimeError:  # the loop was stopped by force, and nobody waits any more
            logger.warning("treecrf: %d answers came too late", len(outcomes))

    def _deliver(self, outcomes: list[Outcome]) -> None:
        sizes = [reply.n_tokens for _, reply in outcomes if reply is not None]
        if sizes:
            self._metrics.add_batch(len(sizes), sum(sizes))
        self._settle(outcomes)

    def _settle(self, outcomes: list[Outcome]) -> None:
        for job, reply in outcomes:
            self._pending.discard(job)
            self._n_characters -= job.n_characters
            if reply is None or job.future.done():  # given up
                continue
            if reply.status == OK:
                job.future.set_result(reply.body)
            else:
                job.future.set_exception(reply.refusal)
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
        self._next: Job | None = None  # taken from the queue, and left to the next batch
        self._ended = False

    def run(self) -> None:
        try:
            while taken := self._take():
                self._deliver(self._outcomes(taken))
        finally:
            self._annotator.close()

    def _take(self) -> list[Job]:
        """The jobs of the next batch: waits for one, and takes those behind it; none at the end.

        What is to be explained is a batch of its own: it takes long, and may be given up meanwhile.
        """
        taken: list[Job] = []
        room = self._limits.batch_characters
        while room > 0 and len(taken) < self._limits.batch:
            job = self._take_one(wait=not taken)
            if job is None:
                break
            if taken and job.asked.kind == "explain":
                self._next = job
                break
            taken.append(job)
            room -= job.n_characters
            if job.asked.kind == "explain":
                break
        return taken

    def _take_one(self, wait: bool) -> Job | None:
        """The job that comes next; None if there is none, or if the end has come."""
        job, self._next = self._next, None
        if job is not None or self._ended:
            return job
        try:
            job = self._jobs.get(block=wait)
        except queue.Empty:
            return None
        self._ended = job is None
        return job

    def _outcomes(self, jobs: list[Job]) -> list[Outcome]:
        wanted = [job for job in jobs if not job.future.done()]
        kept = set(wanted)
        given_up: list[Outcome] = [(job, None) for job in jobs if job not in kept]
        if not wanted:
            return given_up
        replies = self._annotator.answers([job.asked for job in wanted])
        return given_up + [
            (job, None if job.future.done() else reply)  # done: given up meanwhile
            for job, reply in zip(wanted, replies, strict=True)
        ]


def _no_more() -> Refusal:
    return Refusal(503, "the server does not annotate any more", headers=RETRY_AFTER)
