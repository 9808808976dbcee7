"""Reading of column files, as CoNLL, CRF++ and CRFsuite have them; malformed rows are refused."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from spacy_treecrf.storage.text_lines import split_lines

Row = list[str]  # the fields of a token, one for each column of the file
COMMENT = "#"  # of other formats, such as CoNLL-U
STDIN = "-"


@dataclass(frozen=True)
class ColumnFile:
    """The rows of each sequence, and where they are in the file."""

    name: str
    sequences: list[list[Row]]  # no sequence is empty
    lines: list[int]  # the line of the first row of each sequence, from 1

    @property
    def n_fields(self) -> int:
        return len(self.sequences[0][0])

    def place(self, sequence: int, position: int) -> str:
        """The file and line of a row, for error messages."""
        return f"{self.name}:{self.lines[sequence] + position}"


def read_column_file(path: str | Path, encoding: str = "utf-8") -> ColumnFile:
    """A column file: rows of fields, separated by tabs, or by blanks if the first row has no tab.

    Every row must have as many fields as the first. Lines end with LF or CRLF, or all with CR.
    "-" reads the standard input.
    """
    if str(path).endswith(".spacy"):
        raise ValueError(
            f"treecrf: {path} holds docs of spaCy, and this needs a column file; write one by "
            f"`spacy-treecrf convert {path} FILE.conll`, or train a pipeline by `spacy train`"
        )
    name = "standard input" if str(path) == STDIN else str(path)
    return parse_column_file(_read_bytes(path, name), name, encoding)


def parse_column_file(data: bytes, name: str, encoding: str = "utf-8") -> ColumnFile:
    """The column file that was read as these bytes; errors call it by the name."""
    text = _decode(data, encoding, name)
    sequences: list[list[Row]] = []
    lines: list[int] = []
    current: list[Row] = []
    tabs = False
    width = 0
    for number, line in enumerate(split_lines(text), start=1):
        if "\r" in line:
            raise ValueError(
                f"treecrf: {name}:{number}: found a carriage return within {_short(line)}; end all "
                "lines of the file in one way, with LF, CRLF or CR"
            )
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
            _refuse_comment((*sequences, current)[0][0], name, lines[0])
            raise ValueError(
                f"treecrf: {name}:{number}: expected {width} columns separated by {separator}, "
                f"as in the first row, found {len(row)} in {_short(line)}; correct the row, or "
                "put an empty line between sequences; raw text is no column file, and is read by "
                "`tag --text`"
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
    if len(sequences) > 1 and all(rows[0][0] == COMMENT for rows in sequences):  # not a token
        _refuse_comment(sequences[0][0], name, lines[0])
    return ColumnFile(name, sequences, lines)


def _refuse_comment(row: Row, name: str, number: int) -> None:
    """Refuse the first row of a file if it is a comment, which column files do not have."""
    if row[0] == COMMENT:
        raise ValueError(
            f"treecrf: {name}:{number}: {_short(' '.join(row))} looks like a comment, and column "
            f"files have none; take out all lines that begin with {COMMENT!r} and are no tokens"
        )


def read_text_lines(path: str | Path, encoding: str = "utf-8") -> list[str]:
    """The lines of a text that are not empty."""
    name = "standard input" if str(path) == STDIN else str(path)
    text = _decode(_read_bytes(path, name), encoding, name)
    found = [line for line in split_lines(text) if line.strip()]
    if not found:
        raise ValueError(f"treecrf: {name} holds no text; expected a document in each line")
    return found


def _read_bytes(path: str | Path, name: str) -> bytes:
    try:
        if str(path) != STDIN:
            return Path(path).read_bytes()
        if sys.stdin is None:  # closed by the shell: <&-
            raise ValueError("it is closed")
        return sys.stdin.buffer.read()
    except (OSError, ValueError) as error:  # ValueError: a closed stream, a path with a zero byte
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"treecrf: cannot read {name}: {reason}; check the path") from error


def _decode(data: bytes, encoding: str, name: str) -> str:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"treecrf: {name}:{line}: expected {encoding}, found the byte "
            f"0x{data[error.start]:02x} that has no meaning there; name the encoding of the file, "
            "e.g. --encoding latin-1"
        ) from error
    except (LookupError, ValueError) as error:  # ValueError: no codec of text, as "undefined"
        raise ValueError(
            f"treecrf: there is no encoding {encoding!r}; use utf-8, latin-1 or another one that "
            "Python knows"
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
