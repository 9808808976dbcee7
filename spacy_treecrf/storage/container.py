"""The file of a learned model: a nested dict of plain values and numpy arrays, as checked bytes.

Layout: magic bytes, format version, length of the body, SHA-256 of all the rest, msgpack body.
An array is a msgpack map of its type, its shape and its bytes. In the small format, which is
version 2, arrays and texts are packed, and the body is compressed. Nothing is ever unpickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from srsly import msgpack
from srsly.msgpack.exceptions import FormatError, OutOfData, StackError

from spacy_treecrf.storage.files import as_path, replacing
from spacy_treecrf.storage.msgpack_parts import Part, packed_parts
from spacy_treecrf.storage.packing import (
    PACKED,
    TEXTS,
    packed_array,
    packed_texts,
    unpacked_array,
    unpacked_texts,
)
from spacy_treecrf.storage.state_reader import describe_value

FORMAT_VERSION, SMALL_VERSION = 1, 2
MAX_DEPTH = 32
MAX_CONTAINERS = 2**20  # lists and tables of a file: each is a byte there, and 64 in memory

# Not ASCII and with a line end: a file mangled by a text-mode copy is recognised at once.
_MAGIC = b"\x89TREECRF\r\n"
_VERSION = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")
_DIGEST_BYTES = 32
_HEADER_BYTES = len(_MAGIC) + _VERSION.size + _LENGTH.size + _DIGEST_BYTES

_ARRAY = "__array__"
_RESERVED = (_ARRAY, PACKED, TEXTS)
# What a small file may unfold to: so many times its size, and always as many bytes.
_MAX_RATIO = 64
_FREE_BYTES = 2**26
_DTYPES = ("<f4", "<f8", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "|b1")
_MAX_DIMENSIONS = 32
_MAX_ITEM_BYTES = 2**32 - 1  # the most that one msgpack value can hold
_PLAIN = frozenset({type(None), bool, int, float, str})
_PLAIN_BUT_INT = _PLAIN - {int}


def dump(state: dict[str, Any], small: bool = False) -> bytes:
    """The state as bytes. Numpy scalars are stored as plain numbers and tuples as lists.

    small: Take the time to make them few.
    """
    if not isinstance(state, dict):
        raise ValueError(f"treecrf: cannot store {describe_value(state)}: a state is a dict")
    try:
        body = packed_parts(_encode(state, "", 1, small))
    except UnicodeEncodeError as error:
        raise ValueError(
            f"treecrf: cannot store the text {error.object[:60]!r}: "
            "it holds half a surrogate pair, which has no UTF-8 form; remove it from the data"
        ) from error
    if small:
        whole = b"".join(body)
        body = [_LENGTH.pack(len(whole)), zlib.compress(whole, 9)]
    version = SMALL_VERSION if small else FORMAT_VERSION
    start = _MAGIC + _VERSION.pack(version) + _LENGTH.pack(sum(map(len, body)))
    return b"".join([start, _digest(start, *body), *body])


def parse(data: bytes, source: str = "model data") -> dict[str, Any]:
    """The state that `dump` made into these bytes; a ValueError that names the source otherwise.

    Arrays are aligned, writable and own their memory.
    """
    if not isinstance(data, bytes):
        raise ValueError(f"treecrf: {source}: expected bytes, found {describe_value(data)}")
    if not data or data[: len(_MAGIC)] != _MAGIC[: len(data)]:
        raise ValueError(
            f"treecrf: {source} {'does not hold' if data else 'is empty, not'} "
            "a model of spacy-treecrf; check the path"
        )
    version_end = len(_MAGIC) + _VERSION.size
    if len(data) < version_end:
        raise _truncated(source, len(data), _HEADER_BYTES)
    (version,) = _VERSION.unpack_from(data, len(_MAGIC))
    if version not in (FORMAT_VERSION, SMALL_VERSION):
        remedy = "update spacy-treecrf" if version > SMALL_VERSION else "copy or save it again"
        raise ValueError(
            f"treecrf: {source} has format version {version}, "
            f"this spacy-treecrf reads versions {FORMAT_VERSION} and {SMALL_VERSION}; {remedy}"
        )
    if len(data) < _HEADER_BYTES:
        raise _truncated(source, len(data), _HEADER_BYTES)
    (length,) = _LENGTH.unpack_from(data, version_end)
    if len(data) < _HEADER_BYTES + length:
        raise _truncated(source, len(data), _HEADER_BYTES + length)
    if len(data) > _HEADER_BYTES + length:
        extra = len(data) - _HEADER_BYTES - length
        raise ValueError(f"treecrf: {source} has {extra} bytes after its end; copy it again")
    start, body = data[: version_end + _LENGTH.size], memoryview(data)[_HEADER_BYTES:]
    if _digest(start, body) != data[len(start) : _HEADER_BYTES]:
        raise ValueError(
            f"treecrf: {source} is damaged (its SHA-256 checksum differs); copy or save it again"
        )
    with _refusing(source):
        small = version == SMALL_VERSION
        decoded = _decode(_unpacked(_decompressed(body) if small else body), "", small)
        if not isinstance(decoded, dict):
            raise ValueError("expected a table of fields, found an array")
    return decoded


def unpack(data: bytes, source: str) -> dict[str, Any]:
    """A table of plain values and bytes that other programs stored as msgpack, such as thinc."""
    with _refusing(source):
        return _unpacked(memoryview(data))


def save(path: str | os.PathLike[str], state: dict[str, Any], small: bool = False) -> None:
    """Write the state to a file, all or nothing: a file already there stays intact on failure."""
    write(path, dump(state, small))


def write(path: str | os.PathLike[str], *parts: Part) -> None:
    """Write a file, all or nothing: one already there stays intact on failure."""
    with replacing(path, "save the model file") as file:
        for part in parts:
            file.write(part)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The state in a file that `save` wrote."""
    path = as_path(path, "read the model file")
    source = f"the model file {str(path)!r}"
    try:
        with open(path, "rb") as file:
            data = file.read(len(_MAGIC))
            if data == _MAGIC:  # the rest of a file of another kind may be of any size
                file.seek(0)
                data = file.read()
    except (OSError, ValueError, MemoryError) as error:
        reason = str(error) or "not enough memory"
        raise ValueError(f"treecrf: cannot read {source}: {reason}; check the path") from error
    return parse(data, source)


