"""Values out of JSON that nobody vouches for; errors tell the place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy_treecrf.corpora.reading import quoted, read_lines


class Field:
    """A value of a file, and where it is: "the file, line 3: spans[0].label"."""

    def __init__(self, value: Any, where: str) -> None:
        self.value = value
        self.where = where

    def wrong(self, expected: str, found: str | None = None) -> ValueError:
        kind = found or f"{quoted(json.dumps(self.value, ensure_ascii=False, default=str))}"
        return ValueError(f"treecrf: {self.where}: found {kind}; expected {expected}")

    def table(self) -> Field:
        if not isinstance(self.value, dict):
            raise self.wrong("an object {...}")
        return self

    def has(self, name: str) -> bool:
        return name in self.value and self.value[name] is not None

    def part(self, name: str) -> Field:
        """A field of an object, which must have it."""
        inner = Field(self.value.get(name), f"{self.where} {name}")
        if name not in self.value:
            raise inner.wrong("a value", "nothing")
        return inner

    def items(self, name: str) -> list[Field]:
        """The items of a list; none where the object has no such field."""
        if not self.has(name):
            return []
        return self.part(name).elements()

    def elements(self) -> list[Field]:
        if not isinstance(self.value, list):
            raise self.wrong("a list [...]")
        return [Field(value, f"{self.where}[{i}]") for i, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("a text")
        try:
            self.value.encode()
        except UnicodeEncodeError:
            raise self.wrong("a text", "half a surrogate pair, which is no character") from None
        return self.value

    def label(self) -> str:
        if not self.text().strip():
            raise self.wrong("the name of a label")
        return self.text()

    def integer(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.wrong("a whole number")
        return self.value

    def number(self) -> float:
        # Comparing, not isfinite: an integer of JSON may be too large for a float.
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise self.wrong("a number")
        if not -1e300 < self.value < 1e300:
            raise self.wrong("a finite number")
        return float(self.value)


def json_lines(path: Path) -> Iterator[Field]:
    """The objects of a file that has one in each line; empty lines do not count."""
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            where = f"{path}, line {number}:"
            yield Field(_parsed(line, where), where).table()


def json_file(path: Path) -> Field:
    """The value of a file."""
    return Field(_parsed("\n".join(read_lines(path)), f"{path}:"), f"{path}:")


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{where} line {error.lineno}, column {error.colno}"
        raise ValueError(f"treecrf: {place}: {error.msg}; expected JSON") from None
    except (RecursionError, ValueError) as error:  # ValueError: an integer of thousands of digits
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise ValueError(f"treecrf: {where} {reason}; expected JSON") from None
