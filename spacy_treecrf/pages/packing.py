"""Plain data in few characters: names of fields are written once, and so are repeated strings.

`packing.js` unpacks them. A list is [0, ...], an object [number of its shape, ...], and a string
that was written before is "~" and its number to base 36; other strings that begin with "~" get
another one in front.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
SHORT = 3  # a string of so few characters is as short as its number
SIGNIFICANT = 4  # digits of numbers


def packed(value: Any) -> dict[str, Any]:
    """The value, and the tables of strings and shapes that it refers to."""
    counts: Counter[str] = Counter()
    _count(value, counts)
    repeated = [text for text, n in counts.most_common() if n > 1 and len(text) > SHORT]
    numbers = {text: f"~{_base_36(i)}" for i, text in enumerate(repeated)}
    shapes: dict[tuple[str, ...], int] = {}
    whole = _pack(value, numbers, shapes)
    return {"strings": repeated, "shapes": [list(shape) for shape in shapes], "packed": whole}


def unpacked(data: dict[str, Any]) -> Any:
    """What `packed` was given, but for the digits of numbers."""
    strings, shapes = data["strings"], data["shapes"]

    def unpack(value: Any) -> Any:
        if isinstance(value, str) and value.startswith("~"):
            return value[1:] if value.startswith("~~") else strings[int(value[1:], 36)]
        if not isinstance(value, list):
            return value
        parts = [unpack(part) for part in value[1:]]
        return dict(zip(shapes[value[0] - 1], parts, strict=True)) if value[0] else parts

    return unpack(data["packed"])


def _count(value: Any, counts: Counter[str]) -> None:
    if isinstance(value, str):
        counts[value] += 1
    elif isinstance(value, dict):
        for part in value.values():
            _count(part, counts)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _count(part, counts)


def _pack(value: Any, numbers: dict[str, str], shapes: dict[tuple[str, ...], int]) -> Any:
    if isinstance(value, str):
        return numbers.get(value, f"~{value}" if value.startswith("~") else value)
    if isinstance(value, float):
        rounded = float(f"{value:.{SIGNIFICANT}g}")
        return int(rounded) if rounded.is_integer() else rounded
    if isinstance(value, dict):
        shape = shapes.setdefault(tuple(value), len(shapes) + 1)
        return [shape, *(_pack(part, numbers, shapes) for part in value.values())]
    if isinstance(value, (list, tuple)):
        return [0, *(_pack(part, numbers, shapes) for part in value)]
    return value


def _base_36(number: int) -> str:
    text = ""
    while number or not text:
        number, digit = divmod(number, 36)
        text = DIGITS[digit] + text
    return text