def _digest(*parts: Part) -> bytes:
    checksum = hashlib.sha256()
    for part in parts:
        checksum.update(part)
    return checksum.digest()


def _decompressed(body: memoryview) -> memoryview:
    """The msgpack body of the small format, of which no more is made than it announces."""
    if len(body) < _LENGTH.size:
        raise ValueError("it ends before its length")
    (length,) = _LENGTH.unpack_from(body)
    if length > max(_FREE_BYTES, _MAX_RATIO * len(body)):
        raise ValueError("it unfolds to very many times its size")
    decompressor = zlib.decompressobj()
    try:
        data = decompressor.decompress(body[_LENGTH.size :], length + 1)
    except zlib.error as error:
        raise ValueError(f"it cannot be decompressed ({error})") from None
    if len(data) != length or not decompressor.eof or decompressor.unused_data:
        raise ValueError("it has another length than it announces")
    return memoryview(data)


def _truncated(source: str, found: int, expected: int) -> ValueError:
    return ValueError(
        f"treecrf: {source} is truncated ({found} of {expected} bytes); copy or save it again"
    )


def _encode(value: Any, path: str, depth: int, small: bool) -> Any:
    """The value as msgpack can hold it; depth counts the msgpack containers down to it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise _unstorable(path, "an integer of more than 64 bits")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth + isinstance(value, np.ndarray) > MAX_DEPTH:
        raise _unstorable(path, f"more than {MAX_DEPTH} levels of nesting")
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or key in _RESERVED:
                raise _unstorable(path, f"the key {key!r}, keys are texts other than {_RESERVED}")
        return {
            key: _encode(item, _join(path, key), depth + 1, small) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        if small and all(type(item) is str for item in value) and depth + 2 <= MAX_DEPTH:
            return packed_texts(value) or value
        if _PLAIN_BUT_INT.issuperset(map(type, value)):
            return value
        return [_encode(item, f"{path}[{i}]", depth + 1, small) for i, item in enumerate(value)]
    if type(value) is np.ndarray:
        return (packed_array(value) if small else None) or _encode_array(value, path)
    raise _unstorable(
        path,
        f"{describe_value(value)}; use plain values, lists, dicts with text keys and numpy arrays",
    )


def _encode_array(array: npt.NDArray[Any], path: str) -> dict[str, Any]:
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in _DTYPES:
        raise _unstorable(path, f"an array of {array.dtype}; convert it to one of {_DTYPES}")
    if array.nbytes > _MAX_ITEM_BYTES:
        raise _unstorable(path, f"an array of {array.nbytes} bytes; split it into parts below 4 GB")
    # Its own bytes, where they lie in order: they are copied when the file is made.
    data = np.ascontiguousarray(array.astype(dtype, copy=False)).reshape(-1).view(np.uint8).data
    return {_ARRAY: dtype.str, "shape": list(array.shape), "data": data}


def _unstorable(path: str, what: str) -> ValueError:
    where = f"the state's field {path!r}" if path else "the state"
    return ValueError(f"treecrf: cannot store {where}: it holds {what}")


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _unpacked(body: memoryview) -> dict[str, Any]:
    _check_structure(body)
    containers = _Containers()
    # With a pairs hook of our own srsly calls none of its registered decoders: the one for numpy
    # trusts any stored dtype, and every installed package may add more.
    state = msgpack.unpackb(
        body,
        object_pairs_hook=containers.table,
        list_hook=containers.list,
        ext_hook=_refuse_extension,
        max_ext_len=0,  # refused before they are read, also those whose length overflows
        raw=False,
        use_list=True,
    )
    if not isinstance(state, dict):
        raise ValueError(f"expected a table of fields, found {describe_value(state)}")
    _check_depth(state, 1)
    return state


@contextlib.contextmanager
def _refusing(source: str) -> Iterator[None]:
    """Tell errors of decoding as errors of the source."""
    try:
        yield
    except MemoryError as error:
        raise ValueError(
            f"treecrf: {source} does not fit into memory; use a machine with more of it"
        ) from error
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(
            f"treecrf: {source} has a malformed body: {error}; save the model again"
        ) from error


def _check_structure(body: memoryview) -> None:
    """Refuse msgpack that is not complete, or has anything after its end.

    The decoder allocates each container by its announced length before it sees the items, so
    every announced length has to be checked against the bytes that are really there. To skip a
    value allocates nothing.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=max(1, len(body)))
    unpacker.feed(body)
    try:
        unpacker.skip()
    except OutOfData:
        raise ValueError("it ends in the middle of a value") from None
    except StackError:
        raise _too_deep() from None
    except FormatError:
        raise ValueError("it holds a byte that begins no value") from None
    if unpacker.tell() < len(body):
        raise ValueError(f"{len(body) - unpacker.tell()} bytes follow its end")


