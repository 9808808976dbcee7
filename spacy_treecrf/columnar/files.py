"""Reading column files, as CoNLL, CRF++ and CRFsuite have them; strict about malformed rows."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

Row = list[str]  # the columns of a token
STDIN = "-"


@dataclass(frozen=True)
class ColumnFile:
    """The rows of each sequence, and where they stand in the file."""

    name: str
    sequences: list[list[Row]]  # none of them empty
    lines: list[int]  # of the first row of each sequence, from 1

    @property
    def n_columns(self) -> int:
        return len(self.sequences[0][0])

    def place(self, sequence: int, position: int) -> str:
        """Where a row is, for error messages."""
        return f"{self.name}:{self.lines[sequence] + position}"


def read_column_file(path: str | Path, encoding: str = "utf-8") -> ColumnFile:
    """Columns are separated by tabs, or by blanks in a file whose first row has no tab.

    Every row must have as many columns as the first. "-" reads the standard input.
    """
    name = "standard input" if str(path) == STDIN else str(path)
    text = _decode(_read_bytes(path, name), encoding, name)
    sequences: list[list[Row]] = []
    lines: list[int] = []
    current: list[Row] = []
    tabs = False
    width = 0
    # Only at line feeds: str.splitlines would cut at characters that may stand in a token.
    for number, full_line in enumerate(text.split("\n"), start=1):
        line = full_line.removesuffix("\r")
        if not line.strip(" \t"):
            if current:
                sequences.append(current)
                current = []
            continue
        if not width:
            tabs = "\t" in line
        row = line.split("\t") if tabs else [cell for cell in line.split(" ") if cell]
        if not width:
            width = len(row)
        if len(row) != width:
            separator = "tabs" if tabs else "blanks"
            raise ValueError(
                f"treecrf: {name}:{number}: expected {width} columns separated by {separator}, "
                f"as in the first row, found {len(row)} in {_short(line)}; correct the row, or "
                "put an empty line between sequences"
            )
        if not current:
            lines.append(number)
        current.append(row)
    if current:
        sequences.append(current)
    if not sequences:
        raise ValueError(
            f"treecrf: {name} has no rows; expected a token in each line with its columns, and "
            "empty lines between sequences"
        )
    return ColumnFile(name, sequences, lines)


def read_text_lines(path: str | Path, encoding: str = "utf-8") -> list[str]:
    """The lines of a text that are not empty."""
    name = "standard input" if str(path) == STDIN else str(path)
    text = _decode(_read_bytes(path, name), encoding, name)
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    found = [line for line in lines if line.strip()]
    if not found:
        raise ValueError(f"treecrf: {name} holds no text; expected a document in each line")
    return found


def _read_bytes(path: str | Path, name: str) -> bytes:
    if str(path) == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"treecrf: cannot read {name}: {reason}; check the path") from error


def _decode(data: bytes, encoding: str, name: str) -> str:
    try:
        text = data.decode(encoding)
    except LookupError as error:
        raise ValueError(
            f"treecrf: there is no encoding {encoding!r}; use utf-8, latin-1 or another one that "
            "Python knows"
        ) from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"treecrf: {name}:{line}: expected {encoding}, found the byte "
            f"0x{data[error.start]:02x} that has no meaning there; name the encoding of the file, "
            "e.g. --encoding latin-1"
        ) from error
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise ValueError(
            f"treecrf: {name}:{line}: found a zero byte, so this is no text in {encoding}; name "
            "the encoding of the file, e.g. --encoding utf-16"
        )
    return text


def _short(line: str, limit: int = 60) -> str:
    return repr(line if len(line) <= limit else line[:limit] + "...")
