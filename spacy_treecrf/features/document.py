"""What the rest of the document says about a word."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.features.batch import ORTH, Batch
from spacy_treecrf.features.source import Reading, Source, Window
from spacy_treecrf.features.words import WordTable, grown

CASES = ("", "lower", "title", "upper", "mixed")  # by the numbers of engine.repeats
MOST_REPEATS = 3
KINDS = ("case", "repeated", "neighbours", "heading")
MANY_WORDS = 2**18
# columns by the rows of engine.repeats.document_keys
COLUMNS = ("case", "repeated", "before", "after", "heading")


class DocumentWords:
    """Finds the keys of all columns for a batch, once for all sources that want them."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._words = WordTable(2, np.int32)  # columns: id of the lower-case form, case
        self._lower: dict[str, int] = {}
        self._counts = np.empty((0, len(CASES)), np.int32)
        self._first = np.empty((0, 2), np.int64)

    def keys(self, batch: Batch) -> npt.NDArray[np.uint64]:
        """shape: (len(COLUMNS), n_tokens)"""
        if self not in batch.memo:
            batch.memo[self] = self._find(batch)
        keys: npt.NDArray[np.uint64] = batch.memo[self]
        return keys

    def _find(self, batch: Batch) -> npt.NDArray[np.uint64]:
        from spacy_treecrf.engine.repeats import NOWHERE, document_keys

        if len(self._lower) > MANY_WORDS:
            self._forget()
        orth = batch.array(ORTH)
        words = self._words.rows(orth, lambda new: self._describe(batch.strings(new)))
        if len(self._lower) > len(self._counts):
            self._counts = grown(self._counts, len(self._lower))
            self._first = grown(self._first, len(self._lower))
            self._counts[:] = 0
            self._first[:] = NOWHERE
        keys = np.empty((len(COLUMNS), batch.n_tokens), np.uint64)
        document_keys(
            orth,
            words,
            self._words.table,
            batch.offsets,
            batch.doc_offsets,
            self._counts,
            self._first,
            MOST_REPEATS,
            keys,
        )
        return keys

    def _describe(self, texts: list[str]) -> npt.NDArray[np.int32]:
        ids = self._lower
        rows = [(ids.setdefault(text.lower(), len(ids)), case_of(text)) for text in texts]
        return np.array(rows, np.int32).reshape(-1, 2)


class DocumentColumn(Source):
    """One of the columns; key 0 is nothing."""

    attrs = (ORTH,)

    def __init__(self, kind: str, window: Window, words: DocumentWords) -> None:
        self.kind = kind
        self.name = self.column = f"document.{kind}"
        self.row = COLUMNS.index(kind)
        self.window = window
        self.words = words

    def window_of(self, column: str) -> Window | None:
        return self.window if column == self.column else None

    def keys(self, batch: Batch) -> npt.NDArray[np.uint64]:
        keys: npt.NDArray[np.uint64] = self.words.keys(batch)[self.row]
        return keys

    def read(self, batch: Batch, positions: npt.NDArray[np.int64]) -> Reading:
        keys = self.keys(batch)[positions]
        if self.kind in ("before", "after"):
            texts = [text.lower() for text in batch.strings(keys)]
        else:
            texts = [self._text(key) for key in keys.tolist()]
        return Reading({self.column: [text or None for text in texts]})

    def _text(self, key: int) -> str:
        if self.kind == "case":
            return "+".join(name for c, name in enumerate(CASES) if key >> c & 1)
        if self.kind == "repeated":
            return f"{key}+" if key == MOST_REPEATS else str(key or "")
        return CASES[key]


def document_sources(kinds: list[str], window: Window) -> list[Source]:
    words = DocumentWords()
    sources: list[Source] = []
    for kind in kinds:
        for column in ("before", "after") if kind == "neighbours" else (kind,):
            # a heading is the same all over a sequence
            seen_at = (0,) if column == "heading" else window
            sources.append(DocumentColumn(column, seen_at, words))
    return sources


def case_of(text: str) -> int:
    """Index of CASES."""
    if text.islower():
        return 1
    if text.isupper():
        # a single capital is how title case of one letter looks as well
        return 3 if sum(map(str.isalpha, text)) > 1 else 2
    if text.istitle():
        return 2
    return 4 if text.lower() != text.upper() else 0
