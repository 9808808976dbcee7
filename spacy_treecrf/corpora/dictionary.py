"""Pronouncing dictionaries of one's own: a word and its phonemes in each line, with blanks between.

    photograph  F OW1 T AH0 G R AE2 F

That is the format of CMUdict, Phonetisaurus and Sequitur. Letters and phonemes may be any; of words
that come several times, also as "word(2)", the first pronunciation counts. CMUdict has comments
behind some pronunciations, as in "aalto AA1 L T OW2 # name, finnish": they are left out. A "#" is
a phoneme instead, as in CELEX's DISC, where all that follows it are phonemes of the file. Entries
of several words, which a tab tells from their phonemes, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from spacy_treecrf.corpora.aligner import JOINT, SILENT, fit_aligner
from spacy_treecrf.corpora.labelled_sequence import LabelledSequence
from spacy_treecrf.corpora.reading import malformed, quoted, read_lines

LAYER = "phoneme"
_VARIANT = re.compile(r"\(\d+\)$")
_COMMENT = "#"
_COMMENT_LINES = (";;;", _COMMENT)
_NUMBER = re.compile(r"\d*\.?\d+(?:[eE]-?\d+)?")
# A format is told from so many words, by what so large a share of them has.
FEWEST_WORDS = 10
NEARLY_ALL = 0.9

Row = tuple[int, str, list[str]]  # the number of a line, the line, and its fields


def read_dictionary(
    path: Path, report: Callable[[str], None] | None = None
) -> list[LabelledSequence]:
    """Words with a label for each letter; those that cannot be aligned are left out."""
    pairs = list(read_entries(path).items())
    if not pairs:
        raise ValueError(f"treecrf: {path} has no words; expected 'word  P1 P2 ...' in each line")
    aligned = fit_aligner(pairs, report=report).align(pairs)
    found = [
        LabelledSequence(list(spelling), {LAYER: labels}, key=spelling)
        for (spelling, _), labels in zip(pairs, aligned, strict=True)
        if labels is not None
    ]
    if report is not None:
        report(f"{len(found)} words aligned, {len(pairs) - len(found)} left out")
    if not found:
        raise ValueError(
            f"treecrf: {path}: none of its {len(pairs)} words can be aligned with their phonemes; "
            "expected words with two phonemes for a letter at most: look into the file"
        )
    return found


def read_entries(path: Path) -> dict[str, list[str]]:
    """The first pronunciation of each word, in lower case."""
    expected = f"a word and its phonemes, none of which is {SILENT!r} or has a {JOINT!r} in it"
    found: dict[str, list[str]] = {}
    every = (
        (number, line, _fields(line))
        for number, line in enumerate(read_lines(path), start=1)
        if line.strip() and not line.startswith(_COMMENT_LINES)
    )
    rows: list[Row] = [row for row in every if len(row[2][0].split()) == 1]
    _refuse_other_formats(path, rows)
    known = {phoneme for _, _, (_, *fields) in rows for phoneme in _before_comment(fields)}
    known.add(_COMMENT)  # a phoneme may stand twice in a word
    for number, line, (word, *fields) in rows:
        before = _before_comment(fields)
        phonemes = fields if known.issuperset(fields[len(before) + 1 :]) else before
        if not phonemes or any(p == SILENT or JOINT in p for p in phonemes):
            raise malformed(path, number, quoted(line), expected)
        found.setdefault(_VARIANT.sub("", word).lower(), phonemes)
    return found


def _fields(line: str) -> list[str]:
    """The word of a line, or all words that are before a tab, and the phonemes."""
    words, tab, phonemes = line.strip().partition("\t")
    return [words.strip(), *phonemes.split()] if tab else line.split()


def _refuse_other_formats(path: Path, rows: list[Row]) -> None:
    """Refuse what nearly all lines have in another format; a few may have it as their own."""
    for is_other, found, expected in OTHER_FORMATS:
        lines = [(number, line) for number, line, (word, *fields) in rows if is_other(word, fields)]
        if len(rows) >= FEWEST_WORDS and len(lines) >= NEARLY_ALL * len(rows):
            number, line = lines[0]
            found = f"{found}, as in nearly all lines: {quoted(line)}"
            raise malformed(path, number, found, expected)


def _has_comma(word: str, fields: list[str]) -> bool:
    return "," in word


def _has_probability(word: str, fields: list[str]) -> bool:
    """Whether numbers come first; where they also come last, they are names of phonemes."""
    return len(fields) > 1 and bool(_NUMBER.fullmatch(fields[0]) and not _NUMBER.match(fields[-1]))


def _is_in_one_piece(word: str, fields: list[str]) -> bool:
    return len(word) > 1 and len(_before_comment(fields)) == 1


# Whether a line is in another format, what was found then, and what was expected.
OTHER_FORMATS = (
    (
        _has_comma,
        "a comma in the word",
        "blanks between the word and its phonemes; replace the commas by blanks",
    ),
    (
        _has_probability,
        "a number before the phonemes",
        "phonemes right behind the word; take out the probabilities, which Kaldi's lexicons have",
    ),
    (
        _is_in_one_piece,
        "one phoneme of a word with several letters",
        "blanks between phonemes; set them apart",
    ),
)


def _before_comment(fields: list[str]) -> list[str]:
    return fields[: fields.index(_COMMENT)] if _COMMENT in fields else fields
