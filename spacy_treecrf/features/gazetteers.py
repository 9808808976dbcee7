"""Lists of phrases: given by the user, or the entities of the training data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_treecrf.features.batch import ORTH, Batch
from spacy_treecrf.features.entity_lists import (
    NOBODY,
    Blocks,
    Lesson,
    Phrase,
    lesson_of,
    pieces_of,
)
from spacy_treecrf.features.source import Entities, Reading, Source, Texts, Window, column_name
from spacy_treecrf.features.words import WordTable
from spacy_treecrf.storage.state_reader import StateReader

if TYPE_CHECKING:
    from spacy_treecrf.features.kernels.phrases import Trie

LISTED = "gazetteer."
MAX_WORD_PIECES = 12  # a token of more pieces is in no phrase
MANY_WORDS = 2**15
PLACES = (None, "B", "I", "L", "U")  # by the numbers of kernels.phrases
_LIST_KEY = 0x9E3779B97F4A7C15


class CompiledPhrases(NamedTuple):
    """All phrases as a trie of pieces, and the number of each piece."""

    piece_ids: dict[str, int]
    trie: Trie


class GazetteerSource(Source):
    """A source with a column for each list of phrases.

    The column tells whether a token is the first (B), an inner (I), the last (L) or the only (U)
    one of a phrase. Case and the way a tokenizer cuts words do not matter.

    Phrases learned from entities of one block of training documents alone have that block as their
    owner. In training, its documents do not see them; see `entity_lists`.

    lists: By name, phrases, or the path of a text file with a phrase in each line, or of a folder
        of such files, each of which is a list.
    """

    name = "gazetteers"
    attrs = (ORTH,)

    def __init__(
        self, lists: dict[str, list[str] | Path], from_entities: bool, window: Window
    ) -> None:
        self.listed = lists
        self.from_entities = from_entities
        self.window = window
        self.columns: list[str] = []
        self._phrases: dict[Phrase, int] = {}  # with their owners
        self._blocks = Blocks(())
        self._is_loaded = not lists
        self._version = 0  # counts changes of the phrases
        self._compiled_phrases: CompiledPhrases | None = None
        self._words = WordTable(MAX_WORD_PIECES, np.int32)

    def window_of(self, column: str) -> Window | None:
        if not self._is_loaded:
            raise ValueError(
                "treecrf: the gazetteers are not loaded; initialize the pipeline, or load a "
                "trained one"
            )
        return self.window if column in self.columns else None

    def check(self, vocab: Vocab) -> None:
        if not self._is_loaded:
            for name, phrases in _single_lists(self.listed):
                column = LISTED + column_name(name)
                for phrase in _read_lines(name, phrases) if isinstance(phrases, Path) else phrases:
                    if pieces := pieces_of(phrase):
                        self._phrases[column, pieces] = NOBODY
            self._is_loaded = True
            self._changed()

    def lesson(self, docs: Sequence[Doc], entities: Entities | None) -> Lesson | None:
        if not self.from_entities:
            return None
        if entities is None:
            raise ValueError(
                "treecrf: setting 'gazetteer_from_entities' needs annotated entities or spans, "
                "and this task has none; set it to false"
            )
        return lesson_of(docs, entities)

    def learn(self, lessons: Sequence[Lesson | None]) -> None:
        if not self.from_entities:
            return
        taught = [lesson for lesson in lessons if lesson is not None]
        # Training may shuffle docs that were learned from before: blocks keep their first order.
        places = {own: i for i, own in enumerate(self._blocks.ids)}
        ids = dict.fromkeys(own for lesson in taught for own, _ in lesson)
        self._blocks = Blocks(sorted(ids, key=lambda own: places.get(own, len(places))))
        self._phrases = {
            **{key: owner for key, owner in self._phrases.items() if key[0].startswith(LISTED)},
            **self._blocks.owners(taught),
        }
        self._changed()

    def keys(self, batch: Batch) -> npt.NDArray[np.uint64]:
        places = self._places(batch)
        factors = np.array([pow(_LIST_KEY, i, 2**64) for i in range(len(self.columns))], np.uint64)
        # A row of places as one number; tokens in no phrase have 0.
        keys: npt.NDArray[np.uint64] = (places * factors).sum(axis=1, dtype=np.uint64)
        return keys

    def read(self, batch: Batch, positions: npt.NDArray[np.int64]) -> Reading:
        places = self._places(batch)[positions]
        columns: dict[str, Texts] = {
            column: [PLACES[p] for p in places[:, i].tolist()]
            for i, column in enumerate(self.columns)
        }
        return Reading(columns)

    def stamp(self, vocab: Vocab) -> Any:
        return self._version

    def _places(self, batch: Batch) -> npt.NDArray[np.uint8]:
        """The place of each token in the phrases of each list, as an index of PLACES.

        shape: (n_tokens, n_lists)
        """
        if self not in batch.memo:
            batch.memo[self] = self._match(batch)
        places: npt.NDArray[np.uint8] = batch.memo[self]
        return places

    def _match(self, batch: Batch) -> npt.NDArray[np.uint8]:
        from spacy_treecrf.features.kernels.phrases import match_phrases

        piece_ids, trie = self._compiled()
        places = np.zeros((batch.n_tokens, len(self.columns)), np.uint8)
        if not self.columns:
            return places
        self.forget(MANY_WORDS)
        words = self._words.rows(
            batch.array(ORTH), lambda new: _piece_rows(batch.strings(new), piece_ids)
        )
        owners = np.zeros(len(batch.offsets) - 1, np.uint64)
        if batch.training and self.from_entities:
            of_docs = np.array([self._blocks.of(doc) for doc in batch.docs], np.uint64)
            filled = np.diff(batch.offsets) > 0
            owners[filled] = of_docs[batch.doc_of_sequence()[filled]]
        match_phrases(words, batch.offsets, owners, self._words.table, trie, places)
        return places

    def forget(self, most: int) -> None:
        if len(self._words) > most:
            self._words = WordTable(MAX_WORD_PIECES, np.int32)

    def _changed(self) -> None:
        self.columns = sorted({column for column, _ in self._phrases})
        self._version += 1
        self._compiled_phrases = None
        self._words = WordTable(MAX_WORD_PIECES, np.int32)

    def _compiled(self) -> CompiledPhrases:
        if self._compiled_phrases is None:
            self._compiled_phrases = _compile(self._phrases, self.columns)
        return self._compiled_phrases

    def to_state(self) -> dict[str, Any]:
        piece_ids: dict[str, int] = {}
        column_ids = {column: i for i, column in enumerate(self.columns)}
        flat = [
            piece_ids.setdefault(piece, len(piece_ids))
            for _, phrase in self._phrases
            for piece in phrase
        ]
        lengths = [len(phrase) for _, phrase in self._phrases]
        return {
            "loaded": self._is_loaded,
            "lists": list(self.columns),
            "pieces": list(piece_ids),
            "phrase_pieces": np.array(flat, np.int32),
            "phrase_lengths": np.array(lengths, np.int32),
            "phrase_list": np.array([column_ids[c] for c, _ in self._phrases], np.int32),
            "phrase_owner": np.array(list(self._phrases.values()), np.uint64),
            "docs": np.array(self._blocks.ids, np.uint64),
        }

    def from_state(self, reader: StateReader) -> None:
        loaded = reader.boolean("loaded")
        lists = reader.strings("lists", unique=True)
        pieces = reader.strings("pieces", unique=True)
        flat = reader.array("phrase_pieces", np.int32, (None,), 0, len(pieces) - 1).tolist()
        lengths = reader.array("phrase_lengths", np.int32, (None,), 1)
        n_phrases = len(lengths)
        which = reader.array("phrase_list", np.int32, (n_phrases,), 0, len(lists) - 1).tolist()
        owners = reader.array("phrase_owner", np.uint64, (n_phrases,)).tolist()
        # Where there are none, as in files of before, the owner of a phrase is the id of a doc.
        docs = reader.array("docs", np.uint64, (None,)).tolist() if reader.has("docs") else []
        ends = np.cumsum(lengths, dtype=np.int64).tolist()
        if (ends[-1] if ends else 0) != len(flat):
            reader.fail("phrase_lengths", f"a sum of {len(flat)}", "another")
        phrases: dict[Phrase, int] = {}
        for i, end in enumerate(ends):
            phrase = tuple(pieces[p] for p in flat[end - lengths[i] : end])
            phrases[lists[which[i]], phrase] = owners[i]
        self._phrases, self._blocks, self._is_loaded = phrases, Blocks(docs), loaded
        self._changed()


def _piece_rows(texts: Iterable[str], piece_ids: dict[str, int]) -> npt.NDArray[np.int32]:
    from spacy_treecrf.features.kernels.phrases import NO_PIECE, UNKNOWN_PIECE

    found = [pieces_of(text) for text in texts]
    rows = np.full((len(found), MAX_WORD_PIECES), NO_PIECE, np.int32)
    for row, pieces in zip(rows, found, strict=True):
        if len(pieces) > MAX_WORD_PIECES:
            row[0] = UNKNOWN_PIECE
        else:
            row[: len(pieces)] = [piece_ids.get(piece, UNKNOWN_PIECE) for piece in pieces]
    return rows


def _compile(phrases: dict[Phrase, int], columns: list[str]) -> CompiledPhrases:
    from spacy_treecrf.features.kernels.key_table import KeyTable
    from spacy_treecrf.features.kernels.phrases import Trie

    piece_ids: dict[str, int] = {}
    nodes: dict[int, int] = {}  # (node << 32) + piece -> node, numbered as KeyTable does
    column_ids = {column: i for i, column in enumerate(columns)}
    entries = []
    for (column, phrase), owner in phrases.items():
        node = 0
        for piece in phrase:
            edge = (node << 32) + piece_ids.setdefault(piece, len(piece_ids))
            node = nodes.setdefault(edge, len(nodes) + 1)
        entries.append((node, column_ids[column], owner))
    entries.sort()
    edges = KeyTable(first_row=1)
    edges.rows_of(np.array(list(nodes), np.uint64))
    at_node = np.bincount([node for node, _, _ in entries], minlength=len(nodes) + 1)
    trie = Trie(
        edges=edges.keys,
        edge_node=edges.rows,
        entry_first=np.concatenate([[0], np.cumsum(at_node)]).astype(np.int64),
        entry_list=np.array([which for _, which, _ in entries], np.int32),
        entry_owner=np.array([owner for _, _, owner in entries], np.uint64),
    )
    return CompiledPhrases(piece_ids, trie)


def _single_lists(
    lists: dict[str, list[str] | Path],
) -> Iterator[tuple[str, list[str] | Path]]:
    """The lists; a folder stands for its text files, each a list named after it and the file."""
    for name, phrases in lists.items():
        if not isinstance(phrases, Path) or not phrases.is_dir():
            yield name, phrases
            continue
        files = sorted(phrases.glob("*.txt"))
        if not files:
            raise ValueError(
                f"treecrf: setting 'gazetteers' names the folder {phrases} for {name!r}, which has "
                "no file *.txt; name a folder of text files, a phrase in each line"
            )
        yield from ((f"{name}.{file.stem}", file) for file in files)


def _read_lines(name: str, path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"treecrf: setting 'gazetteers' names the file {path} for {name!r}, which cannot be "
            f"read as UTF-8 text, a phrase in each line: {error}"
        ) from error
