"""How a worker notices that the driver of a training is gone.

The driver keeps the result of one task on each worker. The scheduler lets go of what a client kept
as soon as the client goes, however it ends; then the worker does not know the task any more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from distributed import Worker
from tornado.ioloop import PeriodicCallback

LOOK_SECONDS = 5.0
MOST_MISSED = 3  # a client that has lost its scheduler for a moment keeps its results anew
_LET_GO = ("cancelled", "released", "forgotten")


class DriverWatch:
    """Looks from time to time whether a task's result is kept. gone: called once if it is not"""

    def __init__(self, worker: Worker, gone: Callable[[], None]) -> None:
        self._worker, self._gone = worker, gone
        self._kept = ""
        self._missed = 0  # looks that found nothing, one after the other
        self._looking: PeriodicCallback | None = None

    def keep(self, key: str) -> None:
        """Watch the task of this key, and no other from now on."""
        self._kept = key
        self._worker.loop.add_callback(self._start)

    def close(self) -> None:
        self._worker.loop.add_callback(self._stop)

    def _start(self) -> None:
        if self._looking is None:
            self._looking = PeriodicCallback(self._look, 1000 * LOOK_SECONDS)
            self._looking.start()

    def _stop(self) -> None:
        if self._looking is not None:
            self._looking.stop()

    def _look(self) -> None:
        task = self._worker.state.tasks.get(self._kept)
        if task is not None and task.state not in _LET_GO:
            self._missed = 0
            return
        self._missed += 1
        if self._missed >= MOST_MISSED:
            self._stop()
            # It may wait for threads, and the worker has to go on.
            threading.Thread(target=self._gone, name="treecrf-forget", daemon=True).start()
