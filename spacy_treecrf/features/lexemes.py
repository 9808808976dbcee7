"""Columns from word forms alone: attributes, affixes, regular expressions, clusters, vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.lexeme import Lexeme
from spacy.vocab import Vocab

from spacy_treecrf.features.batch import ORTH, Batch
from spacy_treecrf.features.clusters import Clusters
from spacy_treecrf.features.patterns import WordPattern
from spacy_treecrf.features.source import (
    KnownValues,
    NumberedValues,
    Reading,
    Source,
    Texts,
    VectorRows,
    Window,
)
from spacy_treecrf.features.vectors import Vectors
from spacy_treecrf.storage.state_reader import StateReader

PRESENT = "True"  # value of a flag that holds; one that does not is absent
TEXT_ATTRS = ("ORTH", "LOWER", "SHAPE", "PREFIX", "SUFFIX", "LANG")
FLAG_ATTRS = (
    "IS_ALPHA",
    "IS_ASCII",
    "IS_BRACKET",
    "IS_CURRENCY",
    "IS_DIGIT",
    "IS_LEFT_PUNCT",
    "IS_LOWER",
    "IS_OOV",
    "IS_PUNCT",
    "IS_QUOTE",
    "IS_RIGHT_PUNCT",
    "IS_SPACE",
    "IS_STOP",
    "IS_TITLE",
    "IS_UPPER",
    "LIKE_EMAIL",
    "LIKE_NUM",
    "LIKE_URL",
)
LEXEME_ATTRS = (*TEXT_ATTRS, *FLAG_ATTRS, "LENGTH")


class LexemeSource(Source):
    """A source of columns that depend on the text of a token alone."""

    name = "lexemes"
    attrs = (ORTH,)

    def __init__(
        self,
        attrs: dict[str, Window],
        prefixes: Sequence[int] = (),
        suffixes: Sequence[int] = (),
        affix_window: Window = (0,),
        patterns: dict[str, WordPattern] | None = None,
        pattern_window: Window = (0,),
        clusters: Clusters | None = None,
        vectors: Vectors | None = None,
    ) -> None:
        self.clusters = clusters
        self.vectors = vectors
        self.learns_from_tokens = vectors is not None and vectors.kind == "indicators"
        self.windows: dict[str, Window] = {}
        self._of_lexeme: dict[str, Callable[[Lexeme], str | None]] = {}
        self._of_text: dict[str, Callable[[str], str | None]] = {}
        self._of_lower: dict[str, Callable[[str], str | None]] = {}
        self._affixes: dict[str, tuple[int, slice]] = {}  # the length, and which part of the word
        for attr, window in attrs.items():
            column = attr.lower()
            self.windows[column] = window
            if attr == "ORTH":
                self._of_text[column] = str
            elif attr == "LOWER":
                self._of_lower[column] = str
            else:
                self._of_lexeme[column] = _reader(attr)
        for n in prefixes:
            self.windows[f"prefix{n}"] = affix_window
            self._of_lower[f"prefix{n}"] = partial(_prefix, n)
            self._affixes[f"prefix{n}"] = n, slice(n)
        for n in suffixes:
            self.windows[f"suffix{n}"] = affix_window
            self._of_lower[f"suffix{n}"] = partial(_suffix, n)
            self._affixes[f"suffix{n}"] = n, slice(-n, None)
        for name, pattern in (patterns or {}).items():
            self.windows[f"pattern.{name}"] = pattern_window
            self._of_text[f"pattern.{name}"] = partial(_flag, pattern)

    def window_of(self, column: str) -> Window | None:
        window = self.windows.get(column)
        if window is None and self.clusters is not None:
            window = self.clusters.window_of(column)
        if window is None and self.vectors is not None:
            window = self.vectors.window_of(column)
        return window

    def keys(self, batch: Batch) -> npt.NDArray[np.uint64]:
        return batch.array(ORTH)

    def read(self, batch: Batch, positions: npt.NDArray[np.int64]) -> Reading:
        keys = batch.array(ORTH)[positions]
        texts = batch.strings(keys)
        lowers = [text.lower() for text in texts]
        columns: dict[str, Texts] = {}
        lexemes: list[Lexeme] = []
        if self._of_lexeme:
            vocab = batch.vocab
            lexemes = [vocab[key] for key in keys.tolist()]
        for column in self.windows:  # in the order of the config
            if column in self._of_lower:
                columns[column] = list(map(self._of_lower[column], lowers))
            elif column in self._of_text:
                columns[column] = list(map(self._of_text[column], texts))
            else:
                columns[column] = list(map(self._of_lexeme[column], lexemes))
        numbers: dict[str, npt.NDArray[np.float64]] = {}
        if self.clusters is not None:
            columns.update(self.clusters.read(keys, lowers))
        if self.vectors is not None:
            reading = self.vectors.read(batch.vocab, keys, texts, lowers)
            columns.update(reading.texts)
            numbers = reading.numbers
        return Reading(columns, numbers)

    def numbered(
        self, batch: Batch, positions: npt.NDArray[np.int64], known: KnownValues
    ) -> NumberedValues:
        """Each word with as few calls as Python needs: new words take most of the time here."""
        if self.vectors is not None and self.vectors.kind != "numeric":
            return super().numbered(batch, positions, known)
        keys = batch.array(ORTH)[positions]
        texts = batch.strings(keys)
        lowers = [text.lower() for text in texts]
        values = self.numbers_of_texts(batch.vocab, keys.tolist(), texts, lowers, known)
        if self.clusters is not None:
            values += self._numbered_clusters(self.clusters.paths_of(keys, lowers), known)
        found = np.empty((len(known.texts), len(keys)), np.int64)
        found[self.column_order(known)] = np.array(values, np.int64).reshape(found.shape)
        return NumberedValues(found, self._numbers(batch, keys, texts, lowers, known))

    def numbers_of_texts(
        self, vocab: Vocab, keys: list[int], texts: list[str], lowers: list[str], known: KnownValues
    ) -> list[int]:
        """The numbers of words' values in all columns but clusters, see `column_order`."""
        columns = known.memo.get("columns")
        if columns is None:
            columns = known.memo["columns"] = self._columns(known)
        affixes, of_lower, of_text, of_lexeme = columns
        # One list for all affixes: for a few words, a list takes longer to begin than to fill.
        values = [
            get(lower[part], 0) if len(lower) >= n else 0
            for get, n, part in affixes
            for lower in lowers
        ]
        for get in of_lower:
            values += [get(lower, 0) for lower in lowers]
        for get, read in of_text:
            values += [get(read(text), 0) for text in texts]
        if of_lexeme:
            lexemes = [vocab[key] for key in keys]
            for get, read in of_lexeme:
                values += [get(read(lexeme), 0) for lexeme in lexemes]
        return values

    def column_order(self, known: KnownValues) -> npt.NDArray[np.int64]:
        """Where the columns are in `known`, in the order in which `numbers_of_texts` has them.

        Affixes, the lower-case form, other texts, attributes of lexemes; then clusters, which it
        does not have.
        """
        order = known.memo.get("order")
        if order is None:
            kinds = self._affixes, {"lower"}, self._of_text, self._of_lexeme
            names = [name for kind in kinds for name in kind if name in known.texts]
            names += [name for name in known.texts if name not in self.windows]
            places = {name: place for place, name in enumerate(known.texts)}
            order = known.memo["order"] = np.array([places[name] for name in names], np.int64)
        return order

    def _columns(self, known: KnownValues) -> tuple[list[Any], ...]:
        """How the numbers of affixes, lower-case forms, other texts and lexemes are found."""
        get = {name: numbers.get for name, numbers in known.texts.items()}
        return (
            [(get[name], *own) for name, own in self._affixes.items() if name in get],
            [get["lower"]] if "lower" in get else [],
            [(get[name], read) for name, read in self._of_text.items() if name in get],
            [(get[name], read) for name, read in self._of_lexeme.items() if name in get],
        )

    def _numbered_clusters(self, paths: list[int], known: KnownValues) -> list[int]:
        """The number of the cluster of each path, column by column; few paths are different."""
        clusters = self.clusters
        assert clusters is not None
        if "clusters" not in known.memo:
            columns = [column for column in known.texts if column in clusters.columns]
            known.memo["clusters"] = columns, {}
        columns, of_path = known.memo["clusters"]
        for path in paths:
            if path not in of_path:
                of_path[path] = [
                    known.texts[column].get(clusters.text(column, path), 0) for column in columns
                ]
        of_words = [of_path[path] for path in paths]
        return [own[c] for c in range(len(columns)) for own in of_words]

    def _numbers(
        self,
        batch: Batch,
        keys: npt.NDArray[np.uint64],
        texts: list[str],
        lowers: list[str],
        known: KnownValues,
    ) -> npt.NDArray[np.float64] | VectorRows:
        """The dimensions of the words' vectors that are known: (n_numbers, n_words), or where."""
        if self.vectors is None or not known.numbers:
            return np.full((len(known.numbers), len(keys)), np.nan)
        dimensions = known.memo.get("dimensions")
        if dimensions is None:  # once for these columns and vectors, see `stamp`
            self.vectors.check(batch.vocab)
            dimensions = known.memo["dimensions"] = self.dimensions(known)
        rows = self.vectors.rows_of(batch.vocab, keys, lowers)
        if rows is not None:
            return VectorRows(rows[0], np.array(rows[1]), dimensions)
        values = self.vectors.checked_values(batch.vocab, keys, texts, lowers)
        return np.ascontiguousarray(values[:, dimensions].T)

    def dimensions(self, known: KnownValues) -> npt.NDArray[np.int64]:
        """The dimension of vectors that each column of numbers is."""
        return np.array([int(name.removeprefix("vector")) for name in known.numbers], np.int64)

    def stamp(self, vocab: Vocab) -> Any:
        """It changes with the table of vectors, but not with a vector in it, or a key's row."""
        if self.vectors is None and "is_oov" not in self.windows:
            return None
        # The vectors are held, so that others that replace them cannot get the same id.
        self._stamped = vectors = vocab.vectors
        data = vectors.data
        place = data.__array_interface__["data"] if isinstance(data, np.ndarray) else id(data)
        return id(vectors), place, vectors.shape, vectors.n_keys

    def __getstate__(self) -> dict[str, Any]:
        """What a copy gets: no vectors, which belong to a vocab."""
        return {name: value for name, value in self.__dict__.items() if name != "_stamped"}

    def check(self, vocab: Vocab) -> None:
        if self.clusters is not None:
            self.clusters.check(vocab)
        if self.vectors is not None:
            self.vectors.check(vocab)

    def prepare(self, batch: Batch) -> None:
        if self.vectors is not None and batch.n_tokens:
            self.vectors.prepare(batch)

    def to_state(self) -> dict[str, Any]:
        state: dict[str, Any] = {}
        if self.clusters is not None:
            state["clusters"] = self.clusters.to_state()
        if self.vectors is not None:
            state["vectors"] = self.vectors.to_state()
        return state

    def from_state(self, reader: StateReader) -> None:
        if self.clusters is not None:
            self.clusters.from_state(reader.nested("clusters"))
        if self.vectors is not None:
            self.vectors.from_state(reader.nested("vectors"))


def _reader(attr: str) -> Callable[[Lexeme], str | None]:
    """A function that reads an attribute of a lexeme."""
    if attr in TEXT_ATTRS:
        return partial(_text_of, attrgetter(attr.lower() + "_"))
    if attr == "LENGTH":
        return _length
    return partial(_flag_of, attrgetter(attr.lower()))


def _text_of(get: Callable[[Lexeme], str], lexeme: Lexeme) -> str | None:
    return get(lexeme) or None


def _flag_of(get: Callable[[Lexeme], bool], lexeme: Lexeme) -> str | None:
    return PRESENT if get(lexeme) else None


def _length(lexeme: Lexeme) -> str:
    return str(len(lexeme.orth_))


def _prefix(n: int, text: str) -> str | None:
    return text[:n] if len(text) >= n else None


def _suffix(n: int, text: str) -> str | None:
    return text[-n:] if len(text) >= n else None


def _flag(pattern: WordPattern, text: str) -> str | None:
    return PRESENT if pattern.found_in(text) else None
