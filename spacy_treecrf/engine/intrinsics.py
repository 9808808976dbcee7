"""Machine instructions that numba does not offer by itself."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["carray", "count_bits", "lowest_bit", "pointer_to", "prefetch"]


@intrinsic
def lowest_bit(typing_context: Any, mask: Any) -> Any:
    """The index of the lowest set bit of a nonzero uint64.

    It is unsigned, because an index that cannot be negative spares numba a test.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def count_bits(typing_context: Any, mask: Any) -> Any:
    """How many bits of a uint64 are set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, row: Any, column: Any) -> Any:
    """Ask the processor to bring array[row, column] into its cache; nothing else changes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        view = context.make_array(array_type)(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(context, builder, array_type, view, arguments[1:])
        address = builder.bitcast(pointer, ir.PointerType(ir.IntType(8)))
        word = ir.IntType(32)
        signature_ = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, signature_, "llvm.prefetch.p0")
        builder.call(function, [address, word(0), word(3), word(1)])  # read, keep, data
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@intrinsic
def pointer_to(typing_context: Any, address: Any) -> Any:
    """The pointer to an address, of which `numba.carray` makes an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate
