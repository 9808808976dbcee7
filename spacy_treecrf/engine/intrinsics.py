"""Machine instructions that numba does not offer by itself."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "LABELS_AT_ONCE",
    "LANES",
    "WORDS_AT_ONCE",
    "and_rows",
    "best_before",
    "carray",
    "count_bits",
    "lowest_bit",
    "masks_of_lanes",
    "pointer_to",
    "prefetch",
    "prefetch_cell",
    "sum_rows",
    "sum_wide_rows",
]

LANES = 16  # rows that `masks_of_lanes` treats at once
WORDS_AT_ONCE = 16  # that `and_rows` holds in registers
LABELS_AT_ONCE = 8  # that `best_before` holds in registers


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
        return _prefetched(context, builder, pointer)

    return types.void(array, types.int64, types.int64), generate


@intrinsic
def prefetch_cell(typing_context: Any, array: Any, i: Any) -> Any:
    """Ask the processor to bring array[i], of an array of one dimension, into its cache."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        return _prefetched(context, builder, builder.gep(view.data, [arguments[1]]))

    return types.void(array, types.int64), generate


def _prefetched(context: Any, builder: Any, pointer: Any) -> Any:
    address = builder.bitcast(pointer, ir.PointerType(ir.IntType(8)))
    word = ir.IntType(32)
    signature = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
    function = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0")
    builder.call(function, [address, word(0), word(3), word(1)])  # read, keep, data
    return context.get_dummy_value()


@intrinsic
def pointer_to(typing_context: Any, address: Any) -> Any:
    """The pointer to an address, of which `numba.carray` makes an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


@intrinsic
def masks_of_lanes(
    typing_context: Any,
    columns: Any,
    thresholds: Any,
    masks: Any,
    bins: Any,
    out: Any,
    first: Any,
    last: Any,
) -> Any:
    """Write, for each of LANES rows, the masks of the tests first to last - 1 that hold, and-ed.

    Test i holds for a row where its bin in columns[i] is above thresholds[i] (uint8). bins: uint8
    (n_columns, LANES). masks, out: uint64, out of LANES. One test is one comparison of all rows,
    which numba's loops do not become.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        views = zip(signature.args[:5], arguments[:5], strict=True)
        data = [context.make_array(kind)(context, builder, view).data for kind, view in views]
        columns, thresholds, masks, bins, out = data
        word, byte = ir.IntType(64), ir.IntType(8)
        words, bytes_ = ir.VectorType(word, LANES), ir.VectorType(byte, LANES)
        everything = ir.Constant(words, [2**64 - 1] * LANES)
        found = cgutils.alloca_once(builder, words)
        builder.store(everything, found)
        bounds = arguments[5], arguments[6], word(1)
        with cgutils.for_range_slice(builder, *bounds) as (test, _):
            column = builder.sext(builder.load(builder.gep(columns, [test])), word)
            place = builder.gep(bins, [builder.mul(column, word(LANES))])
            own = builder.load(builder.bitcast(place, bytes_.as_pointer()), align=1)
            threshold = _in_all_lanes(builder, builder.load(builder.gep(thresholds, [test])))
            mask = _in_all_lanes(builder, builder.load(builder.gep(masks, [test])))
            holds = builder.icmp_unsigned(">", own, threshold)
            kept = builder.select(holds, mask, everything)
            builder.store(builder.and_(builder.load(found), kept), found)
        builder.store(builder.load(found), builder.bitcast(out, words.as_pointer()), align=8)
        return context.get_dummy_value()

    counts = types.int64, types.int64
    return types.void(columns, thresholds, masks, bins, out, *counts), generate


