"""Columns from the rest of the document: how and where a word occurs elsewhere in it."""

from __future__ import annotations

from operator import is_
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.features.batch import ORTH, Batch
from spacy_treecrf.features.source import (
    KnownValues,
    NumberedValues,
    Reading,
    Source,
    Window,
)
from spacy_treecrf.features.words import WordTable, grown

Keys = npt.NDArray[np.uint64]

NO_NUMBERS = np.empty((0, 0))

CASES = ("", "lower", "title", "upper", "mixed")  # by the numbers of kernels.repeats
MOST_REPEATS = 3
NOWHERE = -1  # kernels.repeats.NOWHERE
UNKNOWN = -1  # kernels.document_keys.UNKNOWN
RUN_EDGE = 1  # kernels.capital_runs.EDGE; importing it here would load numba
KINDS = ("case", "repeated", "neighbours", "heading", "runs", "opening")
MANY_WORDS = 2**15
# In the order of the rows of kernels.repeats.repeat_keys, and of kernels.capital_runs.run_keys.
REPEATS = ("case", "repeated", "before", "after")
RUNS = ("run_first", "run_last", "run_before", "run_after", "run_place")
COLUMNS_OF = {"neighbours": ("before", "after"), "runs": RUNS}
WORDS = ("before", "after", "run_first", "run_last", "run_before", "run_after", "opening")
# Columns that are the same all over a sequence or document have no window.
EVERYWHERE = ("heading", "opening")
ALL = (*REPEATS, *RUNS, *EVERYWHERE)  # in the order of kernels.document_keys
ROW_OF = {column: row for row, column in enumerate(ALL)}


class DocumentWords:
    """The keys of all document columns of a batch, found once for all sources that want them.

    wanted: The columns of these sources.
    """

    def __init__(self) -> None:
        self.wanted: set[str] = set()
        self._begin()

    def forget(self, most: int) -> None:
        """Begin anew if more than `most` words are known."""
        if len(self._words) > most:
            self._begin()

    def __getstate__(self) -> dict[str, Any]:
        """What a copy gets: no addresses in the memory of this one."""
        return {**self.__dict__, "_listed": None}

    def _begin(self) -> None:
        self._words = WordTable(2, np.int32)  # columns: id of the lower-case form, case
        self._lower: dict[str, int] = {}
        self._counts = np.empty((0, len(CASES)), np.int32)
        self._first = np.empty((0, 2), np.int64)
        self._best_run = np.empty((0, 2), np.int64)
        self._listed: _Listed | None = None
        self._had_new = False  # whether the last few tokens had new words

    def few(self, batch: Batch) -> _FewKeys | None:
        """The keys of all columns at once; None where they are found one by one."""
        found = batch.memo.get(self) or self._found(batch)
        return found if type(found) is _FewKeys else None

    def keys(self, batch: Batch, column: str) -> Keys:
        """The key of every token in a column; 0 is nothing. shape: (n_tokens,)"""
        return (batch.memo.get(self) or self._found(batch)).keys(column)

    def has_values(self, batch: Batch, column: str) -> bool:
        """Whether any token has something in a column."""
        return (batch.memo.get(self) or self._found(batch)).has_values(column)

    def _found(self, batch: Batch) -> _BatchKeys | _FewKeys:
        found: _BatchKeys | _FewKeys | None = batch.memo.get(self)
        if found is None:
            found = batch.memo[self] = self._find(batch)
        return found

    def _find(self, batch: Batch) -> _BatchKeys | _FewKeys:
        self.forget(MANY_WORDS)
        if batch.few and self.wanted.issuperset(ALL):
            return self._find_few(batch)
        self._listed = None  # words may be added, and arrays grow
        words, table, *scratch = self._rows(batch), self._words.table, *self._scratch()
        return _BatchKeys(batch, words, table, *scratch)

    def _find_few(self, batch: Batch) -> _FewKeys:
        listed = self._listed
        if listed is not None and not self._had_new:  # where words were new, some will be again
            found = listed.find(batch)
            if found is not None:
                return found
        n_before = len(self._words)
        self._rows(batch)
        self._had_new = len(self._words) > n_before
        if listed is None or not listed.is_of(self._words, self._scratch()):
            listed = self._listed = _Listed(self._words, self._scratch())
        found = listed.find(batch)
        assert found is not None
        return found

    def _scratch(self) -> tuple[npt.NDArray[Any], ...]:
        return self._counts, self._first, self._best_run

    def _rows(self, batch: Batch) -> npt.NDArray[np.int32]:
        """The row of each token's word in the table, which gets new words, and scratch for them."""
        try:
            return self._found_rows(batch)
        except BaseException:
            self._begin()  # words may have been left without their rows, or without scratch
            raise

    def _found_rows(self, batch: Batch) -> npt.NDArray[np.int32]:
        words = self._words.rows(batch.array(ORTH), lambda new: self._describe(batch.strings(new)))
        if len(self._lower) > len(self._counts):
            self._counts = grown(self._counts, len(self._lower))
            self._first = grown(self._first, len(self._lower))
            self._best_run = grown(self._best_run, len(self._lower))
            self._counts[:] = 0
            self._first[:] = NOWHERE
            self._best_run[:] = NOWHERE
        return words

    def _describe(self, texts: list[str]) -> npt.NDArray[np.int32]:
        ids = self._lower
        rows = [(ids.setdefault(text.lower(), len(ids)), case_of(text)) for text in texts]
        return np.array(rows, np.int32).reshape(-1, 2)


