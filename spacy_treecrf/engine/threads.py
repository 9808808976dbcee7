"""Threads for kernels: a pool for fixed pieces of work, and one thread for one call."""

from __future__ import annotations

import atexit
import os
import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from spacy_treecrf.engine.row_storage import IN_MEMORY, RowStorage

Item = TypeVar("Item")
Result = TypeVar("Result")


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_main_thread() -> bool:
    """Whether this is the thread in which Python runs signal handlers."""
    return threading.get_ident() == threading.main_thread().ident


def in_own_thread(
    function: Callable[..., Result], *args: Any, interrupted: Callable[[], object] | None = None
) -> Result:
    """What the function returns or raises, called by a thread that no signal handler interrupts.

    An exception that a signal handler raises in the waiting thread is raised once the call is done:
    what the call was writing to is then complete. interrupted: called at once when that happens.
    """
    outcome: list[tuple[Any, BaseException | None]] = []
    done = allocate_lock()
    done.acquire()

    def call() -> None:
        try:
            outcome.append((function(*args), None))
        except BaseException as error:
            outcome.append((None, error))
        finally:
            _running.pop(done)
            done.release()

    interrupt: BaseException | None = None
    _running[done] = None
    try:
        start_new_thread(call, ())
    except RuntimeError:  # there is no thread to be had
        _running.pop(done, None)
        raise
    except BaseException as error:  # of a handler, just after the thread was started
        interrupt = error
    while not outcome:
        try:
            if interrupt is not None and interrupted is not None:
                interrupted()
            done.acquire()
        except BaseException as error:
            interrupt = error
    result: Result
    result, failure = outcome.pop()
    if interrupt is not None:
        raise interrupt
    if failure is not None:
        raise failure
    return result


# The locks of calls that run. A second interrupt may end the wait for one: then it is waited for at
# exit, because a thread must not come back from a kernel to an interpreter that is gone.
_running: dict[Any, None] = {}
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_running.clear)


@atexit.register
def _wait_for_running() -> None:
    for done in list(_running):
        done.acquire()


class _Stopped(Exception):
    """An interrupt came before this piece of work was begun."""


class Workers:
    """A pool of `threads` threads (0: one per usable core); one thread runs everything inline.

    storage: Where the arrays are kept that they fill, one entry for each row.
    """

    def __init__(self, threads: int = 0, storage: RowStorage = IN_MEMORY) -> None:
        self.threads = threads or usable_cores()
        self.storage = storage
        self._pool: ThreadPoolExecutor | None = None

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        if self.threads == 1 or len(items) < 2:
            return [work(item) for item in items]
        if not in_main_thread():
            return self._map_in_pool(work, items)
        # Not from the main thread: Python's locks and conditions do not survive an exception that
        # a signal handler raises while they are being taken.
        stopped: list[bool] = []

        def unless_stopped(item: Item) -> Result:
            if stopped:
                raise _Stopped
            return work(item)

        return in_own_thread(
            self._map_in_pool, unless_stopped, items, interrupted=lambda: stopped.append(True)
        )

    def _map_in_pool(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads)
        return list(self._pool.map(work, items))

    def close(self) -> None:
        if self._pool is not None:
            in_own_thread(self._pool.shutdown)
            self._pool = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
