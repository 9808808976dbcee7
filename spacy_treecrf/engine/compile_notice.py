"""One line on stderr while kernels are compiled, so that nobody waits in silence.

Compiled kernels are kept, so the line shows once for an installation. It stays away where the
environment variable TREECRF_QUIET is set, in processes that others started for a part of their
work, and where there is next to nothing to compile.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 1.0  # seconds of compilation that need no word
_ERASED = "\r\033[K"


class _Progress:
    """What this process has compiled so far."""

    process = os.getpid()  # a forked child has another one
    kernels = 0
    seconds = 0.0
    told = False  # where the line cannot be rewritten, it is written once


@contextmanager
def announced(kernel: str) -> Iterator[None]:
    """Say that a kernel is being compiled, if some time went into others before."""
    _Progress.kernels += 1
    shown = _Progress.seconds >= PATIENCE and _is_wanted()
    began = time.perf_counter()
    if shown:
        _show(kernel)
    try:
        yield
    finally:
        _Progress.seconds += time.perf_counter() - began
        if shown and _is_terminal():
            _write(_ERASED)


def _show(kernel: str) -> None:
    if _is_terminal():
        number = _Progress.kernels
        _write(f"{_ERASED}treecrf: compiling for this machine, once: kernel {number}, {kernel} ...")
    elif not _Progress.told:
        _Progress.told = True
        _write("treecrf: compiling kernels for this machine, once; this may take half a minute\n")


def _is_wanted() -> bool:
    if os.environ.get("TREECRF_QUIET") or os.getpid() != _Progress.process:
        return False
    return multiprocessing.parent_process() is None


def _is_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False


def _write(text: str) -> None:
    try:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
    except (OSError, ValueError):  # a full disk, a closed stream: nothing that training needs
        pass
