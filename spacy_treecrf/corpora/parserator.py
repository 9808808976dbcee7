"""Labelled XML of parserator and usaddress: <Collection><AddressString><Name>token</Name> ..."""

from __future__ import annotations

from pathlib import Path
from xml.parsers import expat

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence
from spacy_treecrf.corpora.reading import malformed, quoted

LAYER = "part"
MAX_BYTES = 2**30
_STRINGS, _TOKENS = 1, 2  # how deep the elements lie


def read_parserator(path: Path) -> list[LabelledSequence]:
    """A sequence for each child of the root; its children are tokens, named by their labels.

    What a document type could declare, entities above all, is refused.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"treecrf: cannot read {path}: {reason}; check the path") from error
    if len(data) > MAX_BYTES:
        raise ValueError(f"treecrf: {path} has more than {MAX_BYTES >> 20} MB; cut it into parts")
    reader = _Reader(path)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise malformed(path, error.lineno, expat.ErrorString(error.code), "XML") from None
    except (LookupError, ValueError) as error:
        if str(error).startswith("treecrf: "):  # of what the elements hold
            raise
        raise malformed(path, 1, f"an encoding that XML cannot have ({error})", "UTF-8") from None
    if not reader.sequences:
        raise ValueError(f"treecrf: {path} has no labelled strings; expected some in its root")
    return reader.sequences


class _Reader:
    """What a parser calls for elements and texts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sequences: list[LabelledSequence] = []
        self.depth = 0
        self.words: list[str] = []
        self.labels: list[str] = []
        self.text = ""
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._add_text

    def _malformed(self, found: str, expected: str) -> ValueError:
        return malformed(self.path, self.parser.CurrentLineNumber, found, expected)

    def _refuse_doctype(self, name: str, *_: object) -> None:
        raise self._malformed(f"a document type {quoted(name)}", "none; remove it")

    def _start(self, name: str, _: object) -> None:
        if self.depth > _TOKENS:
            raise self._malformed(f"<{name}> in a token", "text alone")
        if self.depth == _STRINGS:
            self.words, self.labels = [], []
        elif self.depth == _TOKENS:
            self.labels.append(name)
            self.text = ""
        self.depth += 1

    def _add_text(self, text: str) -> None:
        if self.depth > _TOKENS:
            self.text += text
        elif text.strip():
            raise self._malformed(f"{quoted(text.strip())} outside of a token", "a label for it")

    def _end(self, name: str) -> None:
        self.depth -= 1
        if self.depth == _TOKENS:
            if not self.text.strip():
                raise self._malformed(f"an empty <{name}>", "the text of a token")
            self.words.append(self.text.strip())
        elif self.depth == _STRINGS:
            if not self.words:
                raise self._malformed(f"<{name}> without tokens", "a labelled token in it")
            key = " ".join(self.words)
            self.sequences.append(LabelledSequence(self.words, {LAYER: self.labels}, key=key))
