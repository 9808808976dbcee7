"""Functions of Python that kernels call, and the memory of its objects.

A kernel that does so holds the lock of the interpreter: `@kernel(nogil=False)`. Functions are those
of Python's documented C interface, and run no code of anybody else. Kernels get their addresses,
which differ from process to process, as an array, because compiled kernels are kept on disk.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# The functions, then the objects, whose addresses `addresses` lists.
_FUNCTIONS = (
    "PyList_GetItem",
    "PyDict_Next",
    "PyUnicode_AsUTF8AndSize",
    "PyUnicode_Compare",
    "PyFloat_AsDouble",
    "PyErr_Clear",
)
GET_ITEM, NEXT_ENTRY, AS_UTF8, COMPARE_TEXTS, AS_DOUBLE, CLEAR_ERROR = range(6)
_OBJECTS = (str, float, True, 1, False, 0, None)
STR, FLOAT, TRUE, INT_1, FALSE, INT_0, NONE_OBJECT = range(6, 13)
WORD_BYTES = 8
TYPE_AT = object.__basicsize__ - WORD_BYTES  # every object ends its head with its type
INT = np.int64(0xFFFFFFFF)  # the part of a returned word that holds a C int


@lru_cache
def addresses() -> npt.NDArray[np.int64] | None:
    """The addresses of functions and objects; None where kernels must not use them.

    That is where there is no lock, or another interpreter, or one whose objects look different.
    """
    usual = sys.implementation.name == "cpython" and sys.byteorder == "little"
    if not usual or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    if ctypes.sizeof(ctypes.c_void_p) != WORD_BYTES:
        return None
    for sample in ("a", "é", 1.5, None, True, 7):
        if ctypes.c_int64.from_address(id(sample) + TYPE_AT).value != id(type(sample)):
            return None
    functions = [getattr(ctypes.pythonapi, name) for name in _FUNCTIONS]
    found = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
    return np.array([*found, *map(id, _OBJECTS)], np.int64)


def _called(context: Any, builder: Any, signature: Any, arguments: Any, returned: Any) -> Any:
    """A call of the function at an address with words, given as a tuple."""
    words = cgutils.unpack_tuple(builder, arguments[1], len(signature.args[1]))
    kind = ir.FunctionType(returned, [ir.IntType(64)] * len(words))
    return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), words)


@intrinsic
def call(typing_context: Any, function: Any, words: Any) -> Any:
    """The word that the function at an address returns; addresses and whole numbers are words."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _called(context, builder, signature, arguments, ir.IntType(64))

    return types.int64(types.int64, _words(words)), generate


@intrinsic
def call_for_double(typing_context: Any, function: Any, words: Any) -> Any:
    """The same for a function that returns a floating-point number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _called(context, builder, signature, arguments, ir.DoubleType())

    return types.float64(types.int64, _words(words)), generate


def _words(given: Any) -> Any:
    return types.UniTuple(types.int64, len(given)) if len(given) else given


def _loaded(bits: int) -> Any:
    @intrinsic
    def load(typing_context: Any, address: Any) -> Any:
        """The number of so many bits at an address, aligned or not."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            return builder.zext(builder.load(place, align=1), ir.IntType(64))

        return types.uint64(types.int64), generate

    return load


load_word = _loaded(64)
load_byte = _loaded(8)
