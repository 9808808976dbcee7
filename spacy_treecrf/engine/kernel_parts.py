"""Compiling a kernel in little time: as one piece, and without counting references in vain.

Left to itself, numba optimises every function that a kernel calls, turns it into machine code, and
then does so again for whatever calls it, up to the kernel, and that twice. Nobody calls such parts
from Python, so they are only linked into the kernel, which is then optimised once.

And wherever a function takes an array out of a named tuple, numba counts references to all arrays
of the tuple. A function that makes no arrays need not: whoever called it holds them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite.binding import ffi
from numba.core import ir, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NopythonTypeInference
from numba.core.types.misc import SliceType

from spacy_treecrf.engine.compile_notice import announced

MANY_OBJECTS = 2**17
_ENVIRONMENT = "_ZN08NumbaEnv"  # how the names of environments begin


class _Made:
    """How many objects kernels have made since the last search for cycles, about."""

    objects = 0


_made = _Made()


class KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel, optimised as a whole and once, when all its parts are there."""

    def _optimize_functions(self, module: Any) -> None:
        """Not one by one; what numba does here beside it is to set the layout of data."""
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class PartLibrary(KernelLibrary):
    """The code of a function that only becomes part of others: not optimised, and not runnable."""

    @property
    def codegen(self) -> Any:
        return _NoEnvironments()

    def get_pointer_to_function(self, name: str) -> int:
        """0, as numba has it for a function without a wrapper for Python."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        """The kernel is optimised, with this part in it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _NoEnvironments:
    """Stands in where numba would set the environment of machine code that a part has not."""

    def set_env(self, name: str, environment: Any) -> None:
        """Environments are set when the kernel is there: see `set_environments`."""


class QuickFlags(Flags):  # type: ignore[misc]
    """numba's flags, which it compares thousands of times for each kernel."""

    __slots__ = ()

    def __hash__(self) -> int:
        return _HASH_OF_FLAGS  # of the names of all flags, which numba sorts each time

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Flags) and self._values == other._values
        return same or bool(super().__eq__(other))


_HASH_OF_FLAGS = hash(Flags())


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
            library = KernelLibrary(targetctx.codegen(), "kernel")
            library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)

    def compile_extra(self, func: Any) -> Any:
        if self.state.flags.no_cpython_wrapper:
            return super().compile_extra(func)
        with announced(func.__name__):
            return super().compile_extra(func)

    def define_pipelines(self) -> Any:
        pipelines = super().define_pipelines()
        for passes in pipelines:
            passes.add_pass_after(LeaveReferencesUncounted, NopythonTypeInference)
            passes.finalize()
        return pipelines


@register_pass(mutates_CFG=False, analysis_only=True)
class LeaveReferencesUncounted(FunctionPass):  # type: ignore[misc]
    """Compile a function without counts of references if it makes and returns no arrays."""

    _name = "leave_references_uncounted"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        if not _holds_arrays(state, state.return_type) and not _makes_arrays(state):
            context = state.targetctx.subtarget(enable_nrt=False)
            context.__dict__.pop("nrt", None)  # that of the context it is a copy of
            state.targetctx = context
        return False


def _holds_arrays(state: Any, kind: Any) -> bool:
    return bool(state.targetctx.data_model_manager[kind].contains_nrt_meminfo())


def _makes_arrays(state: Any) -> bool:
    """Whether something in a function results in a new array, and not in a view of another."""
    for block in state.func_ir.blocks.values():
        for statement in block.body:
            if isinstance(statement, ir.DynamicRaise):
                return True
            if not isinstance(statement, ir.Assign) or not isinstance(statement.value, ir.Expr):
                continue
            made = _holds_arrays(state, state.typemap[statement.target.name])
            if made and _is_new(statement.value, state.typemap):
                return True
    return False


_VIEWS = {"getattr", "exhaust_iter", "static_getitem", "build_tuple", "cast", "phi", "null"}


def _is_new(value: Any, typemap: Any) -> bool:
    """Whether an expression, whose value holds arrays, makes them."""
    if value.op == "call":
        return not isinstance(typemap[value.func.name], types.NamedTupleClass)
    if value.op == "getitem":
        return not isinstance(typemap[value.index.name], types.Integer | SliceType)
    return value.op not in _VIEWS


@contextmanager
def library_class(codegen: Any, kind: type) -> Iterator[None]:
    """Make libraries of this class for the functions that are compiled meanwhile.

    Whoever calls this holds numba's compiler lock.
    """
    with _attribute(codegen, "create_library", lambda name, **options: kind(codegen, name)):
        yield


@contextmanager
def little_to_do(context: Any) -> Iterator[None]:
    """Spare numba what no kernel needs. context: numba's target.

    These are wrappers for calls from C of the functions that kernels take from numba, and notes of
    each call of LLVM: there are tens of thousands, under nested timers. Whoever calls this holds
    numba's compiler lock.
    """
    no_wrapper = _attribute(context, "create_cfunc_wrapper", lambda *args, **options: None)
    with no_wrapper, _attribute(ffi.lib._lock, "_cblist", []):
        yield


@contextmanager
def _attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Give an object an attribute of its own meanwhile."""
    has_own = name in owner.__dict__
    before = owner.__dict__.get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if has_own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Pause Python's search for cycles, a sixth of the time: the compiler drops what it makes.

    Afterwards all that is there counts as old, which takes no time, while a search through what
    the compiler made takes longer than a small kernel. There is such a search whenever kernels
    have made MANY_OBJECTS together, for the sake of memory; what somebody froze stays frozen.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        try:
            _made.objects += gc.get_count()[0]
            if _made.objects > MANY_OBJECTS:
                _made.objects = 0
                gc.collect()
            elif not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
        finally:  # also where Ctrl-C comes during a search, which takes a while
            gc.enable()


def set_environments(compiled: Any) -> None:
    """Set the environments of a kernel's parts, which numba sets for runnable code alone."""
    library = compiled.library
    for variable in library._final_module.global_variables:
        if variable.name.startswith(_ENVIRONMENT):
            environment = lookup_environment(variable.name)
            if environment is not None:
                library.codegen.set_env(variable.name, environment)
