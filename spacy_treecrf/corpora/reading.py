"""Finding a corpus's files, knowing them by checksum, and reading them strictly."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spacy_treecrf.storage.text_lines import split_lines

FOLDER_VARIABLE = "TREECRF_CORPORA"
DEFAULT_FOLDER = "assets"


@dataclass(frozen=True)
class CorpusFile:
    """A file of a corpus.

    path: The path below the folder of corpora, with "/".
    sha256: The checksum; None where it is not known, so that the reader alone judges the content.
    """

    path: str
    sha256: str | None = None


def folders(folder: Path | None) -> list[Path]:
    """The folders to look in: the one given, or else $TREECRF_CORPORA and assets/."""
    if folder is not None:
        return [Path(folder)]
    named = os.environ.get(FOLDER_VARIABLE)
    return [*([Path(named)] if named else []), Path(DEFAULT_FOLDER)]


def find_file(file: CorpusFile, folder: Path | None) -> Path | None:
    candidates = (place / file.path for place in folders(folder))
    return next((path for path in candidates if path.is_file()), None)


def corpus_file(file: CorpusFile, folder: Path | None, verify: bool, address: str) -> Path:
    """The path of a file that is there and, where asked, has the right content."""
    path = find_file(file, folder)
    if path is None:
        looked = " and ".join(str(place) for place in folders(folder))
        raise FileNotFoundError(
            f"treecrf: {file.path} was not found in {looked}; get it from {address}, and put it "
            f"there, or set {FOLDER_VARIABLE} to the folder that holds {file.path}"
        )
    if verify and file.sha256:
        check_sum(path, file.sha256, address)
    return path


def check_sum(path: Path, sha256: str, address: str) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise ValueError(
            f"treecrf: {path} has the sha256 checksum {found}; expected {sha256}: it is damaged or "
            f"another version; get it again from {address}, or read it without verifying"
        )


def read_lines(path: Path, encoding: str = "utf-8") -> list[str]:
    """The lines without their ends; a byte that the encoding does not know is refused."""
    try:
        data = Path(path).read_bytes()
    except IsADirectoryError as error:
        raise ValueError(f"treecrf: {path} is a folder; expected a text file") from error
    except FileNotFoundError as error:
        raise FileNotFoundError(f"treecrf: {path} does not exist; expected a text file") from error
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise malformed(
            path,
            line,
            f"byte 0x{data[error.start]:02x}",
            f"text in {encoding}; convert the file to {encoding}",
        ) from error
    lines = split_lines(text.removeprefix("\ufeff"))
    if lines and not lines[-1]:
        lines.pop()
    return lines


def malformed(path: Path, line: int, found: str, expected: str) -> ValueError:
    return ValueError(f"treecrf: {path}, line {line}: found {found}; expected {expected}")


def quoted(text: str) -> str:
    """A line quoted for an error message, cut where it is long."""
    return repr(text if len(text) <= 60 else text[:60] + "...")


def read_columns(
    path: Path, *, encoding: str = "utf-8", columns: Sequence[str] | None = None
) -> list[list[list[str]]]:
    """The sentences of a column file, as lists of rows of fields; blank lines separate sentences.

    Fields are separated by tabs where a row has any, else by blanks. All rows have as many fields
    as the first, or as there are names in `columns`.
    """
    n_fields = len(columns) if columns else 0
    which = " ".join(columns or [])
    sentences: list[list[list[str]]] = [[]]
    for number, line in enumerate(read_lines(path, encoding), start=1):
        if "\r" in line:
            found = f"a carriage return within {quoted(line)}"
            raise malformed(path, number, found, "all lines to end in one way: LF, CRLF or CR")
        if not line.strip():
            if sentences[-1]:
                sentences.append([])
            continue
        fields = line.split("\t") if "\t" in line else line.split()
        if not n_fields:
            n_fields, which = len(fields), f"as in line {number}"
        if len(fields) != n_fields:
            found = f"{len(fields)} fields in {quoted(line)}"
            expected = f"{n_fields} ({which}), and blank lines between sequences"
            raise malformed(path, number, found, expected)
        if not all(field.strip() for field in fields):
            raise malformed(path, number, f"an empty field in {quoted(line)}", "a value in each")
        sentences[-1].append([field.strip() for field in fields])
    if not sentences[-1]:
        sentences.pop()
    if not sentences:
        raise ValueError(f"treecrf: {path} has no rows; expected one token in each line")
    return sentences
