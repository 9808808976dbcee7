"""BRAT's standoff files: a text in DOC.txt, its spans in DOC.ann.

Offsets are code points. Line ends are characters as all others, and blanks in the text of a span.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from spacy_treecrf.corpora.reading import malformed, quoted, read_lines
from spacy_treecrf.formats.annotated_text import (
    DISCONTINUOUS,
    OTHER_RESULTS,
    AnnotatedText,
    LabelledSpan,
    Tally,
)
from spacy_treecrf.storage.files import check_target, keep_owner_and_mode

TEXT, SPANS = ".txt", ".ann"
_OTHERS = tuple("ERAMN#*")  # events, relations, attributes, normalisations, notes, equivalences
_SPAN = re.compile(r"(\S+) ([0-9]{1,10} [0-9]{1,10}(?:;[0-9]{1,10} [0-9]{1,10})*)")
_NAME = re.compile(r"[\w][\w.-]{0,100}")
_LINE_ENDS = re.compile(r"[\r\n\t]")


def read_brat(path: Path, tally: Tally) -> Iterator[AnnotatedText]:
    """The texts of a folder in the order of their names, or the text of one file."""
    files = sorted(path.glob(f"*{TEXT}")) if path.is_dir() else [path.with_suffix(TEXT)]
    if not files:
        raise ValueError(f"treecrf: {path} has no {TEXT} files; name a folder of BRAT's files")
    for file in files:
        text = _read_text(file)
        spans = file.with_suffix(SPANS)
        if not spans.is_file():
            raise ValueError(
                f"treecrf: {file} has no {spans.name} beside it; add it, or an empty one"
            )
        yield AnnotatedText(text, tuple(_read_spans(spans, text, tally)), name=file.stem)


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"treecrf: cannot read {path}: {reason}; check the path") from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"treecrf: {path}: the byte at {error.start} is no UTF-8; convert the file"
        ) from error


def _read_spans(path: Path, text: str, tally: Tally) -> Iterator[LabelledSpan]:
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        if line.startswith(_OTHERS):
            tally.left_out[OTHER_RESULTS] += 1
            continue
        fields = line.split("\t", 2)
        found = _SPAN.fullmatch(fields[1]) if len(fields) in (2, 3) else None
        if not line.startswith("T") or found is None:
            expected = "T1<tab>LABEL START END<tab>TEXT, or another annotation of BRAT"
            raise malformed(path, number, quoted(line), expected)
        if ";" in found[2]:
            tally.left_out[DISCONTINUOUS] += 1
            continue
        start, end = map(int, found[2].split())
        if not start < end <= len(text):
            expected = f"a start before its end, both up to {len(text)}"
            raise malformed(path, number, found[2], expected)
        if len(fields) == 3 and _in_a_line(fields[2]) != _in_a_line(text[start:end]):
            raise malformed(path, number, quoted(fields[2]), quoted(_in_a_line(text[start:end])))
        yield LabelledSpan(start, end, found[1])


def _in_a_line(text: str) -> str:
    return _LINE_ENDS.sub(" ", text)


def write_brat(texts: Iterable[AnnotatedText], folder: Path, force: bool = False) -> None:
    """Write two files for each text into a folder, which is made if need be.

    All files are formed before the first is put in place, so that an error in a text leaves the
    folder as it was.

    force: Whether the pairs of files that the folder holds are replaced, all of them.
    """
    held = _pairs_in(folder, force)
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # Within the folder, as renames stay within a file system.
        with tempfile.TemporaryDirectory(dir=folder, prefix=".treecrf-") as place:
            written = _write_pairs(texts, Path(place))
            for name in written & held:
                keep_owner_and_mode(Path(place, name), (folder / name).stat())
            for name in sorted(written):
                os.replace(Path(place, name), folder / name)
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise
    for name in held - written:
        (folder / name).unlink()


def _pairs_in(folder: Path, force: bool) -> set[str]:
    """The names of the files of a folder; refuses one that must not lose what it holds."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"treecrf: {folder} is a file; BRAT's files need a folder, name one")
    held = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if held and not force:
        raise ValueError(f"treecrf: {folder} is not empty; use --force, or name another folder")
    for name in sorted(held):
        path = folder / name
        partner = path.with_suffix(TEXT if path.suffix == SPANS else SPANS)
        is_plain = path.is_file() and not path.is_symlink()
        if not is_plain or path.suffix not in (TEXT, SPANS) or partner.name not in held:
            raise ValueError(
                f"treecrf: {folder} also holds {name}, which is no {TEXT} file with its {SPANS} "
                "file; name another folder, or delete it yourself"
            )
        check_target(path)
    return held


def _write_pairs(texts: Iterable[AnnotatedText], folder: Path) -> set[str]:
    """Write the files of all texts into an empty folder; returns their names."""
    taken: set[str] = set()
    for number, each in enumerate(texts, start=1):
        name = each.name if _NAME.fullmatch(each.name) else f"doc-{number:05}"
        while name + TEXT in taken:
            name += f"-{number:05}"
        (folder / (name + TEXT)).write_bytes(each.text.encode())
        (folder / (name + SPANS)).write_bytes(b"".join(_lines(each)))
        taken |= {name + TEXT, name + SPANS}
    return taken


def _lines(each: AnnotatedText) -> Iterator[bytes]:
    for number, span in enumerate(each.spans, start=1):
        if re.search(r"\s", span.label):
            raise ValueError(
                f"treecrf: the label {span.label!r} has a blank, and labels of BRAT have none; "
                "rename it"
            )
        text = _in_a_line(each.text[span.start : span.end])
        yield f"T{number}\t{span.label} {span.start} {span.end}\t{text}\n".encode()
