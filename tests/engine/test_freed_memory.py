"""Freed memory goes back to the system where the allocator can, and nothing breaks elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spacy_treecrf.engine import freed_memory
from spacy_treecrf.engine.freed_memory import return_freed_memory


@pytest.fixture(autouse=True)
def _asks_the_system_anew() -> Iterator[None]:
    freed_memory._trim_of_allocator.cache_clear()
    yield
    freed_memory._trim_of_allocator.cache_clear()


def resident_kilobytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_between_things_that_stay_is_given_back() -> None:
    if freed_memory._trim_of_allocator() is None:
        pytest.skip("this allocator cannot")
    # Texts of 8 kB come from the allocator of the system; every hundredth one stays.
    texts = [bytes(8192) for _ in range(8000)]
    kept = texts[::100]
    del texts
    before = resident_kilobytes()
    return_freed_memory()
    assert before - resident_kilobytes() > 20_000
    assert len(kept) == 80


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert freed_memory._trim_of_allocator() is None
    return_freed_memory()


def test_an_allocator_that_cannot_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(freed_memory.ctypes, "CDLL", lambda name: object())
    assert freed_memory._trim_of_allocator() is None
    return_freed_memory()
