"""The workers of a cluster as the driver sees them: tasks on each of them, and who was lost."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import dask
from dask.sizeof import sizeof
from distributed import Client, Future, get_worker, secede, wait
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker, NoValidWorkerError

from spacy_treecrf.dask import mail
from spacy_treecrf.dask.driver_watch import DriverWatch
from spacy_treecrf.dask.parts import Part
from spacy_treecrf.dask.worker_state import StateLost, WorkerState

DISTRIBUTION = "spacy-treecrf"
POLL_SECONDS = 1.0
# For a result to come to the driver once its task is done. A client whose fetching is interrupted
# before it has begun can fetch nothing any more, so this is long.
FETCH_SECONDS = 20.0
WAIT_SECONDS = 60.0  # for the first worker
MOST_LOSSES = 20  # without a finished round
SETTLE = "settle"
TIMED_OUT = (TimeoutError, asyncio.TimeoutError)
# What tasks raise when a worker has gone; whether it has is looked up.
_LOSSES = (
    StateLost,
    KilledWorker,
    NoValidWorkerError,
    CommClosedError,
    asyncio.CancelledError,
    CancelledError,
    OSError,
)

# On a worker: what it has of each training. Several workers may share a process.
_STATES: dict[tuple[str, str], WorkerState] = {}
_WATCHES: dict[tuple[str, str], DriverWatch] = {}


class WorkersLost(Exception):
    """Workers have gone; what they had must be made anew."""


@dataclass
class Traffic:
    """What has travelled: messages between driver and workers, and bytes also between workers.

    exchanges: How often all workers have waited for each other while trees grew.
    """

    messages: int = 0
    driver_bytes: int = 0
    worker_bytes: int = 0
    exchanges: int = 0

    def add(self, other: Traffic) -> None:
        self.messages += other.messages
        self.driver_bytes += other.driver_bytes
        self.worker_bytes += other.worker_bytes
        self.exchanges += other.exchanges


def call(training: str, epoch: int, method: str, *args: Any) -> Any:
    """The task: what a method of this worker's state returns."""
    worker = get_worker()
    key = training, worker.address
    state = _STATES.get(key)
    if state is None:
        if method != SETTLE:
            raise StateLost(f"{worker.address} has nothing of this training")
        make_state: Callable[[int], WorkerState] = args[0]
        state = _STATES.setdefault(key, make_state(worker.state.nthreads))
    mail.open_mailbox(worker)
    with state.lock:
        if method == SETTLE:
            state.epoch = max(state.epoch, epoch)
            watch = DriverWatch(worker, partial(_forget_here, key))
            _WATCHES.setdefault(key, watch).keep(worker.get_current_task())
            return [span.number for span in state.spans], sorted(state.held_out)
        if epoch < state.epoch:
            raise StateLost("a task of another time")
        return getattr(state, method)(*args)


def call_together(
    training: str, epoch: int, number: int, peers: Sequence[str], method: str, *args: Any
) -> Any:
    """The task of workers that do the same, and give each other mail. number: of this call"""
    worker = get_worker()
    me = list(peers).index(worker.address)
    if len(peers) > 1:
        secede()  # else two trainings may each hold a thread that the other waits for
    post = mail.Post(worker, mail.Call(training, epoch, number), peers, me)
    found = call(training, epoch, method, post, *args)
    return found if me == 0 else found._replace(trees=[])


def forget(training: str) -> None:
    """Drop what workers of this process have of a training."""
    mail.forget(training)
    for key in {*_STATES, *_WATCHES}:
        if key[0] == training:
            _drop(key)
    gc.collect()  # rows are worth it


def _forget_here(key: tuple[str, str]) -> None:
    """Drop what one worker has of a training, as its driver is gone."""
    _drop(key)
    if not any(training == key[0] for training, _ in list(_STATES)):
        mail.forget(key[0])
    gc.collect()


def _drop(key: tuple[str, str]) -> None:
    if (watch := _WATCHES.pop(key, None)) is not None:
        watch.close()
    if (state := _STATES.pop(key, None)) is not None:
        state.close()


