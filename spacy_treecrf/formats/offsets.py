"""Offsets into texts: code points, as Python counts, or units of UTF-16, as browsers count.

A character beyond U+FFFF, as most emoji are, is one code point and two units.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

CODE_POINTS, UTF_16 = "code-points", "utf-16"
COUNTINGS = (CODE_POINTS, UTF_16)
_LAST_OF_ONE_UNIT = "\uffff"


def to_code_points(text: str, counting: str) -> Callable[[int], int | None]:
    """A function from offsets of a counting to code points; None: within a character."""
    if counting == CODE_POINTS or not text or max(text) <= _LAST_OF_ONE_UNIT:
        return lambda offset: offset if 0 <= offset <= len(text) else None
    places = {unit: i for i, unit in enumerate(_units(text))}
    return places.get


def from_code_points(text: str, counting: str) -> Callable[[int], int]:
    """A function from code points to offsets of a counting."""
    if counting == CODE_POINTS or not text or max(text) <= _LAST_OF_ONE_UNIT:
        return lambda offset: offset
    return list(_units(text)).__getitem__


def _units(text: str) -> accumulate[int]:
    """The offset of each character in units, and that of the end."""
    return accumulate((1 + (c > _LAST_OF_ONE_UNIT) for c in text), initial=0)
