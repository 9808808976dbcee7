"""What all routes share while the server runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.requests import Request

from spacy_treecrf.serve.asking import Annotator, Asked, Served
from spacy_treecrf.serve.batching import Batcher
from spacy_treecrf.serve.limits import Limits
from spacy_treecrf.serve.metrics import Metrics
from spacy_treecrf.serve.refusals import Refusal


@dataclass(frozen=True)
class Service:
    """The pipeline, its queue, and what is counted."""

    annotator: Annotator
    served: Served
    limits: Limits
    metrics: Metrics
    batcher: Batcher

    async def answers(self, asked: Sequence[Asked]) -> list[bytes]:
        """Answers to all of them as JSON, in their order; 504 if that takes too long."""
        futures = self.batcher.submit(asked)
        loop = asyncio.get_running_loop()
        # A timer, and no cancel scope: that would take as long as all else here.
        timer = loop.call_later(self.limits.timeout, self._give_up, futures)
        try:
            return [await future for future in futures]
        finally:
            timer.cancel()
            for future in futures:  # what nobody waits for any more is not annotated
                if not future.cancel() and not future.cancelled():
                    future.exception()  # so that asyncio does not tell of errors after the first

    def _give_up(self, futures: list[asyncio.Future[bytes]]) -> None:
        reason = f"the answer took more than {self.limits.timeout:g} seconds"
        for future in futures:
            if not future.done():
                future.set_exception(Refusal(504, reason))


@asynccontextmanager
async def running(annotator: Annotator, limits: Limits, metrics: Metrics) -> AsyncIterator[Service]:
    """The service with its thread, which ends after all that waits, in the time that it has."""
    batcher = Batcher(annotator, limits, metrics)
    try:
        yield Service(annotator, annotator.served, limits, metrics, batcher)
    finally:
        await batcher.close()


def service_of(request: Request) -> Service:
    service: Service = request.state.service
    return service
