"""Compiling a kernel as one piece: what it calls is linked into it, and optimised there alone.

Left to itself, numba optimises every function that a kernel calls, turns it into machine code, and
then does so again for whatever calls it, up to the kernel. Nobody calls such parts from Python, so
they are only translated. This takes a third of the time, and the kernel's code is as fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.environment import lookup_environment

_ENVIRONMENT = "_ZN08NumbaEnv"  # how the names of environments begin


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function that only becomes part of others: neither optimised nor runnable."""

    @property
    def codegen(self) -> Any:
        return _NoEnvironments()

    def get_pointer_to_function(self, name: str) -> int:
        """0, as numba has it for a function without a wrapper for Python."""
        self._ensure_finalized()
        return 0

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """The kernel is optimised, with this part in it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _NoEnvironments:
    """Stands in where numba would set the environment of machine code that a part has not."""

    def set_env(self, name: str, environment: Any) -> None:
        """Environments are set when the kernel is there: see `set_environments`."""


class KernelCompiler(Compiler):  # type: ignore[misc]
    """numba's compiler, with runnable code for whatever Python can call."""

    def __init__(
        self,
        typingctx: Any,
        targetctx: Any,
        library: Any,
        args: Any,
        return_type: Any,
        flags: Any,
        locals: Any,
    ) -> None:
        if library is None and not flags.no_cpython_wrapper:
            library = JITCodeLibrary(targetctx.codegen(), "kernel")
            library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)


@contextmanager
def library_class(codegen: Any, kind: type) -> Iterator[None]:
    """Make libraries of this class for the functions that are compiled meanwhile.

    Whoever calls this holds numba's compiler lock.
    """
    before = codegen.__dict__.get("create_library")
    codegen.create_library = lambda name, **options: kind(codegen, name, **options)
    try:
        yield
    finally:
        if before is None:
            del codegen.create_library
        else:
            codegen.create_library = before


def set_environments(compiled: Any) -> None:
    """Set the environments of a kernel's parts, which numba sets for runnable code alone."""
    library = compiled.library
    for variable in library._final_module.global_variables:
        if variable.name.startswith(_ENVIRONMENT):
            environment = lookup_environment(variable.name)
            if environment is not None:
                library.codegen.set_env(variable.name, environment)
