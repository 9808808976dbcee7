"""Random damage to bytes and to nested values: what a disk, a copy, a tool or a hand could do."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator
from typing import Any

STRANGE: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    2**31,
    2**63 - 1,
    math.nan,
    math.inf,
    1e308,
    "",
    "\0",
    "é😀",
    "a" * 1000,
    b"",
    b"\x89TREECRF\r\n",
    b"\xff" * 40,
    [],
    {},
    [[]],
    [None],
    {"": 1},
    {"nodes": []},
]


def damaged_bytes(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """The data cut, with bits flipped, with bytes added, or replaced as a whole."""
    how = rng.randrange(8)
    if how == 0:
        n = rng.randrange(len(data) + 1)
        return data[:n], f"cut after {n} bytes"
    if how == 1:
        at = rng.randrange(len(data) + 1)
        more = rng.randbytes(rng.choice([1, 3, 100]))
        return data[:at] + more + data[at:], f"{len(more)} bytes added at {at}"
    if how == 2:
        whole = rng.choice([b"", b"{", b"[]", b"null", b"\x80", b"\xdd\xff\xff\xff\xff", b"\xff"])
        return whole, f"replaced by {whole!r}"
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 5])):
        # the header is where a change could matter
        at = rng.randrange(min(120, len(data)) if rng.random() < 0.6 else len(data))
        changed[at] = rng.randrange(256)
    return bytes(changed), "bytes changed"


def damaged_value(value: Any, rng: random.Random, strange: list[Any] = STRANGE) -> tuple[Any, str]:
    """A copy of tables and lists with something in it missing, added, or of another kind."""
    changed = [copy.deepcopy(value)]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        holder, key = rng.choice(list(_places(changed, 0)))
        how = rng.randrange(6)
        if how == 0 and holder is not changed:
            del holder[key]
        elif how == 1 and isinstance(holder, dict):
            holder[rng.choice(["extra", "", "nodes", "0"])] = rng.choice(strange)
        elif how == 1:
            holder.insert(key, rng.choice(strange))
        else:
            holder[key] = copy.deepcopy(rng.choice(strange))
    return changed[0], f"changed to {str(changed[0])[:200]}"


def _places(holder: Any, depth: int) -> Iterator[tuple[Any, Any]]:
    """Every table or list with a key or an index in it."""
    items = list(holder.items()) if isinstance(holder, dict) else list(enumerate(holder))
    for key, value in items:
        yield holder, key
        if isinstance(value, dict | list) and depth < 20:
            yield from _places(value, depth + 1)