class _Listed:
    """A table of words, and scratch, listed for a kernel that finds all keys of few tokens."""

    def __init__(self, words: WordTable, scratch: tuple[npt.NDArray[Any], ...]) -> None:
        from spacy_treecrf.engine.listed_arrays import listed_arrays
        from spacy_treecrf.features.kernels.document_keys import document_keys

        self._find = document_keys
        rows, self._kept = listed_arrays([*words.arrays(), *scratch])
        self._listed = np.array(rows, np.int64)

    def is_of(self, words: WordTable, scratch: tuple[npt.NDArray[Any], ...]) -> bool:
        """Whether these arrays are the ones that are listed."""
        return all(map(is_, self._kept, (*words.arrays(), *scratch)))

    def find(self, batch: Batch) -> _FewKeys | None:
        """The keys of all columns; None if the table does not have a word."""
        keys = np.empty((len(ALL), batch.n_tokens), np.uint64)
        tokens = batch.array(ORTH), batch.offsets, batch.doc_offsets
        bits = self._find(self._listed, *tokens, MOST_REPEATS, keys)
        return None if bits == UNKNOWN else _FewKeys(keys, bits)


class _FewKeys:
    """The keys of all document columns of few tokens; see `_BatchKeys`.

    table: (len(ALL), n_tokens). bits: One for each of ALL, whether any token has something there.
    """

    def __init__(self, table: Keys, bits: int) -> None:
        self.table, self.bits = table, bits

    def keys(self, column: str) -> Keys:
        keys: Keys = self.table[ROW_OF[column]]
        return keys

    def has_values(self, column: str) -> bool:
        return bool(self.bits >> ROW_OF[column] & 1)


