"""Unpack corpora that are published inside of other files, as files that the readers know."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

from spacy_treecrf.storage.files import replacing


def unpack(archive: Path) -> None:
    """Write what is in the archive next to it. The checksum must have been checked before."""
    UNPACKERS[archive.name](archive)


def unpack_conll2000(archive: Path) -> None:
    with zipfile.ZipFile(archive) as files:
        for name in ("train.txt", "test.txt"):
            with replacing(archive.parent / name) as file:
                file.write(files.read(f"conll2000/{name}"))


UNPACKERS: dict[str, Callable[[Path], None]] = {"conll2000.zip": unpack_conll2000}
