"""The words of unlabelled text: of text files, read line by line, and of .spacy files."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc

from spacy_treecrf.formats.token_files import read_spacy_docs

BLOCK = 1 << 20  # bytes that are read at a time
BYTE_ORDER_MARK = "\ufeff"


def read_sentences(paths: Iterable[Path], nlp: Language, encoding: str) -> Iterator[list[str]]:
    """The words of each line of text files, or of each doc of .spacy files; blanks are no words."""
    for path in paths:
        docs = read_spacy_docs(path) if path.suffix == ".spacy" else _lines(path, nlp, encoding)
        for doc in docs:
            words = [text for token in doc for text in token.text.split()]
            if words:
                yield words


def _lines(path: Path, nlp: Language, encoding: str) -> Iterator[Doc]:
    try:
        with path.open(encoding=encoding) as file:
            for number, line in enumerate(file):
                if not number:
                    line = line.removeprefix(BYTE_ORDER_MARK)
                for start in range(0, len(line), nlp.max_length):
                    yield nlp.make_doc(line[start : start + nlp.max_length].strip())
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"treecrf: cannot read {path}: {reason}; check the path") from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"treecrf: {path}:{_line_of_error(path, encoding)}: this is no text in {encoding}: "
            f"{error.reason}; name the encoding of the file by --encoding"
        ) from error
    except LookupError as error:
        raise ValueError(f"treecrf: {error}; name one as Python does, e.g. latin-1") from error


def _line_of_error(path: Path, encoding: str) -> int:
    """The line of the first byte that has no meaning, which a file read in blocks does not tell."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                return line + error.object[: error.start].count(b"\n")
            line += block.count(b"\n")
    return line  # the last character is not whole
