"""Eight-state structure of proteins with their profiles: the arrays of Zhou and Troyanskaya (2014).

A file holds a row of 700 x 57 numbers for each protein, 57 for each residue. It is read row by row,
as the published file has two gigabytes when it is unpacked.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence, Splits
from spacy_treecrf.corpora.reading import CorpusFile

# The checksum of the published file is not known here.
FILE = CorpusFile("protein8/cullpdb+profile_6133.npy.gz")
LAYER = "structure8"
LENGTH = 700
RESIDUES = "ACEDGFIHKMLNQPSRTWVYX"  # then a column that marks padding
STRUCTURES = "LBEGIHST"  # then such a column again
WIDTH = 57
_RESIDUE = slice(0, 22)
_STRUCTURE = slice(22, 31)
_TERMINALS = slice(31, 33)
# 33 and 34 are solvent accessibilities, which are not known where the structure is not.
_PROFILE = slice(35, 57)
# The published split; the five rows between the training and the test part belong to neither.
N_PUBLISHED = 6133
PUBLISHED = {"train": slice(0, 5600), "test": slice(5605, 5877), "dev": slice(5877, 6133)}

_GZIP = b"\x1f\x8b"
_EXPECTED = f"an array of floats of shape (n, {LENGTH * WIDTH}) or (n, {LENGTH}, {WIDTH})"


def read_protein8(path: Path) -> list[LabelledSequence]:
    """The proteins of a .npy file, which may be packed by gzip, in the order of the file."""
    sequences = [_sequence(path, i, rows) for i, rows in enumerate(_proteins(path))]
    if not sequences:
        raise ValueError(f"treecrf: {path} holds no proteins; expected {_EXPECTED}")
    return sequences


def published_split(sequences: list[LabelledSequence]) -> Splits:
    if len(sequences) != N_PUBLISHED:
        raise ValueError(
            f"treecrf: split 'published' is one of {N_PUBLISHED:,} proteins, and these are "
            f"{len(sequences):,}; use the file {FILE.path}, or the split 'hash'"
        )
    return {part: sequences[where] for part, where in PUBLISHED.items()}


def _proteins(path: Path) -> Iterator[npt.NDArray[np.float64]]:
    """The numbers of each protein. shape of each: (LENGTH, WIDTH)"""
    with _opened(path) as file:
        try:
            n, dtype = _header(path, file)
            size = LENGTH * WIDTH * dtype.itemsize
            for i in range(n):
                data = file.read(size)
                if len(data) < size:
                    raise _bad(path, f"the file ends within protein {i} of {n}", _EXPECTED)
                yield np.frombuffer(data, dtype).astype(np.float64).reshape(LENGTH, WIDTH)
            if file.read(1):
                raise _bad(path, f"more data behind the {n} proteins", _EXPECTED)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise _bad(path, f"damaged gzip data ({error})", "a whole file") from error


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    with Path(path).open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        if packed:
            with gzip.open(file) as unpacked:
                yield unpacked
        else:
            yield file


def _header(path: Path, file: BinaryIO | gzip.GzipFile) -> tuple[int, np.dtype[np.floating]]:
    """The number of proteins and the type of floats in a file; nothing is ever unpickled."""
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        version = np.lib.format.read_magic(file)
        if version not in read:
            raise ValueError(f"version {version} of the format")
        shape, by_column, dtype = read[version](file)
    except ValueError as error:
        raise _bad(path, f"no array of numpy ({error})", _EXPECTED) from error
    if dtype.kind != "f":
        raise _bad(path, f"values of type {dtype}", _EXPECTED)
    if by_column or shape[1:] not in ((LENGTH * WIDTH,), (LENGTH, WIDTH)):
        order = " in Fortran's order" if by_column else ""
        raise _bad(path, f"the shape {shape}{order}", _EXPECTED)
    return shape[0], dtype


def _sequence(path: Path, number: int, rows: npt.NDArray[np.float64]) -> LabelledSequence:
    where = f"protein {number}"
    if not np.isfinite(rows).all():
        t = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise _bad(path, f"{where}, position {t}: a value that is not finite", "numbers")
    residues = _chosen(path, where, "residue", rows[:, _RESIDUE])
    structures = _chosen(path, where, "structure", rows[:, _STRUCTURE])
    inside = residues < len(RESIDUES)
    n = int(inside.sum())
    if not n or not inside[:n].all():
        found = "padding before a residue" if n else "no residues"
        raise _bad(path, f"{where}: {found}", "residues, then padding")
    if ((structures < len(STRUCTURES)) != inside).any():
        t = int(np.flatnonzero((structures < len(STRUCTURES)) != inside)[0])
        raise _bad(path, f"{where}, position {t}: only one of residue and structure", "both")
    words = [RESIDUES[i] for i in residues[:n]]
    return LabelledSequence(
        words,
        {LAYER: [STRUCTURES[i] for i in structures[:n]]},
        {"terminals": rows[:n, _TERMINALS].tolist(), "profile": rows[:n, _PROFILE].tolist()},
        key="".join(words),
    )


def _chosen(
    path: Path, where: str, what: str, one_hot: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """The index of the 1 in each row; all other numbers have to be 0."""
    good = ((one_hot == 0) | (one_hot == 1)).all(axis=1) & (one_hot.sum(axis=1) == 1)
    if not good.all():
        t = int(np.flatnonzero(~good)[0])
        found = f"{where}, position {t}: the {one_hot.shape[1]} columns of the {what}"
        raise _bad(path, found, "one 1 among zeros")
    chosen: npt.NDArray[np.int64] = one_hot.argmax(axis=1)
    return chosen


def _bad(path: Path, found: str, expected: str) -> ValueError:
    return ValueError(f"treecrf: {path}: found {found}; expected {expected}")
