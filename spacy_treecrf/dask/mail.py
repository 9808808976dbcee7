"""Mail from worker to worker while trees grow: neither the driver nor the scheduler is asked.

Each message has a number within one call of a task, so that what comes early waits for its turn.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from distributed import Worker
from distributed.comm import CommClosedError
from distributed.protocol import to_serialize

from spacy_treecrf.dask.worker_state import StateLost

OPERATION = "treecrf_mail"
PATIENCE = 5.0  # seconds after which a peer that sends nothing is asked whether it is there
_FAILURES = (OSError, CommClosedError, asyncio.TimeoutError, asyncio.CancelledError)


class Call(NamedTuple):
    """What messages belong to: a call of a training's task, of a time."""

    training: str
    epoch: int
    number: int


FORGOTTEN = 2**62  # an epoch behind all others, so that tasks which still wait are over


class _Mailbox:
    """The messages of all workers of this process that nobody has taken yet."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._mail: dict[tuple[Any, ...], Any] = {}
        self._epochs: dict[str, int] = {}  # of each training: calls of before do nothing

    def put(self, call: Call, key: tuple[Any, ...], value: Any) -> None:
        with self._changed:
            if call.epoch >= self._epochs.get(call.training, 0):
                self._mail[(call, *key)] = value
                self._changed.notify_all()

    def take(self, call: Call, key: tuple[Any, ...], timeout: float) -> Any:
        """The message; raises TimeoutError if it does not come in time."""
        with self._changed:
            there = self._changed.wait_for(
                lambda: (call, *key) in self._mail or self._is_over(call), timeout
            )
            if self._is_over(call):
                raise StateLost("a task of another time")
            if not there:
                raise TimeoutError
            return self._mail.pop((call, *key))

    def _is_over(self, call: Call) -> bool:
        return call.epoch < self._epochs.get(call.training, 0)

    def begin(self, training: str, epoch: int) -> None:
        with self._changed:
            known = self._epochs.get(training, 0)
            # One that was forgotten goes on: only a driver that is there begins a time.
            self._epochs[training] = epoch if known == FORGOTTEN else max(epoch, known)
            for key in [key for key in self._mail if self._is_over(key[0])]:
                del self._mail[key]
            self._changed.notify_all()

    def forget(self, training: str) -> None:
        with self._changed:
            self._epochs[training] = FORGOTTEN
            self._mail = {k: v for k, v in self._mail.items() if k[0].training != training}
            self._changed.notify_all()


_MAILBOX = _Mailbox()


def begin(training: str, epoch: int) -> None:
    """Let calls of before this time end, also those that wait for mail."""
    _MAILBOX.begin(training, epoch)


def forget(training: str) -> None:
    """Drop the mail of a training."""
    _MAILBOX.forget(training)


async def _deliver(call: Sequence[Any], key: Sequence[Any], value: Any) -> None:
    _MAILBOX.put(Call(*call), tuple(key), value)


async def _ping() -> bool:
    return True


def open_mailbox(worker: Worker) -> None:
    """Let this worker take mail."""
    worker.handlers.setdefault(OPERATION, _deliver)
    worker.handlers.setdefault(f"{OPERATION}_ping", _ping)


class Sent(NamedTuple):
    """What was sent to all workers at once: they send the same number here."""

    number: int
    own: Any  # what this worker has for itself
    under_way: list[Future[Any]]


class Post:
    """What one worker sends to the others, and gets from them, in one call.

    peers: The addresses of all, in order. me: which of them this worker is.
    """

    def __init__(self, worker: Worker, call: Call, peers: Sequence[str], me: int) -> None:
        self._worker, self._call, self.peers, self.me = worker, call, peers, me
        self._numbers = itertools.count(1)

    def send(self, outgoing: Sequence[Any]) -> Sent:
        """Send each worker its value, and do not wait. All workers send in the same order."""
        number = next(self._numbers)
        under_way = [
            self._send(peer, number, value)
            for peer, value in enumerate(outgoing)
            if peer != self.me
        ]
        return Sent(number, outgoing[self.me], under_way)

    def take(self, sent: Sent) -> list[Any]:
        """Wait for what all have sent here under the same number; returns it in their order."""
        found = [
            sent.own if peer == self.me else self._take(peer, sent.number)
            for peer in range(len(self.peers))
        ]
        for future in sent.under_way:
            try:
                future.result()
            except _FAILURES as error:
                raise StateLost("a worker takes no mail") from error
        return found

    def _send(self, peer: int, number: int, value: Any) -> Future[Any]:
        address = self.peers[peer]
        key = [address, number, self.me]

        async def send() -> None:
            remote = getattr(self._worker.rpc(address), OPERATION)
            await remote(call=list(self._call), key=key, value=to_serialize(value))

        return self._run(send())

    def _take(self, peer: int, number: int) -> Any:
        key = self.peers[self.me], number, peer
        while True:
            try:
                return _MAILBOX.take(self._call, key, PATIENCE)
            except TimeoutError:
                self._check(peer)

    def _check(self, peer: int) -> None:
        """Raise `StateLost` if a worker has gone."""

        async def ask() -> None:
            remote = getattr(self._worker.rpc(self.peers[peer]), f"{OPERATION}_ping")
            await asyncio.wait_for(remote(), PATIENCE)

        try:
            self._run(ask()).result()
        except _FAILURES as error:
            raise StateLost("a worker sends no mail") from error

    def _run(self, work: Any) -> Future[Any]:
        loop: Any = self._worker.loop
        return asyncio.run_coroutine_threadsafe(work, loop.asyncio_loop)
