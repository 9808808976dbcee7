"""Texts that training saw, in an array in which a kernel finds the features of many at once.

Python finds a text in a dict by way of five objects, which lie anywhere in memory. Here the texts
that are looked for are joined to one array of bytes, a 0 behind each, and are read eight bytes at a
time: a text is the words that these are, the last of them filled up with 0. What is known of a
text lies in one record: how many features it has, its words, and slot and id of each feature.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.item_codes import ASK, NO_SLOT, NOTHING, CodedItems, TextIds
from spacy_treecrf.engine.intrinsics import lowest_bit
from spacy_treecrf.engine.kernel import kernel, step

END = "\0"
WORD_BYTES = 8
TAIL = ("",) * (WORD_BYTES + 1)  # the word in which the last text ends is read whole
NO_RECORD = 0
FIRST_BITS, LAST_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)  # of bytes
WHOLE_BYTES = np.uint64(0x38)
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: Knuth's multiplier
LOW_HALF = np.uint64(0xFFFFFFFF)
ONE, THREE, HALF = np.uint64(1), np.uint64(3), np.uint64(32)

Letters = npt.NDArray[np.uint8]


class TextRecords(NamedTuple):
    """What is known of texts, found by open addressing."""

    places: npt.NDArray[np.int32]  # shape: (a power of 2,), where a record begins, or NO_RECORD
    records: npt.NDArray[np.uint64]


def joined(texts: Iterable[str]) -> Letters:
    """The bytes of texts, a 0 behind each; raises TypeError where one is no text."""
    together = END.join(chain(texts, TAIL))
    return np.frombuffer(together.encode("utf-8", "surrogatepass"), np.uint8)


def text_records(texts: list[str], ids: TextIds, first_code: int) -> TextRecords | None:
    """Records of different texts, or None where one holds a 0. first_code: The first one's."""
    letters = joined(texts)
    places = np.full(1 << (2 * len(texts)).bit_length(), NO_RECORD, np.int32)
    records = np.empty(1 + len(letters) + len(texts) + len(ids.slot), np.uint64)
    n = fill_records(letters, ids, first_code, TextRecords(places, records))
    return TextRecords(places, records[:n].copy()) if n else None


@step
def _word_at(letters: Letters, at: int) -> np.uint64:
    """Return eight bytes as a number; they become one load."""
    word = np.uint64(0)
    for i in range(WORD_BYTES):
        word |= np.uint64(letters[at + i]) << np.uint64(8 * i)
    return word


@step
def _ends_of(word: np.uint64) -> np.uint64:
    """Return bits of which the lowest is in the first byte that is 0; no bits where none is.

    Mycroft's test. The other bits say nothing.
    """
    found: np.uint64 = (word - FIRST_BITS) & ~word & LAST_BITS
    return found


@step
def _cut(word: np.uint64, ends: np.uint64) -> np.uint64:
    """Return the bytes of a word before the first that is 0."""
    kept: np.uint64 = word & ((ONE << (lowest_bit(ends) & WHOLE_BYTES)) - ONE)
    return kept


@step
def _behind(ends: np.uint64) -> np.int64:
    """Return how many bytes of a word there are up to the first that is 0, and with it."""
    return np.int64(lowest_bit(ends) >> THREE) + 1


@step
def _mixed(key: np.uint64, word: np.uint64) -> np.uint64:
    """Return the key of a text with a word behind it."""
    product = (key ^ word) * SPREAD
    return product ^ (product >> HALF)


@step
def _place_of(key: np.uint64, places: npt.NDArray[np.int32]) -> np.uint64:
    return ((key * SPREAD) >> HALF) & np.uint64(len(places) - 1)


@step
def _behind_text(letters: Letters, start: int, known: TextRecords, record: int) -> int:
    """Return where the words of a record end, or -1 where they are not the text at the start."""
    at, own = start, record + 1
    while True:
        word = _word_at(letters, at)
        ends = _ends_of(word)
        if ends:
            return own + 1 if known.records[own] == _cut(word, ends) else -1
        if known.records[own] != word:
            return -1
        at += WORD_BYTES
        own += 1


@step
def _id_of_text(
    letters: Letters, start: int, key: np.uint64, slot: int, known: TextRecords
) -> np.int64:
    """Return the id of the text at the start, of this key, in a slot."""
    place = _place_of(key, known.places)
    while known.places[place] != NO_RECORD:
        record = np.int64(known.places[place])
        first = _behind_text(letters, start, known, record)
        if first >= 0:
            for p in range(first, first + np.int64(known.records[record])):
                if np.int64(known.records[p] >> HALF) == slot:
                    return np.int64(known.records[p] & LOW_HALF)
            break
        place = (place + ONE) & np.uint64(len(known.places) - 1)
    return np.int64(NOTHING)


@kernel
def find_ids(
    letters: Letters, items: CodedItems, known: TextRecords, ids: npt.NDArray[np.int32]
) -> int:
    """Write the id of each joined text under its key, or ASK; returns how many are to be asked for.

    Or -1 where there are not as many texts as entries, because one holds a 0. items: Their codes
    are not read.
    """
    at = n_asked = 0
    for row in range(len(items.shape_of)):
        shape = items.shape_of[row] - items.ends[row]
        for event in range(items.ends[row], items.ends[row + 1]):
            start, key = at, np.uint64(0)
            word = _word_at(letters, at)
            ends = _ends_of(word)
            while not ends:
                key = _mixed(key, word)
                at += WORD_BYTES
                word = _word_at(letters, at)
                ends = _ends_of(word)
            key = _mixed(key, _cut(word, ends))
            at += _behind(ends)
            slot = items.shapes[shape + event, 0]
            if slot == NO_SLOT:
                ids[event] = ASK
                n_asked += 1
            else:
                ids[event] = _id_of_text(letters, start, key, slot, known)
    return n_asked if at + WORD_BYTES == len(letters) else -1


@kernel
def fill_records(letters: Letters, ids: TextIds, first_code: int, out: TextRecords) -> int:
    """Write the records of joined texts; returns the length of them all, or 0: one holds a 0.

    out: No text has a place yet.
    """
    at, n = 0, 1
    for code in range(first_code, len(ids.first) - 1):
        record, key, ends = n, np.uint64(0), np.uint64(0)
        out.records[record] = np.uint64(ids.first[code + 1] - ids.first[code])
        n += 1
        while not ends:
            word = _word_at(letters, at)
            ends = _ends_of(word)
            if ends:
                word = _cut(word, ends)
                at += _behind(ends)
            else:
                at += WORD_BYTES
            key = _mixed(key, word)
            out.records[n] = word
            n += 1
        for p in range(ids.first[code], ids.first[code + 1]):
            out.records[n] = np.uint64(ids.slot[p]) << HALF | np.uint64(ids.feature[p])
            n += 1
        place = _place_of(key, out.places)
        while out.places[place] != NO_RECORD:
            place = (place + ONE) & np.uint64(len(out.places) - 1)
        out.places[place] = record
    return n if at + WORD_BYTES == len(letters) else 0