@intrinsic
def and_rows(typing_context: Any, table: Any, chosen: Any, n: Any, out: Any) -> Any:
    """And the rows chosen[:n] of a table (n_rows, len(out)) of uint64 into out.

    chosen: int64. out has WORDS_AT_ONCE words or more, of which these many stay in registers while
    all rows are applied: a loop over rows would read and write all of out for each. The last words
    may be treated twice, which changes nothing.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args[0], signature.args[1], signature.args[3]
        values = arguments[0], arguments[1], arguments[3]
        views = zip(kinds, values, strict=True)
        arrays = [context.make_array(kind)(context, builder, view) for kind, view in views]
        table, chosen, out = (array.data for array in arrays)
        word = ir.IntType(64)
        words = ir.VectorType(word, WORDS_AT_ONCE)
        size = cgutils.unpack_tuple(builder, arrays[2].shape)[0]
        last = builder.sub(size, word(WORDS_AT_ONCE))
        held = cgutils.alloca_once(builder, words)
        with cgutils.for_range_slice(builder, word(0), size, word(WORDS_AT_ONCE)) as (next_, _):
            is_last = builder.icmp_signed(">", next_, last)
            first = builder.select(is_last, last, next_)
            place = builder.bitcast(builder.gep(out, [first]), words.as_pointer())
            builder.store(builder.load(place, align=8), held)
            with cgutils.for_range(builder, arguments[2]) as loop:
                row = builder.load(builder.gep(chosen, [loop.index]))
                start = builder.add(builder.mul(row, size), first)
                own = builder.bitcast(builder.gep(table, [start]), words.as_pointer())
                both = builder.and_(builder.load(held), builder.load(own, align=8))
                builder.store(both, held)
            builder.store(builder.load(held), place, align=8)
        return context.get_dummy_value()

    return types.void(table, chosen, types.int64, out), generate


def _sum_of_rows(labels_at_once: int) -> Any:
    @intrinsic
    def sum_rows(
        typing_context: Any, addresses: Any, n: Any, n_labels: Any, before: Any, after: Any
    ) -> Any:
        """Write what is before and the rows of n_labels numbers at addresses[:n] into after, added.

        addresses: int64. before, after: float32 (n_labels,), not the same array. There are
        labels_at_once labels or more, of which these many stay in registers for all rows, which
        are added one after the other; the last labels may be treated twice, which changes nothing.
        """

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            views = [(signature.args[i], arguments[i]) for i in (0, 3, 4)]
            data = [context.make_array(kind)(context, builder, view).data for kind, view in views]
            addresses, before, after = data
            size = arguments[2]
            word = ir.IntType(64)
            floats = ir.VectorType(ir.FloatType(), labels_at_once)
            last = builder.sub(size, word(labels_at_once))
            sums = cgutils.alloca_once(builder, floats)

            def labels_of(array: Any, first: Any) -> Any:
                return builder.bitcast(builder.gep(array, [first]), floats.as_pointer())

            bounds = word(0), size, word(labels_at_once)
            with cgutils.for_range_slice(builder, *bounds) as (next_, _):
                first = builder.select(builder.icmp_signed(">", next_, last), last, next_)
                builder.store(builder.load(labels_of(before, first), align=4), sums)
                with cgutils.for_range(builder, arguments[1]) as loop:
                    address = builder.load(builder.gep(addresses, [loop.index]))
                    row = builder.inttoptr(address, ir.FloatType().as_pointer())
                    own = builder.load(labels_of(row, first), align=4)
                    builder.store(builder.fadd(builder.load(sums), own), sums)
                builder.store(builder.load(sums), labels_of(after, first), align=4)
            return context.get_dummy_value()

        return types.void(addresses, types.int64, types.int64, before, after), generate

    return sum_rows


sum_rows = _sum_of_rows(LABELS_AT_ONCE)
sum_wide_rows = _sum_of_rows(2 * LABELS_AT_ONCE)


@intrinsic
def best_before(
    typing_context: Any, delta: Any, moves: Any, n_labels: Any, top: Any, arg: Any
) -> Any:
    """Write the best delta[u] + moves[u, v] over u of each label v into top, and its u into arg.

    The lowest u among equals. delta, top: float64 (n_labels,). arg: int64 (n_labels,). moves:
    float64 (n_labels or more, n_labels). There are LABELS_AT_ONCE labels or more, of which these
    many stay in registers for all u; the last labels may be treated twice, which changes nothing.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        places = [0, 1, 3, 4]
        views = [(signature.args[i], arguments[i]) for i in places]
        data = [context.make_array(kind)(context, builder, view).data for kind, view in views]
        delta, moves, top, arg = data
        size = arguments[2]
        word = ir.IntType(64)
        doubles = ir.VectorType(ir.DoubleType(), LABELS_AT_ONCE)
        words = ir.VectorType(word, LABELS_AT_ONCE)
        last = builder.sub(size, word(LABELS_AT_ONCE))
        best, best_u = cgutils.alloca_once(builder, doubles), cgutils.alloca_once(builder, words)

        def reached(u: Any, first: Any) -> Any:
            before = _in_all_lanes(builder, builder.load(builder.gep(delta, [u])), LABELS_AT_ONCE)
            place = builder.gep(moves, [builder.add(builder.mul(u, size), first)])
            own = builder.load(builder.bitcast(place, doubles.as_pointer()), align=8)
            return builder.fadd(before, own)

        bounds = word(0), size, word(LABELS_AT_ONCE)
        with cgutils.for_range_slice(builder, *bounds) as (next_, _):
            first = builder.select(builder.icmp_signed(">", next_, last), last, next_)
            builder.store(reached(word(0), first), best)
            builder.store(ir.Constant(words, [0] * LABELS_AT_ONCE), best_u)
            with cgutils.for_range_slice(builder, word(1), size, word(1)) as (u, _):
                value, so_far = reached(u, first), builder.load(best)
                better = builder.fcmp_ordered(">", value, so_far)
                every = _in_all_lanes(builder, u, LABELS_AT_ONCE)
                builder.store(builder.select(better, value, so_far), best)
                builder.store(builder.select(better, every, builder.load(best_u)), best_u)
            for found, array, kind in ((best, top, doubles), (best_u, arg, words)):
                place = builder.bitcast(builder.gep(array, [first]), kind.as_pointer())
                builder.store(builder.load(found), place, align=8)
        return context.get_dummy_value()

    return types.void(delta, moves, types.int64, top, arg), generate


def _in_all_lanes(builder: Any, value: Any, n_lanes: int = LANES) -> Any:
    """A vector that has the value in each lane."""
    nothing = ir.Constant(ir.VectorType(value.type, n_lanes), ir.Undefined)
    first = ir.IntType(32)(0)
    one = builder.insert_element(nothing, value, first)
    every = ir.Constant(ir.VectorType(first.type, n_lanes), [0] * n_lanes)
    return builder.shuffle_vector(one, nothing, every)
