"""Columns from the rest of the document: how and where a word occurs elsewhere in it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spacy_treecrf.features.batch import ORTH, Batch
from spacy_treecrf.features.source import Reading, Source, Window
from spacy_treecrf.features.words import WordTable, grown

CASES = ("", "lower", "title", "upper", "mixed")  # by the numbers of kernels.repeats
MOST_REPEATS = 3
RUN_EDGE = 1  # kernels.capital_runs.EDGE; importing it here would load numba
KINDS = ("case", "repeated", "neighbours", "heading", "runs", "opening")
MANY_WORDS = 2**16
# In the order of the rows of kernels.repeats.document_keys, then of kernels.capital_runs.run_keys.
REPEATS = ("case", "repeated", "before", "after", "heading")
RUNS = ("run_first", "run_last", "run_before", "run_after", "run_place")
COLUMNS = (*REPEATS, *RUNS, "opening")
COLUMNS_OF = {"neighbours": ("before", "after"), "runs": RUNS}
WORDS = ("before", "after", "run_first", "run_last", "run_before", "run_after", "opening")
# Columns that are the same all over a sequence or document have no window.
EVERYWHERE = ("heading", "opening")


class DocumentWords:
    """The keys of all document columns of a batch, found once for all sources that want them."""

    def __init__(self) -> None:
        self._begin()

    def forget(self, most: int) -> None:
        """Begin anew if more than `most` words are known."""
        if len(self._words) > most:
            self._begin()

    def _begin(self) -> None:
        self._words = WordTable(2, np.int32)  # columns: id of the lower-case form, case
        self._lower: dict[str, int] = {}
        self._counts = np.empty((0, len(CASES)), np.int32)
        self._first = np.empty((0, 2), np.int64)
        self._best_run = np.empty((0, 2), np.int64)

    def keys(self, batch: Batch) -> npt.NDArray[np.uint64]:
        """The key of every token in every column; 0 is nothing. shape: (len(COLUMNS), n_tokens)"""
        return self._found(batch)[0]

    def has_values(self, batch: Batch, row: int) -> bool:
        """Whether any token has something in a column."""
        return self._found(batch)[1][row]

    def _found(self, batch: Batch) -> tuple[npt.NDArray[np.uint64], list[bool]]:
        if self not in batch.memo:
            keys = self._find(batch)
            batch.memo[self] = keys, np.logical_or.reduce(keys, axis=1).tolist()
        found: tuple[npt.NDArray[np.uint64], list[bool]] = batch.memo[self]
        return found

    def _find(self, batch: Batch) -> npt.NDArray[np.uint64]:
        from spacy_treecrf.features.kernels.capital_runs import run_keys
        from spacy_treecrf.features.kernels.repeats import HEADING, NOWHERE, Tokens, document_keys

        self.forget(MANY_WORDS)
        orth = batch.array(ORTH)
        words = self._words.rows(orth, lambda new: self._describe(batch.strings(new)))
        if len(self._lower) > len(self._counts):
            self._counts = grown(self._counts, len(self._lower))
            self._first = grown(self._first, len(self._lower))
            self._best_run = grown(self._best_run, len(self._lower))
            self._counts[:] = 0
            self._first[:] = NOWHERE
            self._best_run[:] = NOWHERE
        keys = np.empty((len(COLUMNS), batch.n_tokens), np.uint64)
        tokens = Tokens(orth, words, self._words.table, batch.offsets, batch.doc_offsets)
        document_keys(tokens, self._counts, self._first, MOST_REPEATS, keys[: len(REPEATS)])
        run_keys(tokens, keys[HEADING], self._best_run, keys[len(REPEATS) : -1])
        if len(batch.docs) == 1:
            keys[-1] = orth[0]
        else:
            lengths = np.diff(batch.doc_offsets)
            keys[-1] = np.repeat(orth[batch.doc_offsets[:-1][lengths > 0]], lengths[lengths > 0])
        return keys

    def _describe(self, texts: list[str]) -> npt.NDArray[np.int32]:
        ids = self._lower
        rows = [(ids.setdefault(text.lower(), len(ids)), case_of(text)) for text in texts]
        return np.array(rows, np.int32).reshape(-1, 2)


class DocumentColumn(Source):
    """A source of one document column; key 0 is nothing."""

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

    def is_empty(self, batch: Batch) -> bool:
        return self.window == (0,) and not self.words.has_values(batch, self.row)

    def read(self, batch: Batch, positions: npt.NDArray[np.int64]) -> Reading:
        keys = self.keys(batch)[positions]
        if self.kind in WORDS:
            at_edge = keys == RUN_EDGE
            texts = [text.lower() for text in batch.strings(np.where(at_edge, 0, keys))]
            texts = ["<edge>" if edge else text for text, edge in zip(texts, at_edge, strict=True)]
        else:
            texts = [self._text(key) for key in keys.tolist()]
        return Reading({self.column: [text or None for text in texts]})

    def forget(self, most: int) -> None:
        self.words.forget(most)

    def _text(self, key: int) -> str:
        if self.kind == "case":
            return "+".join(name for c, name in enumerate(CASES) if key >> c & 1)
        if self.kind == "repeated":
            return f"{key}+" if key == MOST_REPEATS else str(key or "")
        if self.kind == "run_place":
            return f"{key % 8}/{key // 8}" if key else ""
        return CASES[key]


def document_sources(kinds: list[str], window: Window) -> list[Source]:
    words = DocumentWords()
    sources: list[Source] = []
    for kind in kinds:
        for column in COLUMNS_OF.get(kind, (kind,)):
            seen_at = (0,) if column in EVERYWHERE else window
            sources.append(DocumentColumn(column, seen_at, words))
    return sources


def case_of(text: str) -> int:
    """The case of a word, as an index of CASES."""
    if text.islower():
        return 1
    if text.isupper():
        # A single capital is also how a word of one letter looks in title case.
        return 3 if sum(map(str.isalpha, text)) > 1 else 2
    if text.istitle():
        return 2
    return 4 if text.lower() != text.upper() else 0
