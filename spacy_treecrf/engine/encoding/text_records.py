"""Texts that training saw, in an array in which a kernel finds their features.

Python finds a text in a dict by way of five objects, which lie anywhere in memory. Here texts are
read eight bytes at a time: a text is the words that these are, the last of them filled up with 0.
What is known of a text lies in one record: its length, how many features it has, its words, and
slot and id of each feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.encoding.item_codes import NOTHING, TextIds
from spacy_treecrf.engine.intrinsics import prefetch_cell
from spacy_treecrf.engine.kernel import kernel, step
from spacy_treecrf.engine.python_calls import WORD_BYTES, load_byte, load_word

NO_RECORD = 0
# No memory ends within a page, so that a word may be read behind the end of a text that is in it.
PAGE_BYTES = 4096
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: Knuth's multiplier
LOW_HALF = np.uint64(0xFFFFFFFF)
ONE, EIGHT, HALF = np.uint64(1), np.uint64(8), np.uint64(32)


class TextRecords(NamedTuple):
    """What is known of texts, found by open addressing."""

    places: npt.NDArray[np.int32]  # shape: (a power of 2,), where a record begins, or NO_RECORD
    records: npt.NDArray[np.uint64]


def text_records(texts: Sequence[str], ids: TextIds, first_code: int) -> TextRecords:
    """Records of different texts. first_code: That of the first one in `ids`."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    letters = np.frombuffer(b"".join(encoded) + bytes(WORD_BYTES), np.uint8)
    places = np.full(1 << (2 * len(texts)).bit_length(), NO_RECORD, np.int32)
    n_words = int((lengths // WORD_BYTES + 1).sum())
    records = np.zeros(1 + len(texts) + n_words + len(ids.slot), np.uint64)
    fill_records(letters, lengths, ids, first_code, TextRecords(places, records))
    return TextRecords(places, records)


@step
def _last_word(at: int, n: int) -> np.uint64:
    """Return the word of the last n bytes of a text, fewer than eight."""
    if at % PAGE_BYTES <= PAGE_BYTES - WORD_BYTES:
        own: np.uint64 = load_word(at) & ((ONE << (EIGHT * np.uint64(n))) - ONE)
        return own
    word = np.uint64(0)
    for i in range(n):
        word |= load_byte(at + i) << (EIGHT * np.uint64(i))
    return word


@step
def _mixed(key: np.uint64, word: np.uint64) -> np.uint64:
    """Return the key of a text with a word behind it."""
    product = (key ^ word) * SPREAD
    return product ^ (product >> HALF)


@step
def place_of_text(address: int, length: int, known: TextRecords) -> np.uint64:
    """Return the place where the search for a text begins; it is brought into the cache."""
    at, n = address, length
    key = np.uint64(length)
    while n >= WORD_BYTES:
        key = _mixed(key, load_word(at))
        at += WORD_BYTES
        n -= WORD_BYTES
    key = _mixed(key, _last_word(at, n))
    place: np.uint64 = ((key * SPREAD) >> HALF) & np.uint64(len(known.places) - 1)
    prefetch_cell(known.places, place)
    return place


@step
def _behind_text(address: int, length: int, known: TextRecords, record: int) -> np.int64:
    """Return where the words of a record end, or -1 where they are not those of the text."""
    if np.int64(known.records[record] >> HALF) != length:
        return np.int64(-1)
    at, n, own = address, length, np.int64(record + 1)
    while n >= WORD_BYTES:
        if known.records[own] != load_word(at):
            return np.int64(-1)
        at += WORD_BYTES
        n -= WORD_BYTES
        own += 1
    return own + 1 if known.records[own] == _last_word(at, n) else np.int64(-1)


@step
def id_of_text(
    address: int, length: int, first_place: np.uint64, slot: int, known: TextRecords
) -> np.int64:
    """Return the id of a text in a slot. first_place: See `place_of_text`."""
    place = first_place
    while known.places[place] != NO_RECORD:
        record = np.int64(known.places[place])
        first = _behind_text(address, length, known, record)
        if first >= 0:
            for p in range(first, first + np.int64(known.records[record] & LOW_HALF)):
                if np.int64(known.records[p] >> HALF) == slot:
                    return np.int64(known.records[p] & LOW_HALF)
            break
        place = (place + ONE) & np.uint64(len(known.places) - 1)
    return np.int64(NOTHING)


@kernel
def fill_records(
    letters: npt.NDArray[np.uint8],
    lengths: npt.NDArray[np.int64],
    ids: TextIds,
    first_code: int,
    out: TextRecords,
) -> None:
    """Write the records of texts, whose letters follow each other; no text has a place yet."""
    start = np.int64(letters.ctypes.data)
    n = 1
    for text in range(len(lengths)):
        code, length = first_code + text, lengths[text]
        place = place_of_text(start, length, out)
        while out.places[place] != NO_RECORD:
            place = (place + ONE) & np.uint64(len(out.places) - 1)
        out.places[place] = n
        n_features = np.uint64(ids.first[code + 1] - ids.first[code])
        out.records[n] = np.uint64(length) << HALF | n_features
        n += 1
        for at in range(start, start + length // WORD_BYTES * WORD_BYTES, WORD_BYTES):
            out.records[n] = load_word(at)
            n += 1
        out.records[n] = _last_word(start + length // WORD_BYTES * WORD_BYTES, length % WORD_BYTES)
        n += 1
        for p in range(ids.first[code], ids.first[code + 1]):
            out.records[n] = np.uint64(ids.slot[p]) << HALF | np.uint64(ids.feature[p])
            n += 1
        start += length
