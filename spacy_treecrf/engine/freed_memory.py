"""Memory that was freed goes back to the system.

The allocator of glibc keeps what is freed between things that stay, such as the docs of an epoch
that is over. Large arrays never use it: the system gives them memory of their own.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache


def return_freed_memory() -> None:
    """Give freed memory back, where the system's allocator can; elsewhere do nothing."""
    trim = _trim_of_allocator()
    if trim is not None:
        trim(0)


@cache
def _trim_of_allocator() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # musl, for one, has none
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return trim
