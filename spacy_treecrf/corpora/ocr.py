"""Handwritten words as pictures of letters: 16 x 8 pixels each, in ten folds."""

# No `from __future__ import annotations` here: configs are checked against the types below.
from collections.abc import Callable, Sequence
from pathlib import Path

from spacy.tokens import Doc
from spacy.util import registry

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence, Splits
from spacy_treecrf.corpora.reading import CorpusFile, malformed, quoted, read_lines

FILE = CorpusFile(
    "ocr/letters.tsv", "286109bd67305d29f6576e533057d0d62eb6538efb2487c16c25b11fc1424c20"
)
HEADER = ["word_id", "pos", "fold", "letter", "pixels_16x8_rowmajor"]
N_PIXELS = 128
N_COLUMNS = 8
N_FOLDS = 10
UNREAD = "?"  # the word of every position: the letter itself is the label


def read_ocr(path: Path) -> list[LabelledSequence]:
    expected = f"word_id, pos, fold, letter and {N_PIXELS} bits with tabs between"
    lines = read_lines(path)
    if not lines or lines[0].split("\t") != HEADER:
        raise malformed(path, 1, quoted(lines[0] if lines else ""), "\\t".join(HEADER))
    words: list[tuple[str, list[tuple[str, str, list[int]]]]] = []  # id; fold, letter, pixels
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split("\t")
        if len(fields) != 5:
            raise malformed(path, number, quoted(line), expected)
        word, position, fold, letter, pixels = fields
        if len(letter) != 1 or len(pixels) != N_PIXELS or not set(pixels) <= {"0", "1"}:
            raise malformed(path, number, quoted(line), expected)
        if not fold.isdecimal() or int(fold) >= N_FOLDS:
            raise malformed(path, number, f"fold {fold!r}", f"a fold from 0 to {N_FOLDS - 1}")
        if not words or words[-1][0] != word:
            words.append((word, []))
        letters = words[-1][1]
        if position != str(len(letters)):
            found = f"position {position} in word {word}"
            raise malformed(path, number, found, f"{len(letters)}: letters in order")
        if letters and letters[0][0] != fold:
            raise malformed(path, number, f"fold {fold}", f"{letters[0][0]}, the word's fold")
        letters.append((fold, letter, [int(bit) for bit in pixels]))
    return [
        LabelledSequence(
            [UNREAD] * len(letters),
            {"letter": [letter for _, letter, _ in letters]},
            {"pixels": [pixels for _, _, pixels in letters]},
            key=word,
            fold=int(letters[0][0]),
        )
        for word, letters in words
    ]


def leave_fold_out(sequences: list[LabelledSequence], fold: int) -> Splits:
    """A split that trains on the other folds and tests on this one, as in the papers."""
    return {
        "train": [sequence for sequence in sequences if sequence.fold != fold],
        "dev": [],
        "test": [sequence for sequence in sequences if sequence.fold == fold],
    }


def ink(pixels: Sequence[float]) -> dict[str, bool]:
    """A flag for each dark pixel, by row and column; trees split flags faster than numbers."""
    return {f"ink{i // N_COLUMNS}.{i % N_COLUMNS}": True for i, dark in enumerate(pixels) if dark}


def make_picture_features() -> Callable[[Doc], list[dict[str, bool]]]:
    """A function for the setting `function` of TokenFeatures, where tokens are pictures."""
    return _ink_of_tokens


def _ink_of_tokens(doc: Doc) -> list[dict[str, bool]]:
    pictures = [token._.pixels for token in doc]
    return [{} if pixels is None else ink(pixels) for pixels in pictures]


registry.misc("spacy_treecrf.PictureFeatures.v1", func=make_picture_features)