class _BatchKeys:
    """The keys of the document columns of one batch, found when they are first asked for.

    Columns that a model does not have cost nothing, and their kernels are not compiled.

    words: of each token, its row of `table`: id of the lower-case form, and case.
    counts, first, best_run: scratch of the kernels, one row for each lower-case form.
    """

    def __init__(
        self,
        batch: Batch,
        words: npt.NDArray[np.int32],
        table: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int32],
        first: npt.NDArray[np.int64],
        best_run: npt.NDArray[np.int64],
    ) -> None:
        from spacy_treecrf.features.kernels.repeats import Tokens

        self._n_docs = len(batch.docs)
        self._tokens = Tokens(batch.array(ORTH), words, table, batch.offsets, batch.doc_offsets)
        self._counts, self._first, self._best_run = counts, first, best_run
        self._keys: dict[str, Keys] = {}
        self._has_values: dict[str, bool] = {}
        self._bounds: npt.NDArray[np.int64] | None = None  # of the sequence of each token

    def keys(self, column: str) -> Keys:
        if column not in self._keys:
            self._find(column)
        return self._keys[column]

    def has_values(self, column: str) -> bool:
        if column not in self._has_values:
            self._find(column)
        return self._has_values[column]

    def _find(self, column: str) -> None:
        if column in REPEATS:
            self._keep(REPEATS, self._repeats())
        elif column in RUNS:
            self._keep(RUNS, self._runs())
        elif column == "heading":
            self._sequence_bounds()
        else:
            self._keep((column,), self._openings()[None])

    def _keep(self, columns: tuple[str, ...], keys: Keys) -> None:
        """Keep the keys (len(columns), n_tokens) of some columns."""
        self._keys.update(zip(columns, keys, strict=True))
        has_values = np.logical_or.reduce(keys, axis=1).tolist()
        self._has_values.update(zip(columns, has_values, strict=True))

    def _sequence_bounds(self) -> npt.NDArray[np.int64]:
        """Where the sequence of each token starts and ends; keeps the headings as well."""
        from spacy_treecrf.features.kernels.repeats import find_headings

        if self._bounds is None:
            n_tokens = len(self._tokens.words)
            self._bounds = np.empty((n_tokens, 2), np.int64)
            heading = np.empty((1, n_tokens), np.uint64)
            find_headings(self._tokens, self._bounds, heading[0])
            self._keep(("heading",), heading)
        return self._bounds

    def _repeats(self) -> Keys:
        from spacy_treecrf.features.kernels.repeats import repeat_keys

        bounds = self._sequence_bounds()
        keys = np.empty((len(REPEATS), len(bounds)), np.uint64)
        repeat_keys(self._tokens, bounds, self._counts, self._first, MOST_REPEATS, keys)
        return keys

    def _runs(self) -> Keys:
        from spacy_treecrf.features.kernels.capital_runs import run_keys

        heading = self.keys("heading")
        keys = np.empty((len(RUNS), len(heading)), np.uint64)
        runs = np.empty((len(heading), 2), np.int64)
        run_keys(self._tokens, heading, self._best_run, runs, keys)
        return keys

    def _openings(self) -> Keys:
        """The first word of the doc of each token."""
        orth, doc_offsets = self._tokens.orth, self._tokens.doc_offsets
        if self._n_docs == 1:
            return np.full(len(orth), orth[0])
        lengths = np.diff(doc_offsets)
        return np.repeat(orth[doc_offsets[:-1][lengths > 0]], lengths[lengths > 0])


class DocumentColumn(Source):
    """A source of one document column; key 0 is nothing."""

    attrs = (ORTH,)

    def __init__(self, kind: str, window: Window, words: DocumentWords) -> None:
        self.kind = kind
        self.name = self.column = f"document.{kind}"
        self.window = window
        self.words = words
        words.wanted.add(kind)

    def window_of(self, column: str) -> Window | None:
        return self.window if column == self.column else None

    def keys(self, batch: Batch) -> npt.NDArray[np.uint64]:
        return self.words.keys(batch, self.kind)

    def is_empty(self, batch: Batch) -> bool:
        return self.window == (0,) and not self.words.has_values(batch, self.kind)

    def read(self, batch: Batch, positions: npt.NDArray[np.int64]) -> Reading:
        keys = self.keys(batch)[positions]
        if self.kind in WORDS:
            strings = batch.vocab.strings
            texts = ["<edge>" if key == RUN_EDGE else strings[key].lower() for key in keys.tolist()]
        else:
            texts = [self._text(key) for key in keys.tolist()]
        return Reading({self.column: [text or None for text in texts]})

    def numbered(
        self, batch: Batch, positions: npt.NDArray[np.int64], known: KnownValues
    ) -> NumberedValues:
        texts = self.read(batch, positions).texts[self.column]
        get = known.texts[self.column].get
        return NumberedValues(np.array([[get(text, 0) for text in texts]], np.int64), NO_NUMBERS)

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