class _Containers:
    """Checks the lists and tables of a body as they are made, and counts them."""

    def __init__(self) -> None:
        self._n = 0

    def table(self, pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
        self._count()
        for key, _ in pairs:
            if type(key) is not str:
                raise ValueError(f"expected a text as a field's name, found {describe_value(key)}")
        table = dict(pairs)
        if len(table) < len(pairs):
            raise ValueError("a field's name occurs twice in one table")
        return table

    def list(self, values: list[Any]) -> list[Any]:
        self._count()
        return values

    def _count(self) -> None:
        self._n += 1
        if self._n > MAX_CONTAINERS:
            raise ValueError(f"it holds more than {MAX_CONTAINERS} lists and tables")


def _refuse_extension(code: int, data: bytes) -> Any:
    raise ValueError(f"it holds a value of the unknown extension type {code}")


def _check_depth(container: Any, depth: int) -> None:
    """Refuse a dict or list that holds others too deep; depth counts those down to it."""
    if depth > MAX_DEPTH:
        raise _too_deep()
    values = container.values() if type(container) is dict else container
    if not _PLAIN.issuperset(map(type, values)):
        for value in values:
            if type(value) in (dict, list):
                _check_depth(value, depth + 1)


def _too_deep() -> ValueError:
    return ValueError(f"it has more than {MAX_DEPTH} levels of nesting")


def _decode(value: Any, path: str, small: bool) -> Any:
    """The value with its arrays restored, in place as far as it is a list or a dict."""
    if type(value) is dict:
        if _ARRAY in value:
            return _decode_array(value, path)
        if small and (PACKED in value or TEXTS in value):
            try:
                return unpacked_array(value) if PACKED in value else unpacked_texts(value)
            except ValueError as error:
                raise ValueError(f"field {path!r}: {error}") from None
        for key, item in value.items():
            value[key] = _decode(item, _join(path, key), small)
    elif type(value) is list:
        if not _PLAIN.issuperset(map(type, value)):
            for index, item in enumerate(value):
                value[index] = _decode(item, f"{path}[{index}]", small)
    elif type(value) not in _PLAIN:
        raise ValueError(f"field {path!r} is {describe_value(value)} outside of an array")
    return value


def _decode_array(table: dict[str, Any], path: str) -> npt.NDArray[Any]:
    if table.keys() != {_ARRAY, "shape", "data"}:
        raise ValueError(f"field {path!r} is an array without shape or data, or with more")
    dtype_name, shape, data = table[_ARRAY], table["shape"], table["data"]
    if type(dtype_name) is not str or dtype_name not in _DTYPES:
        raise ValueError(
            f"field {path!r} is an array of {describe_value(dtype_name)}, not of {_DTYPES}"
        )
    if (
        type(shape) is not list
        or len(shape) > _MAX_DIMENSIONS
        or not all(type(size) is int and 0 <= size < 2**63 for size in shape)
    ):
        raise ValueError(f"field {path!r} is an array whose shape is not a list of sizes")
    dtype = np.dtype(dtype_name)
    if type(data) is not bytes or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"field {path!r} is an array whose data do not fit its shape {shape}")
    flat = np.frombuffer(data, dtype)
    # A truth value other than 0 and 1 is undefined behaviour in compiled code.
    if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError(f"field {path!r} is an array of truth values with bytes other than 0, 1")
    return flat.reshape(shape).astype(dtype.newbyteorder("="), order="C", copy=True)
