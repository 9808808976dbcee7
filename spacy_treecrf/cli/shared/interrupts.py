"""Signals to end that are not forgotten where Python drops what their handler raises."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Whether a signal to end has come.

    Python drops a KeyboardInterrupt that is raised in a finalizer or in a weak reference's
    callback, of which there are many while modules are loaded; the note of it stays.
    """

    def __init__(self) -> None:
        self._noted = False

    def check(self) -> None:
        """Raise what a signal should have raised."""
        if self._noted:
            raise KeyboardInterrupt

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler of signals."""
        self._noted = True
        raise KeyboardInterrupt


@contextlib.contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """Interrupts by SIGINT and SIGTERM within the block; only the main thread can have handlers."""
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.signal(number, interrupts.note) for number in NUMBERS}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
