"""Arrays that are listed by their addresses, for kernels that take many of them.

Handing arrays over one by one takes longer than the work itself where there are few rows. A list
has a row for each array: its address and up to three lengths.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.intrinsics import carray, pointer_to
from spacy_treecrf.engine.kernel import step

Ints = npt.NDArray[np.int64]

N_LENGTHS = 3


def listed_arrays(
    arrays: Iterable[npt.NDArray[Any]],
) -> tuple[list[list[int]], list[npt.NDArray[Any]]]:
    """The rows of a list, and the arrays, which must live as long as it."""
    kept = [np.ascontiguousarray(array) for array in arrays]
    rows = [[own.ctypes.data, *own.shape, *[1] * (N_LENGTHS - own.ndim)] for own in kept]
    return rows, kept


@step
def uint8s(listed: Ints, i: int) -> npt.NDArray[np.uint8]:
    found: npt.NDArray[np.uint8] = carray(pointer_to(listed[i, 0]), (listed[i, 1],), np.uint8)
    return found


@step
def int32s(listed: Ints, i: int) -> npt.NDArray[np.int32]:
    found: npt.NDArray[np.int32] = carray(pointer_to(listed[i, 0]), (listed[i, 1],), np.int32)
    return found


@step
def uint32s(listed: Ints, i: int) -> npt.NDArray[np.uint32]:
    found: npt.NDArray[np.uint32] = carray(pointer_to(listed[i, 0]), (listed[i, 1],), np.uint32)
    return found


@step
def int64s(listed: Ints, i: int) -> Ints:
    found: Ints = carray(pointer_to(listed[i, 0]), (listed[i, 1],), np.int64)
    return found


@step
def uint64s(listed: Ints, i: int) -> npt.NDArray[np.uint64]:
    found: npt.NDArray[np.uint64] = carray(pointer_to(listed[i, 0]), (listed[i, 1],), np.uint64)
    return found


@step
def float64s(listed: Ints, i: int) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = carray(pointer_to(listed[i, 0]), (listed[i, 1],), np.float64)
    return found


@step
def int32_table(listed: Ints, i: int) -> npt.NDArray[np.int32]:
    shape = listed[i, 1], listed[i, 2]
    found: npt.NDArray[np.int32] = carray(pointer_to(listed[i, 0]), shape, np.int32)
    return found


@step
def int64_table(listed: Ints, i: int) -> Ints:
    shape = listed[i, 1], listed[i, 2]
    found: Ints = carray(pointer_to(listed[i, 0]), shape, np.int64)
    return found


@step
def uint64_table(listed: Ints, i: int) -> npt.NDArray[np.uint64]:
    shape = listed[i, 1], listed[i, 2]
    found: npt.NDArray[np.uint64] = carray(pointer_to(listed[i, 0]), shape, np.uint64)
    return found


@step
def float32_table(listed: Ints, i: int) -> npt.NDArray[np.float32]:
    shape = listed[i, 1], listed[i, 2]
    found: npt.NDArray[np.float32] = carray(pointer_to(listed[i, 0]), shape, np.float32)
    return found


@step
def float64_table(listed: Ints, i: int) -> npt.NDArray[np.float64]:
    shape = listed[i, 1], listed[i, 2]
    found: npt.NDArray[np.float64] = carray(pointer_to(listed[i, 0]), shape, np.float64)
    return found
