"""Lines of Usenet FAQ files, each part of the head, a question, an answer or the tail.

Lines have 20 yes-or-no features after McCallum, Freitag and Pereira (2000): those of the line
itself that do not follow from the others. Features of the line before are left to a window of
[-1, 0].
"""

# No `from __future__ import annotations` here: configs are checked against the types below.
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from spacy.tokens import Doc
from spacy.util import registry

from spacy_treecrf.corpora.labelled_sequence import LabelledSequence, Splits
from spacy_treecrf.corpora.reading import malformed, quoted, read_lines

LAYER = "line"
_ORDINAL = (
    r"(?:\d+(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)\b"
)
_QUESTION_WORD = r"\b(?:who|what|when|where|which|why|how|whose|whom|is|are|can|could|do|does|did|"
_QUESTION_WORD += r"should|would|will|has|have)\b"
_PATTERNS = {
    "begins_with_number": r"\s*\d",
    "begins_with_ordinal": r"\s*" + _ORDINAL,
    "begins_with_punctuation": r"\s*[^\w\s]",
    "begins_with_question_word": r"\s*" + _QUESTION_WORD,
    "begins_with_subject": r"\s*subject:",
    "blank": r"\s*\Z",
    "contains_alphanum": r".*[^\W_]",
    "contains_bracketed_number": r".*\[\d+\]",
    "contains_http": r".*http",
    "contains_number": r".*\d",
    "contains_pipe": r".*\|",
    "contains_question_mark": r".*\?",
    "contains_question_word": r".*" + _QUESTION_WORD,
    "ends_with_question_mark": r".*\?\s*\Z",
    "indented": r"\s+\S",
    "indented_1_to_4": r"\s{1,4}\S",
    "indented_5_to_10": r"\s{5,10}\S",
}
_COMPILED = {name: re.compile(p, re.IGNORECASE | re.DOTALL) for name, p in _PATTERNS.items()}
_FIRST_LETTER = re.compile(r"[^\W\d_]")
FEATURES = (
    *_PATTERNS,
    "first_alpha_is_capitalized",
    "more_than_one_third_space",
    "shorter_than_30",
)


def line_features(line: str) -> dict[str, bool]:
    """The 20 features of a line."""
    line = line.rstrip("\r\n")
    found = {name: bool(pattern.match(line)) for name, pattern in _COMPILED.items()}
    letter = _FIRST_LETTER.search(line)
    found["first_alpha_is_capitalized"] = bool(letter and letter.group().isupper())
    found["more_than_one_third_space"] = 3 * sum(map(str.isspace, line)) > len(line)
    found["shorter_than_30"] = len(line) < 30
    return found


def read_faq(path: Path, number: int = 0) -> LabelledSequence:
    """The one sequence of a file that has `label<TAB>line` in each line.

    number: The place of the file among all files.
    """
    lines, labels = [], []
    for i, row in enumerate(read_lines(path), start=1):
        label, tab, line = row.partition("\t")
        if not tab or not label.strip():
            raise malformed(path, i, quoted(row), "a label, a tab, and a line that may be empty")
        labels.append(label.strip())
        lines.append(line)
    if not lines:
        raise ValueError(f"treecrf: {path} is empty; expected lines of label<TAB>line")
    found = [line_features(line) for line in lines]
    columns: dict[str, list[Any]] = {name: [row[name] for row in found] for name in FEATURES}
    return LabelledSequence(
        lines, {LAYER: labels}, columns, key=path.name, document=number, fold=number
    )


def leave_file_out(paths: Sequence[Path], number: int) -> Splits:
    """A split that trains on the other files and tests on this one, as in the papers."""
    sequences = [read_faq(path, i) for i, path in enumerate(paths)]
    if len(sequences) < 2 or not 0 <= number < len(sequences):
        raise ValueError(
            f"treecrf: split 'file{number}' of {len(sequences)} FAQ files; give two or more files, "
            "and a number from 0 on of the one to test on"
        )
    test = sequences.pop(number)
    return {"train": sequences, "dev": [], "test": [test]}


def make_line_features() -> Callable[[Doc], list[dict[str, bool]]]:
    """A function for the setting `function` of TokenFeatures, where tokens are lines."""
    return _features_of_tokens


def _features_of_tokens(doc: Doc) -> list[dict[str, bool]]:
    return [line_features(token.text) for token in doc]


registry.misc("spacy_treecrf.LineFeatures.v1", func=make_line_features)
