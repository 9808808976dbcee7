"""Brown clusters of words: a table that is read once, at training, and then kept by the model.

spaCy reads such tables from the package spacy-lookups-data, in a few seconds. A model must give
words that training never saw their cluster on machines that do not have that package, so the
words that have a cluster are part of the model, by hash: 12 bytes each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.strings import get_string_id
from spacy.util import load_language_data, registry
from spacy.vocab import Vocab

from spacy_treecrf.features.source import Texts, Window
from spacy_treecrf.storage.state_reader import StateReader

TABLE = "lexeme_cluster"


class Clusters:
    """Prefixes of the bit paths of words; a word without a path has that of its lower-case form.

    lengths: The lengths of the prefixes, 0 for the whole path.
    """

    def __init__(self, lengths: Sequence[int], window: Window) -> None:
        self.columns = {f"cluster{n}" if n else "cluster": n for n in lengths}
        self.window = window
        self.words: npt.NDArray[np.uint64] | None = None  # hashes, rising
        self.paths = np.empty(0, np.uint32)  # bits from the lowest up to the highest that is set

    def window_of(self, column: str) -> Window | None:
        return self.window if column in self.columns else None

    def check(self, vocab: Vocab) -> None:
        if self.words is None:
            self.words, self.paths = _load(vocab)

    def read(self, keys: npt.NDArray[np.uint64], lowers: list[str]) -> dict[str, Texts]:
        paths = self.paths_of(keys, lowers)
        return {column: [self.text(column, path) for path in paths] for column in self.columns}

    def text(self, column: str, path: int) -> str | None:
        """The value of a column for a path, None for path 0."""
        return bin(path)[:1:-1][: self.columns[column] or None] if path else None

    def paths_of(self, keys: npt.NDArray[np.uint64], lowers: list[str]) -> list[int]:
        """The paths of words; 0 for a word without one."""
        lower_keys = np.array([get_string_id(lower) for lower in lowers], np.uint64)
        # Both in one search: of few words, each call of numpy takes longer than what it finds.
        found: list[int] = self._find(np.concatenate([keys, lower_keys])).tolist()
        return [own or of_lower for own, of_lower in zip(found, found[len(keys) :], strict=False)]

    def _find(self, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        """The paths of words; 0 for a word without one."""
        if self.words is None:
            raise ValueError(
                "treecrf: the cluster table is not loaded; initialize the pipeline, or load a "
                "trained one"
            )
        if not len(self.words):
            return np.zeros(len(keys), np.uint32)
        at = self.words.searchsorted(keys)
        known = self.words.take(at, mode="clip") == keys
        found: npt.NDArray[np.uint32] = self.paths.take(at, mode="clip") * known
        return found

    def to_state(self) -> dict[str, Any]:
        words = self.words if self.words is not None else np.empty(0, np.uint64)
        return {"loaded": self.words is not None, "words": words, "paths": self.paths}

    def from_state(self, reader: StateReader) -> None:
        loaded = reader.boolean("loaded")
        words = reader.array("words", np.uint64, (None,))
        paths = reader.array("paths", np.uint32, (len(words),), low=1)
        if (words[1:] <= words[:-1]).any():
            reader.fail("words", "rising values", "others")
        self.words, self.paths = (words if loaded else None), paths


def _installed_tables(language: str) -> dict[str, Any]:
    """Files of the tables that packages bring for a language, by name."""
    return registry.lookups.get(language) if language in registry.lookups else {}


def lacking_table(language: str) -> str | None:
    """What is to be done where no package has clusters of a language; None: one has."""
    if TABLE in _installed_tables(language):
        return None
    return (
        f"setting 'clusters' needs the table {TABLE!r} for the language {language!r}, which is not "
        "there; pip install spacy-lookups-data (it has the table for de, en and es), or add it to "
        "[initialize.lookups]"
    )


def _load(vocab: Vocab) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
    table: dict[Any, Any]
    if vocab.lookups.has_table(TABLE):
        table = dict(vocab.lookups.get_table(TABLE))
    else:
        language = vocab.lang or ""
        if lacks := lacking_table(language):
            raise ValueError(f"treecrf: {lacks}, or set clusters = []")
        # Not by load_lookups: its Table of a million words takes longer than reading the file.
        table = load_language_data(_installed_tables(language)[TABLE])  # type: ignore[assignment]
    found = {get_string_id(word): int(path) for word, path in table.items() if path}
    if any(not 0 < path < 2**32 for path in found.values()):
        raise ValueError(f"treecrf: the table {TABLE!r} holds values that are no cluster paths")
    words = np.fromiter(found.keys(), np.uint64, len(found))
    paths_of = np.fromiter(found.values(), np.uint32, len(found))
    order = np.argsort(words)
    return words[order], paths_of[order]
