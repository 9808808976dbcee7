"""Templates: which features the columns of a file become, decided without a config."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from spacy_treecrf.columnar.files import ColumnFile, Row
from spacy_treecrf.storage.state_reader import StateReader

# How a column of the file is used.
KINDS = ("word", "letter", "value", "number", "skip")
LABEL = "label"
MAX_WINDOW = 50
EDGE = "<edge>"  # value of a position outside of the sequence
MISSING_NUMBERS = frozenset({"", "_", "?", "NA", "nan", "NaN"})

# The same features as in configs/chunk.cfg (words) and configs/hyphenate.cfg (letters).
WINDOWS = {"word": 2, "letter": 6, "value": 2, "number": 1}
PREFIXES = (2, 3, 4)
SUFFIXES = (1, 2, 3, 4)
SHAPE_WINDOW = 1
SPELLING = ".lower[0]"  # behind the number of a column of words: the feature of the word itself
NGRAMS = (2, 3)
NGRAM_WINDOW = 3


@dataclass(frozen=True)
class Template:
    """The meaning of each column of a file; it is stored with the model."""

    kinds: tuple[str, ...]  # one for each column of the file; exactly one is LABEL
    window: int | None = None  # positions on both sides; None: WINDOWS
    unlabelled: str | None = None  # what stands for a label where none is annotated

    @property
    def label_field(self) -> int:
        return self.kinds.index(LABEL)

    def word_column(self, option: str) -> int:
        """The number, from 1, of the first column of words, which an option is about."""
        if "word" not in self.kinds:
            raise ValueError(
                f"treecrf: no column of the training file holds words, which {option} is about; "
                f"name one to `train`, e.g. --columns 1=word, or leave {option} out"
            )
        return self.kinds.index("word") + 1

    @property
    def text_field(self) -> int:
        """The field that people read: the first of words or letters, else the first no label."""
        told = (i for i, kind in enumerate(self.kinds) if kind in ("word", "letter"))
        return next(told, 1 if self.label_field == 0 else 0)

    @property
    def n_fields(self) -> int:
        return len(self.kinds)

    def split(
        self, file: ColumnFile, *, need_labels: bool
    ) -> tuple[list[list[Row]], list[list[str | None]] | None]:
        """The rows without their label, and the labels; None if the file has no labels."""
        if file.n_fields == self.n_fields - 1 and not need_labels:
            return file.sequences, None
        if file.n_fields != self.n_fields:
            also = "" if need_labels else f" (or {self.n_fields - 1}, without the label)"
            raise ValueError(
                f"treecrf: {file.place(0, 0)}: expected {self.n_fields} columns{also}, as in the "
                f"training data, found {file.n_fields}; give the file the same columns"
            )
        at = self.label_field
        labels: list[list[str | None]] = []
        for s, rows in enumerate(file.sequences):
            own: list[str | None] = []
            for t, row in enumerate(rows):
                if not row[at]:
                    raise ValueError(
                        f"treecrf: {file.place(s, t)}: expected a label in column {at + 1}, found "
                        "nothing; label the token, or name what stands for 'not annotated' by "
                        "--unlabelled when you train"
                    )
                own.append(None if row[at] == self.unlabelled else row[at])
            labels.append(own)
        return [[row[:at] + row[at + 1 :] for row in rows] for rows in file.sequences], labels

    def features(
        self, sequences: Sequence[Sequence[Row]], place: Callable[[int, int], str]
    ) -> Iterator[list[dict[str, Any]]]:
        """The feature dicts of each sequence of rows without the label.

        place: A function that tells where a row comes from, for error messages.
        """
        kinds = [kind for kind in self.kinds if kind != LABEL]
        numbers = [i + 1 for i, kind in enumerate(self.kinds) if kind != LABEL]
        for s, rows in enumerate(sequences):
            items: list[dict[str, Any]] = [{} for _ in rows]
            for i, (kind, number) in enumerate(zip(kinds, numbers, strict=True)):
                values = [row[i] for row in rows]
                if kind == "number":
                    _window(
                        items, str(number), _floats(values, number, s, place), self._reach(kind)
                    )
                elif kind == "word":
                    _add_words(items, number, values, self._reach(kind))
                elif kind == "letter":
                    _add_letters(items, number, values, self._reach(kind))
                elif kind == "value":
                    _window(items, str(number), values, self._reach(kind), EDGE)
            yield items

    def _reach(self, kind: str) -> int:
        return WINDOWS[kind] if self.window is None else self.window

    def to_state(self) -> dict[str, Any]:
        return {"kinds": list(self.kinds), "window": self.window, "unlabelled": self.unlabelled}

    @classmethod
    def from_state(cls, reader: StateReader) -> Template:
        kinds = reader.strings("kinds")
        if set(kinds) - {*KINDS, LABEL} or kinds.count(LABEL) != 1:
            reader.fail("kinds", f"one label, and others among {', '.join(KINDS)}", str(kinds))
        window = None
        if not reader.is_none("window"):
            window = reader.integer("window", 0, MAX_WINDOW)
        unlabelled = None if reader.is_none("unlabelled") else reader.string("unlabelled")
        return cls(tuple(kinds), window, unlabelled)


def make_template(
    file: ColumnFile,
    *,
    label_column: int = -1,
    kinds: dict[int, str] | None = None,
    window: int | None = None,
    unlabelled: str | None = None,
) -> Template:
    """The template of a training file.

    kinds: Kinds of columns by their number, from 1. A kind that is not given is decided: the first
        column has letters if all its values are single characters, else words; others are values.
    """
    n = file.n_fields
    if n < 2:
        raise ValueError(
            f"treecrf: {file.place(0, 0)}: expected at least 2 columns, a token and its label, "
            f"found {n}"
        )
    at = _field_index(label_column, n, file.name)
    if window is not None and not 0 <= window <= MAX_WINDOW:
        raise ValueError(f"treecrf: window is {window}; use 0 to {MAX_WINDOW}")
    chosen = ["value"] * n
    first = 1 if at == 0 else 0
    single = all(len(row[first]) == 1 for rows in file.sequences for row in rows)
    chosen[first] = "letter" if single else "word"
    for number, kind in (kinds or {}).items():
        if not 1 <= number <= n or number - 1 == at:
            raise ValueError(
                f"treecrf: --columns names column {number}; {file.name} has {n} columns, and "
                f"column {at + 1} is the label"
            )
        chosen[number - 1] = kind
    chosen[at] = LABEL
    if all(kind in ("skip", LABEL) for kind in chosen):
        raise ValueError("treecrf: --columns skips every column; keep at least one")
    return Template(tuple(chosen), window, unlabelled)


def parse_kinds(text: str) -> dict[int, str]:
    """The kinds of columns in a text such as '2=number,3=skip', by number."""
    kinds = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        number, _, kind = part.partition("=")
        if not number.isdecimal() or kind not in KINDS:
            raise ValueError(
                f"treecrf: --columns has {part!r}; write the number of a column, from 1, and one "
                f"of {', '.join(KINDS)}, e.g. 2=number,3=skip"
            )
        kinds[int(number)] = kind
    return kinds


def _field_index(number: int, n: int, name: str) -> int:
    index = number - 1 if number > 0 else n + number
    if number == 0 or not 0 <= index < n:
        raise ValueError(
            f"treecrf: label column {number}: {name} has {n} columns; use 1 to {n}, or -1 for the "
            "last"
        )
    return index


def _window(
    items: list[dict[str, Any]],
    name: str,
    values: Sequence[Any],
    reach: int,
    outside: str | None = None,
    first: int | None = None,
) -> None:
    """Put the values at offsets from `first` (by default -reach) to `reach` into the items.

    outside: The value outside of the sequence; values that are None are left out.
    """
    n = len(values)
    for offset in range(-reach if first is None else first, reach + 1):
        key = f"{name}[{offset}]"
        for t, item in enumerate(items):
            value = values[t + offset] if 0 <= t + offset < n else outside
            if value is not None:
                item[key] = value


def _add_words(items: list[dict[str, Any]], number: int, words: list[str], reach: int) -> None:
    lower = [word.lower() for word in words]
    _window(items, f"{number}.word", words, 0)
    _window(items, f"{number}.lower", lower, reach, EDGE)
    _window(items, f"{number}.shape", list(map(word_shape, words)), min(reach, SHAPE_WINDOW))
    for n in PREFIXES:
        parts = [word[:n] if len(word) >= n else None for word in lower]
        _window(items, f"{number}.prefix{n}", parts, 0)
    for n in SUFFIXES:
        parts = [word[-n:] if len(word) >= n else None for word in lower]
        _window(items, f"{number}.suffix{n}", parts, 0)


def _add_letters(items: list[dict[str, Any]], number: int, letters: list[str], reach: int) -> None:
    lower = [letter.lower() for letter in letters]
    _window(items, f"{number}.letter", lower, reach, EDGE)
    if lower != letters:
        _window(items, f"{number}.cased", letters, 0)
    for n in NGRAMS:
        grams = [
            "".join(lower[t : t + n]) if t + n <= len(lower) else None for t in range(len(lower))
        ]
        _window(items, f"{number}.gram{n}", grams, min(reach, NGRAM_WINDOW))


def _floats(
    values: list[str], number: int, sequence: int, place: Callable[[int, int], str]
) -> list[float | None]:
    found: list[float | None] = []
    for t, value in enumerate(values):
        try:
            amount = None if value in MISSING_NUMBERS else float(value)
        except ValueError:
            amount = math.inf
        if amount is not None and not math.isfinite(amount):
            raise ValueError(
                f"treecrf: {place(sequence, t)}: expected a number in column {number}, found "
                f"{value!r}; correct it, write _ where it is missing, or use "
                f"--columns {number}=value"
            )
        found.append(amount)
    return found


@lru_cache(maxsize=1 << 16)
def word_shape(word: str) -> str:
    """The shape of a word as in spaCy: X, x and d for capitals, letters, digits; runs up to 4."""
    shape: list[str] = []
    run = 0
    for char in word:
        if char.isdigit():
            kind = "d"
        elif char.isalpha():
            kind = "X" if char.isupper() else "x"
        else:
            kind = char
        run = run + 1 if shape and kind == shape[-1] else 1
        if run <= 4:
            shape.append(kind)
    return "".join(shape)
