"""Kernels: functions that numba compiles, which signals, forks and read-only disks do not harm.

A kernel is `@kernel`, or `@kernel(inline="always")` with options of `numba.njit`. It releases
the GIL, and what was compiled is kept for the next process (`KernelCache`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite.binding import ffi
from numba import config, typeof, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.kernel_cache import KernelCache
from spacy_treecrf.engine.kernel_parts import (
    KernelCompiler,
    PartLibrary,
    QuickFlags,
    library_class,
    little_to_do,
    no_garbage_collection,
    set_environments,
)
from spacy_treecrf.engine.threads import in_main_thread, in_own_thread


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A compiled function that Python may call at any moment.

    numba runs Python code where it makes arrays and named tuples of what a kernel returns, and in
    callbacks while it compiles. A signal handler that raises there crashes the process. Python
    runs handlers in the main thread alone: so the main thread leaves compiling, and calls that
    return more than numbers, to another thread, and takes the interrupt after the call.
    """

    returns_numbers: bool | None = None  # not known before something was compiled

    def __call__(self, *args: Any) -> Any:
        if self.returns_numbers or not in_main_thread():
            return super().__call__(*args)
        return in_own_thread(super().__call__, *args)

    def _compile_for_args(self, *args: Any) -> Any:
        """Compile for the types of these arguments: numba calls this where it has not yet."""
        if in_main_thread():
            return in_own_thread(self._compile_for_args, *args)
        with global_compiler_lock:
            return super()._compile_for_args(*args)

    def compile(self, sig: Any) -> Any:
        """Compile for a signature, or read from the cache; what the kernel calls is part of it."""
        context = self.targetctx
        parts = library_class(context.codegen(), PartLibrary)
        with global_compiler_lock, no_garbage_collection(), parts, little_to_do(context):
            return super().compile(sig)

    @cached
    def part(self) -> Kernel:
        """What other kernels call: this, or a twin that Python cannot call, without a wrapper."""
        if self.targetoptions["no_cpython_wrapper"]:
            return self
        options = self.targetoptions | {"no_cpython_wrapper": True}
        twin: Kernel = kernel(self.py_func, **options)
        return twin

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Numba asks for this where another kernel calls this one, as for the next."""
        return CPUDispatcher.get_call_template(self.part, args, kws)

    def get_overload(self, sig: Any) -> Any:
        return CPUDispatcher.get_overload(self.part, sig)

    def add_overload(self, compiled: Any) -> None:
        """Take over what was compiled, or read from the cache, for some types of arguments."""
        numbers = _is_numbers(compiled.signature.return_type)
        if self.returns_numbers not in (None, numbers):
            raise TypeError(f"kernel {self.__name__} returns numbers for some arguments only")
        super().add_overload(compiled)
        if not isinstance(compiled.library, PartLibrary):
            set_environments(compiled)
        self.returns_numbers = numbers


def kernel(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a kernel of a function; a decorator, with or without options of `numba.njit`."""
    if function is None:
        return lambda function: kernel(function, **options)
    if config.DISABLE_JIT:
        return function
    defaults = {
        "nopython": True,  # this and the next as njit
        "boundscheck": None,
        "nogil": True,
        "no_cpython_wrapper": False,
        "no_cfunc_wrapper": True,  # no kernel is an argument of another
    }
    options = defaults | options
    compiled = Kernel(function, targetoptions=options, pipeline_class=KernelCompiler)
    compiled._compiler._customize_flags = QuickFlags
    if not options["no_cpython_wrapper"]:
        compiled._cache = KernelCache(function)
    return compiled


# A function that kernels alone call, and that becomes part of them. Called as functions, steps
# would copy their tuples of arrays at every call. The wrappers that numba adds for calls from
# Python and C take longer to compile than a short step itself; steps have none.
step = functools.partial(
    kernel,
    error_model="numpy",
    forceinline=True,
    no_cpython_wrapper=True,
)


def _is_numbers(kind: Any) -> bool:
    """Whether numba makes a Python object of this type without running Python code."""
    if isinstance(kind, types.BaseNamedTuple):
        return False
    if isinstance(kind, types.BaseTuple):
        return all(_is_numbers(part) for part in kind)
    return isinstance(kind, types.NoneType | types.Number | types.Boolean)


# What numba makes under locks, and imports, when it is first asked, outside of its compiler. It is
# asked here, and not where another thread may fork meanwhile.
_ASKED = Kernel.targetdescr.typing_context, Kernel.targetdescr.target_context, typeof(np.zeros(1))

# The locks of the compiler are taken around forks. A child has only the thread that forked: for a
# lock of another one it would wait for ever. numba has more locks, but takes them within these.
_COMPILER_LOCKS = global_compiler_lock, ffi.lib._lock


def _hold_compiler() -> None:
    for lock in _COMPILER_LOCKS:
        lock.__enter__()


def _let_compiler_go() -> None:
    for lock in reversed(_COMPILER_LOCKS):
        lock.__exit__(None, None, None)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_hold_compiler,
        after_in_parent=_let_compiler_go,
        after_in_child=_let_compiler_go,
    )
