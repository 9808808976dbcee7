"""Arrays and lists of texts in few bytes, which are restored bit for bit.

Whole numbers, and floats that lie on the grid of learned values, become differences or values of
the fewest bytes, the first bytes of all of them in front of the second ones: a compressor then
finds what repeats. Texts keep only what the text before them does not begin with.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

PACKED, TEXTS = "__packed__", "__texts__"
DTYPES = ("<f4", "<f8", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8")

_GRID = 2.0**16  # learned values are multiples of 1 / _GRID
_MAX_WHOLE = 2**52  # so that differences are whole numbers of 64 bits, and floats are exact
_WIDTHS = (1, 2, 4, 8)  # bytes of a number
_FEW = 16  # shorter arrays and lists are stored as they are
_MAX_SHARED = 255  # bytes of a text that are those of the text before
# What texts may unfold to: so many times what they keep, and always as many bytes.
_MAX_RATIO = 64
_FREE_BYTES = 2**24


def packed_array(array: npt.NDArray[Any]) -> dict[str, Any] | None:
    """The array as a table of plain values and bytes; None: it is smaller as it is."""
    dtype = array.dtype.newbyteorder("<").str
    if array.size < _FEW or dtype not in DTYPES:
        return None
    grid = array.dtype.kind == "f"
    whole = _whole_numbers(array.ravel(), grid)
    if whole is None:
        return None
    first = np.concatenate([whole[:1], np.diff(whole)])
    choices = [(delta, *_planes(first if delta else whole)) for delta in (False, True)]
    delta, width, data = min(choices, key=lambda choice: len(zlib.compress(choice[2], 1)))
    return {
        PACKED: dtype,
        "shape": list(array.shape),
        "grid": grid,
        "delta": delta,
        "width": width,
        "data": data,
    }


def unpacked_array(table: dict[str, Any]) -> npt.NDArray[Any]:
    """The array that `packed_array` made into this table, which may be damaged."""
    if table.keys() != {PACKED, "shape", "grid", "delta", "width", "data"}:
        raise ValueError("a packed array lacks a field, or has more")
    dtype, shape, width, data = (table[name] for name in (PACKED, "shape", "width", "data"))
    if type(dtype) is not str or dtype not in DTYPES or width not in _WIDTHS:
        raise ValueError("a packed array is of an unknown type or width")
    if type(table["grid"]) is not bool or type(table["delta"]) is not bool:
        raise ValueError("a packed array does not tell how it is packed")
    if type(shape) is not list or not all(type(n) is int and 0 <= n < 2**63 for n in shape):
        raise ValueError("a packed array has a shape that is not a list of sizes")
    if type(data) is not bytes or math.prod(shape) * width != len(data) or len(shape) > 32:
        raise ValueError(f"a packed array has data that do not fit its shape {shape[:32]}")
    kind = np.dtype(dtype).newbyteorder("=")
    if table["grid"] != (kind.kind == "f"):
        raise ValueError("a packed array has whole numbers for floats, or the other way round")
    whole = _from_planes(data, width)
    if table["delta"]:
        whole = np.cumsum(whole, dtype=np.int64)
    limits = (-_MAX_WHOLE, _MAX_WHOLE)
    if kind.kind != "f":
        limits = max(limits[0], np.iinfo(kind).min), min(limits[1], np.iinfo(kind).max)
    if len(whole) and not limits[0] <= int(whole.min()) <= int(whole.max()) <= limits[1]:
        raise ValueError(f"a packed array has values beyond those of {dtype}")
    values = whole / _GRID if table["grid"] else whole
    return values.astype(kind).reshape(shape)


def packed_texts(texts: Sequence[str]) -> dict[str, Any] | None:
    """A list of texts as arrays and bytes; None: it is short. Texts that rise take the least."""
    if len(texts) < _FEW:
        return None
    shared, lengths, rests = [], [], []
    before = b""
    for text in texts:
        data = text.encode("utf-8")
        n = _shared_length(before, data)
        shared.append(n)
        lengths.append(len(data) - n)
        rests.append(data[n:])
        before = data
    sizes = np.array([shared, lengths], np.int64)
    return {
        TEXTS: packed_array(sizes[0]),
        "lengths": packed_array(sizes[1]),
        "data": b"".join(rests),
    }


def unpacked_texts(table: dict[str, Any]) -> list[str]:
    """The list that `packed_texts` made into this table, which may be damaged."""
    if table.keys() != {TEXTS, "lengths", "data"} or type(table["data"]) is not bytes:
        raise ValueError("packed texts lack a field, or have more")
    sizes = []
    for name in (TEXTS, "lengths"):
        if type(table[name]) is not dict or table[name].get(PACKED) != "<i8":
            raise ValueError("packed texts do not tell their lengths")
        sizes.append(unpacked_array(table[name]))
    shared, lengths, data = *sizes, table["data"]
    if shared.ndim != 1 or shared.shape != lengths.shape or (lengths < 0).any():
        raise ValueError("packed texts have other lengths than texts")
    if ((shared < 0) | (shared > _MAX_SHARED)).any() or int(lengths.sum()) != len(data):
        raise ValueError("packed texts have lengths that do not fit their data")
    if int((shared + lengths).sum()) > max(_FREE_BYTES, _MAX_RATIO * len(data)):
        raise ValueError("packed texts unfold to very many times their size")
    texts: list[str] = []
    before, at = b"", 0
    for n, length in zip(shared.tolist(), lengths.tolist(), strict=True):
        if n > len(before):
            raise ValueError("packed texts share more than there is")
        before = before[:n] + data[at : at + length]
        at += length
        texts.append(before.decode("utf-8"))
    return texts


def _shared_length(one: bytes, other: bytes) -> int:
    """How many bytes two texts begin with together, up to _MAX_SHARED."""
    most = min(len(one), len(other), _MAX_SHARED)
    return next((i for i in range(most) if one[i] != other[i]), most)


def _whole_numbers(flat: npt.NDArray[Any], grid: bool) -> npt.NDArray[np.int64] | None:
    """The values as whole numbers; None if they are not, or are too large."""
    if not grid:
        small = -_MAX_WHOLE <= int(flat.min()) <= int(flat.max()) <= _MAX_WHOLE
        return flat.astype(np.int64) if small else None
    if not np.isfinite(flat).all() or float(np.abs(flat).max()) > _MAX_WHOLE / _GRID:
        return None
    whole = np.rint(flat.astype(np.float64) * _GRID).astype(np.int64)
    again = (whole / _GRID).astype(flat.dtype)
    return whole if again.tobytes() == flat.tobytes() else None  # as bytes: -0.0 is not 0.0


def _planes(whole: npt.NDArray[np.int64]) -> tuple[int, bytes]:
    """The fewest bytes that hold each number, and these, the lowest byte of all numbers first."""
    folded = ((whole << 1) ^ (whole >> 63)).astype("<u8")  # 0, -1, 1, -2, ...: the sign last
    width = next(w for w in _WIDTHS if w == 8 or int(folded.max(initial=0)) < 2 ** (8 * w))
    planes = folded.view(np.uint8).reshape(-1, 8)[:, :width].T
    return width, planes.tobytes()


def _from_planes(data: bytes, width: int) -> npt.NDArray[np.int64]:
    planes = np.frombuffer(data, np.uint8).reshape(width, -1)
    folded = np.zeros((planes.shape[1], 8), np.uint8)
    folded[:, :width] = planes.T
    numbers = folded.view("<u8").ravel().astype(np.uint64)
    whole: npt.NDArray[np.int64] = (numbers >> np.uint64(1)).astype(np.int64)
    whole ^= -(numbers & np.uint64(1)).astype(np.int64)
    return whole
