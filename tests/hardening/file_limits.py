"""Disks that are full: a limit on the size of files, which the system enforces in the middle."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

resource = pytest.importorskip("resource", reason="POSIX limits")


@contextlib.contextmanager
def largest_file(n_bytes: int) -> Iterator[None]:
    """Within it, this process can write no file beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
