"""Lists of the entities of the training data, and what training documents may know of them.

Every entity of the training data is in such a list, which is not so in new documents: a model that
saw the lists as they are would trust them too much. So the training documents are cut into blocks,
in their order, and no document sees what its own block alone has taught. One document is too small
a block: those beside it often tell the same story with the same names, which new documents lack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from spacy.strings import get_string_id
from spacy.tokens import Doc

from spacy_treecrf.features.source import Entities, column_name

# Columns: entities as they are, and words that entities of several words begin or end with.
LEARNED, LEARNED_WORDS = "entities.", "entity_words."
N_BLOCKS = 4
NOBODY = 0  # the owner of what several blocks have taught; blocks have numbers from 1
_PIECE = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")

Pieces = tuple[str, ...]
Phrase = tuple[str, Pieces]  # the column of its list, and its pieces
Lesson = list[tuple[int, list[Phrase]]]  # of each doc, its id and what its entities teach


def pieces_of(text: str) -> Pieces:
    """The pieces of a text in lower case: runs of letters, runs of digits, other characters."""
    return tuple(_PIECE.findall(text.lower()))


def lesson_of(docs: Sequence[Doc], entities: Entities) -> Lesson:
    """What the entities of docs teach."""
    pairs = zip(docs, entities, strict=True)
    return [(doc_id(doc), list(_phrases_of(doc, spans))) for doc, spans in pairs]


def _phrases_of(doc: Doc, spans: Iterable[tuple[int, int, str]]) -> Iterator[Phrase]:
    """The phrases of a doc's entities that have a piece."""
    for start, end, label in spans:
        text = doc[start:end].text
        words = text.split()
        ends = (words[0], words[-1]) if len(words) > 1 else ()
        found = [(LEARNED, text), *((LEARNED_WORDS, word) for word in ends if _is_name(word))]
        for kind, phrase in found:
            if pieces := pieces_of(phrase):
                yield kind + column_name(label), pieces


def _is_name(word: str) -> bool:
    return word != word.lower()


def doc_id(doc: Doc) -> int:
    """The id of a training document, by its text: the same for all copies of it."""
    return get_string_id(doc.text)


class Blocks:
    """Training documents, by their ids and in their order, cut into blocks of about equal size.

    Documents that are none of them are blocks of their own, by their ids.
    """

    def __init__(self, ids: Iterable[int]) -> None:
        self.ids = list(dict.fromkeys(ids))
        n = max(len(self.ids), 1)
        self._block_of = {own: 1 + i * N_BLOCKS // n for i, own in enumerate(self.ids)}

    def of(self, doc: Doc) -> int:
        own = doc_id(doc)
        return self._block_of.get(own, own)

    def owners(self, lessons: Iterable[Lesson]) -> dict[Phrase, int]:
        """The phrases of lessons, and which block alone has taught each; NOBODY if several have."""
        found: dict[Phrase, int] = {}
        for lesson in lessons:
            for own, phrases in lesson:
                block = self._block_of[own]
                for phrase in phrases:
                    if found.setdefault(phrase, block) != block:
                        found[phrase] = NOBODY
        return found
