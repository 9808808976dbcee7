"""Moby hyphenation: whether a hyphen may follow each letter of an English word."""

from __future__ import annotations

from pathlib import Path

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence
from spacy_treecrf.corpora.reading import CorpusFile, malformed, quoted, read_lines

FILE = CorpusFile(
    "moby_hyph/mhyph.txt", "5cf3ce87be48ae0c2f4f0a574998d6e75086591b7f0ca6367f71746eb6e25aa3"
)
SEPARATOR = b"\xa5".decode("mac-roman")
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")


def read_moby(path: Path) -> list[LabelledSequence]:
    """Words in plain lower-case letters; names, phrases and accents are left out."""
    lines = read_lines(path, "mac-roman")
    if not any(SEPARATOR in line for line in lines):
        raise ValueError(
            f"treecrf: {path} has no byte 0xA5, which separates syllables; expected the Moby "
            "Hyphenator in Mac Roman as published, not converted to another encoding"
        )
    sequences = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise malformed(path, number, "an empty line", "a word with 0xA5 between syllables")
        # One entry has a separator behind its last syllable.
        parts = line.strip().removesuffix(SEPARATOR).split(SEPARATOR)
        if not all(parts):
            raise malformed(path, number, quoted(line), "letters between separators")
        word = "".join(parts)
        if set(word) <= LETTERS:
            labels = [
                "yes" if i == len(part) - 1 else "no" for part in parts for i in range(len(part))
            ]
            labels[-1] = "no"
            sequences.append(LabelledSequence(list(word), {"hyphen": labels}, key=word))
    return sequences
