"""Msgpack in parts: long bytes stay where they are, and are copied once, into a file or a whole.

A packer holds two copies of what it has packed, beside the bytes that it was given.
"""

from __future__ import annotations

import struct
from typing import Any

from srsly import msgpack

Part = bytes | memoryview
LONG = 2**16  # bytes from which a value is a part of its own
_HOLDS_MORE = (dict, list, tuple, bytes, memoryview)
_BINARY_32 = struct.Struct(">BI")
_BINARY_32_CODE = 0xC6


def packed_parts(value: Any) -> list[Part]:
    """Parts that, laid end to end, are the value as msgpack.packb gives it, with its bin type."""
    parts: list[Part] = []
    _add(value, parts, msgpack.Packer(use_bin_type=True))
    return parts


def _add(value: Any, parts: list[Part], packer: Any) -> None:
    if isinstance(value, dict):
        parts.append(packer.pack_map_header(len(value)))
        for key, item in value.items():
            _add(key, parts, packer)
            _add(item, parts, packer)
    elif isinstance(value, list | tuple) and any(isinstance(i, _HOLDS_MORE) for i in value):
        parts.append(packer.pack_array_header(len(value)))
        for item in value:
            _add(item, parts, packer)
    elif isinstance(value, bytes | memoryview) and LONG <= len(value) < 2**32:
        parts += [_BINARY_32.pack(_BINARY_32_CODE, len(value)), value]
    elif isinstance(value, list | tuple):
        parts.append(msgpack.packb(value, use_bin_type=True))
    else:
        parts.append(packer.pack(value))
