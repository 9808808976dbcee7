"""Compiled kernels on disk: read from wherever they are, written where it is possible."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from numba.core.caching import CacheImpl, CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.runtime import rtsys

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.kernel_parts import library_class


class KernelCache(NullCache):  # type: ignore[misc]
    """What was compiled of one function, in the places where numba keeps such files.

    The places are the folder that NUMBA_CACHE_DIR names, the `__pycache__` beside the module, and
    the user's cache folder. numba takes the first that is writable, and fails where none is. This
    cache reads from all of them, because a package may have been compiled where it was built and
    be read-only where it runs, and writes to the first that takes it, if any does.
    """

    reads_everywhere = True  # else only where the first place is, as `warmup --cache` does
    folders: ClassVar[set[str]] = set()  # where this process has read or written something

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @property
    def cache_path(self) -> str | None:
        return self._places[0].cache_path if self._places else None

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """What was compiled for a signature, or None: then numba compiles it.

        numba would now load all that it may need to compile, and scipy, which takes longer than
        all kernels of a prediction. Machine code needs its runtime alone.
        """
        rtsys.initialize(target_context)
        for place in self._places:
            try:
                with library_class(target_context.codegen(), JITCodeLibrary):
                    compiled = place._load_overload(signature, target_context)
            except Exception:  # of the disk, or whatever pickle makes of a damaged file
                continue
            if compiled is not None:
                self.folders.add(place.cache_path)
                return compiled
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        for place in self._places:
            try:
                os.makedirs(place.cache_path, exist_ok=True)
                place.save_overload(signature, compiled)
            except Exception:  # of the disk, or of a damaged index, which is read before
                continue
            self.folders.add(place.cache_path)
            return

    @cached
    def _places(self) -> list[Any]:
        places = []
        for place in _PLACES:
            try:
                places.append(place(self._function))
            except (RuntimeError, OSError):  # not a place for this function
                continue
        return places if self.reads_everywhere else places[:1]


def _place(locator: Any) -> type:
    """The cache of numba in the place that a locator finds, writable or not."""

    class Locator(locator):  # type: ignore[misc]
        def ensure_cache_path(self) -> None:
            """Numba writes a file here, to see whether it can."""

        def get_source_stamp(self) -> Any:
            """What a kernel's code depends on: also the modules of the steps that are part of it.

            numba looks at the module of the function alone, and would take old code for new.
            """
            return super().get_source_stamp(), package_stamp()

    class Implementation(CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (Locator,)

    class Place(FunctionCache):  # type: ignore[misc]
        _impl_class = Implementation

    return Place


def _size_and_time(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@lru_cache
def package_stamp() -> str:
    """A text that changes when a module of the package does."""
    modules = sorted(Path(__file__).parents[1].rglob("*.py"))
    stats = [(module.name, *_size_and_time(module)) for module in modules]
    return hashlib.blake2b(repr(stats).encode(), digest_size=16).hexdigest()


_PLACES = [_place(locator) for locator in CacheImpl._locator_classes]