class Crew:
    """The workers that take part in a training, in a fixed order."""

    def __init__(
        self, client: Client, make_state: Callable[[int], WorkerState] = WorkerState
    ) -> None:
        self.client = client
        self.make_state = make_state
        self.training = uuid.uuid4().hex
        self.epoch = 0
        self.members: list[str] = []
        self.traffic = Traffic()
        self._numbers = itertools.count()
        self._checked: set[str] = set()
        self._settled = 0  # times since the last round was finished
        self._kept: list[Future] = []  # as long as this training lives: see `DriverWatch`

    def present(self) -> list[str]:
        """The addresses of all workers of the cluster, in order."""
        return sorted(self._threads())

    def most_threads(self) -> int:
        """The threads of the member that has most of them."""
        threads = self._threads()
        return max(threads.get(member, 1) for member in self.members)

    def _threads(self) -> dict[str, int]:
        """How many threads each worker of the cluster has."""
        try:
            return dict(self.client.nthreads())
        except (OSError, *TIMED_OUT) as error:
            raise ValueError(
                "treecrf: the scheduler of the cluster does not answer any more; start it again, "
                "and go on from the checkpoint if there is one"
            ) from error

    def check_versions(self, workers: Sequence[str]) -> None:
        """Refuse workers that do not have this version of the package."""
        own = _own_version()
        if not workers:
            return
        found = self.client.run(version, DISTRIBUTION, workers=list(workers), on_error="return")
        for worker, there in sorted(found.items()):
            if isinstance(there, PackageNotFoundError):
                raise ValueError(
                    f"treecrf: worker {worker} does not have {DISTRIBUTION}; install version {own} "
                    "there"
                )
            if there != own:
                raise ValueError(
                    f"treecrf: worker {worker} has {DISTRIBUTION} {there}, and the driver has "
                    f"{own}; install the same version on all machines"
                )

    def settle(self) -> dict[str, tuple[list[int], list[int]]]:
        """Begin anew with the workers that are there; returns which spans and parts they have.

        Tasks of before do nothing from now on.
        """
        self._settled += 1
        if self._settled > MOST_LOSSES:
            raise ValueError(
                f"treecrf: workers were lost {MOST_LOSSES} times without a finished round; look "
                "into their logs, give them more memory, or cut the data into more parts"
            )
        while True:
            self.epoch += 1
            self.members = self.present()
            self.check_versions([each for each in self.members if each not in self._checked])
            self._checked.update(self.members)
            # Before anything else: tasks that wait for mail of a lost worker hold their state.
            self.client.run(mail.begin, self.training, self.epoch, on_error="ignore")
            if not self.members:
                self._wait_for_worker()
                continue
            with contextlib.suppress(WorkersLost):
                asked = [self.submit(member, SETTLE, self.make_state) for member in self.members]
                found = dict(zip(self.members, self.collect(asked), strict=True))
                self._kept = asked
                return found

    def _wait_for_worker(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=WAIT_SECONDS)
        except TIMED_OUT as error:
            raise ValueError(
                f"treecrf: the cluster has had no worker for {WAIT_SECONDS:.0f} s; start some"
            ) from error

    def finished_round(self) -> None:
        """Forget the losses of before: the training goes on."""
        self._settled = 0

    def submit(self, member: str, method: str, *args: Any) -> Future:
        return self._submit(member, method, call, (method, *args))

    def _submit(
        self, member: str, name: str, task: Callable[..., Any], args: tuple[Any, ...]
    ) -> Future:
        self.traffic.messages += 1
        self.traffic.driver_bytes += sizeof(args)
        key = f"treecrf-{name}-{self.training[:8]}-{next(self._numbers)}"
        return self.client.submit(
            task,
            self.training,
            self.epoch,
            *args,
            key=key,
            workers=[member],
            allow_other_workers=False,
            pure=False,
        )

    def submit_part(self, member: str, method: str, number: int, part: Part, *args: Any) -> Future:
        """A task about a part, which is read where the task runs."""
        self.traffic.messages += 1
        is_path = isinstance(part.source, str)
        bare = part if is_path else replace(part, source=None)
        value = None if is_path else part.source
        task = dask.delayed(call, pure=False)(
            self.training, self.epoch, method, number, bare, value, *args
        )
        return self.client.compute(task, workers=[member], allow_other_workers=False)

    def share(self, value: Any) -> Future:
        """A large value that many tasks take: workers fetch it from each other."""
        self.traffic.messages += 1
        self.traffic.driver_bytes += sizeof(value)
        try:
            return self.client.scatter(value, workers=[self.members[0]], hash=False)
        except (OSError, ValueError, *TIMED_OUT) as error:
            self.check()
            raise WorkersLost from error

    def each(self, method: str, *args: Any) -> list[Any]:
        """What each worker returns for the same arguments."""
        return self.collect([self.submit(member, method, *args) for member in self.members])

    def together(self, method: str, *args: Any) -> list[Any]:
        """What workers return that do the same at the same time, and give each other mail."""
        number = next(self._numbers)
        return self.collect(
            [
                self._submit(
                    member, method, call_together, (number, list(self.members), method, *args)
                )
                for member in self.members
            ]
        )

    def exchange(
        self, left: Sequence[Future] | None, method: str, args_of: Callable[[int], tuple[Any, ...]]
    ) -> list[Any]:
        """Let each worker, as an owner, take what all others have left for it.

        left: tasks that leave it; None: that has been done.
        """
        owners = range(len(self.members))
        tasks = []
        for owner in owners:
            parts = [
                self.submit(self.members[w], "outgoing", owner, left[w] if left else None)
                for w in owners
                if w != owner
            ]
            after = left[owner] if left else None
            tasks.append(self.submit(self.members[owner], method, *args_of(owner), parts, after))
        return self.collect(tasks)

    def collect(self, futures: Sequence[Future]) -> list[Any]:
        """The results of tasks; raises `WorkersLost` if a worker goes meanwhile.

        An error of one ends the waiting for all: others may wait for its mail.
        """
        try:
            return [self._result(future, futures) for future in futures]
        except BaseException:
            self.client.cancel(list(futures), force=True)
            raise

    def collect_parts(self, futures: Sequence[Future], names: Sequence[str]) -> list[Any]:
        """The results of tasks that read parts; errors name the part."""
        found = []
        try:
            for future, name in zip(futures, names, strict=True):
                try:
                    found.append(self._result(future))
                except WorkersLost:
                    raise
                except Exception as error:  # what a user's function raises may be anything
                    if str(error).startswith("treecrf: part "):
                        raise
                    raise ValueError(
                        f"treecrf: part {name} cannot be read: {type(error).__name__}: {error}"
                    ) from error
        except BaseException:
            self.client.cancel(list(futures), force=True)
            raise
        return found

    def _result(self, future: Future, batch: Sequence[Future] = ()) -> Any:
        """The result of a task. batch: tasks of which none may fail while it is waited for"""
        failed: list[Future] = []
        while True:
            try:
                for other in failed:
                    other.result(timeout=POLL_SECONDS)
                if not future.done():
                    wait([future], timeout=POLL_SECONDS)
                result = future.result(timeout=FETCH_SECONDS)
                self.traffic.driver_bytes += sizeof(result)
                return result
            except TIMED_OUT:
                if any(each.status == "error" for each in (future, *failed)):
                    raise
                self.check()
                failed = [each for each in batch if each.status == "error"]
            except _LOSSES as error:
                self.check()
                if isinstance(error, OSError):
                    raise
                raise WorkersLost from error

    def check(self) -> None:
        """Raise `WorkersLost` if a member has gone."""
        present = set(self.present())
        if not set(self.members) <= present:
            raise WorkersLost

    def close(self) -> None:
        """Drop what the workers have of this training."""
        with contextlib.suppress(OSError, *TIMED_OUT):  # if they have gone
            self.client.run(forget, self.training, on_error="ignore")


def _own_version() -> str:
    from spacy_treecrf import __version__

    return __version__
