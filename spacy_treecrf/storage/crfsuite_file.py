"""The model files of CRFsuite (lCRF, version 100), read without trust in a single byte.

A file has a header, a chunk of weights, two tables of texts (labels and attributes), and the lists
of the weights that belong to each label and to each attribute. All numbers are little-endian, and
nothing is aligned.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from spacy_treecrf.storage.files import as_path
from spacy_treecrf.storage.limits import MAX_WEIGHT as MAX_WEIGHT

MAGIC = b"lCRF"
_HEADER = struct.Struct("<4sI4s9I")
_CHUNK = struct.Struct("<4sII")  # kind, bytes, entries
_TEXTS = struct.Struct("<4s5I")  # kind, bytes, flags, byte order, entries, place of the entries
_BYTE_ORDER = 0x62445371
_VERSION = 100
_WEIGHT = np.dtype([("kind", "<u4"), ("source", "<u4"), ("target", "<u4"), ("weight", "<f8")])
_OF_ATTRIBUTE, _OF_TRANSITION = 0, 1
_MORE_LABELS = 2  # the lists of labels end with those of the begin and the end, which are empty

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Weights:
    """Weights of pairs: (attribute, label) or (label, next label)."""

    source: Numbers
    target: Numbers
    weight: npt.NDArray[np.float64]


@dataclass(frozen=True)
class CRFsuiteFile:
    """What a file says. An attribute that is no UTF-8 is None: no text can be it."""

    labels: list[str]
    attributes: list[str | None]
    states: Weights
    transitions: Weights


def is_crfsuite_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as the models of CRFsuite do; False if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def read_crfsuite(path: str | os.PathLike[str]) -> CRFsuiteFile:
    """Read a model of CRFsuite; a damaged or foreign file is refused with a ValueError."""
    path = as_path(path, "read the CRFsuite model")
    source = f"the CRFsuite model {str(path)!r}"
    try:
        with open(path, "rb") as file:
            data = file.read(len(MAGIC))
            if data == MAGIC:  # the rest of a file of another kind may be of any size
                data += file.read()
    except (OSError, ValueError, MemoryError) as error:
        reason = str(error) or "not enough memory"
        raise ValueError(f"treecrf: cannot read {source}: {reason}; check the path") from error
    return parse_crfsuite(data, source)


def parse_crfsuite(data: bytes, source: str = "the CRFsuite model") -> CRFsuiteFile:
    """What the bytes of a model of CRFsuite say; a ValueError that names the source otherwise."""
    return _Reader(data, source).file()


class _Reader:
    def __init__(self, data: bytes, source: str) -> None:
        self.data = data
        self.bytes: Bytes = np.frombuffer(data, np.uint8)
        self.source = source

    def fail(self, field: str, expected: object, found: object) -> NoReturn:
        raise ValueError(
            f"treecrf: {self.source} is damaged: {field}: expected {expected}, found {found}; "
            "copy it again, or train it again"
        )

    def file(self) -> CRFsuiteFile:
        if self.data[: len(MAGIC)] != MAGIC:
            raise ValueError(f"treecrf: {self.source} is no model of CRFsuite; check the path")
        if len(self.data) < _HEADER.size:
            self.fail("header", f"{_HEADER.size} bytes", len(self.data))
        _, size, kind, version, _, n_labels, n_attributes, *places = _HEADER.unpack_from(self.data)
        if size != len(self.data):
            self.fail("header, size of the file", size, len(self.data))
        if kind != b"FOMC":
            self.fail("header, kind of model", b"FOMC", kind)
        if version != _VERSION:
            self.fail("header, version", _VERSION, version)
        weights_at, labels_at, attributes_at, label_lists_at, attribute_lists_at = places
        labels = [self._label(text) for text in self._texts("labels", labels_at, n_labels)]
        if not labels:
            self.fail("labels", "at least one", "none")
        if len(set(labels)) < len(labels):
            self.fail("labels", "each once", "one twice")
        texts = self._texts("attributes", attributes_at, n_attributes)
        if len(set(texts)) < len(texts):
            self.fail("attributes", "each once", "one twice")
        states, transitions = self._weights(
            weights_at, n_attributes, n_labels, label_lists_at, attribute_lists_at
        )
        return CRFsuiteFile(labels, [_decoded(text) for text in texts], states, transitions)

    def _label(self, text: bytes) -> str:
        label = _decoded(text)
        if label is None:
            self.fail("labels", "texts in UTF-8", repr(text[:60]))
        return label

    def _texts(self, field: str, at: int, n: int) -> list[bytes]:
        """The texts of a table by their numbers, without the zero byte that ends each."""
        head = self._unpacked(field, _TEXTS, at)
        kind, size, _, order, n_entries, entries_at = head
        if kind != b"CQDB" or order != _BYTE_ORDER:
            self.fail(field, "a table of texts", repr(kind))
        if size > len(self.data) - at or size < _TEXTS.size:
            self.fail(f"{field}, size of the table", f"up to {len(self.data) - at}", size)
        if n_entries != n:
            self.fail(f"{field}, number", n, n_entries)
        if entries_at > size or 4 * n > size - entries_at:
            self.fail(f"{field}, place of the numbers", f"{4 * n} bytes within {size}", entries_at)
        starts = np.frombuffer(self.data, "<u4", n, at + entries_at).astype(np.int64)
        if n and (starts.min() < _TEXTS.size or starts.max() > size - 9):
            self.fail(f"{field}, place of a text", f"within {size} bytes", "another")
        starts += at
        ids, lengths = self._integers(starts), self._integers(starts + 4)
        if (ids != np.arange(n)).any():
            self.fail(f"{field}, number of a text", "its own", "another")
        # Also that they do not lie within each other, so that few bytes do not become many.
        if n and (lengths.min() < 1 or int(lengths.sum()) > size):
            self.fail(f"{field}, length of a text", f"1 to {size} bytes", "another")
        ends = starts + 8 + lengths
        if n and ends.max() > at + size:
            self.fail(f"{field}, length of a text", f"an end within {size} bytes", "a later one")
        if n and self.bytes[ends - 1].any():
            self.fail(f"{field}, end of a text", "a zero byte", "another")
        pairs = zip((starts + 8).tolist(), (ends - 1).tolist(), strict=True)
        texts = [self.data[first:last] for first, last in pairs]
        if any(b"\0" in text for text in texts):
            self.fail(f"{field}, a text", "no zero byte in it", "one")
        return texts

    def _weights(
        self, at: int, n_attributes: int, n_labels: int, label_lists: int, attribute_lists: int
    ) -> tuple[Weights, Weights]:
        """Weights of attributes and of transitions, each of which must be in one list."""
        field = "weights"
        kind, size, n = self._unpacked(field, _CHUNK, at)
        if kind != b"FEAT":
            self.fail(field, b"FEAT", kind)
        room = min(size, len(self.data) - at) - _CHUNK.size
        if n * _WEIGHT.itemsize > room:
            self.fail(f"{field}, number", f"up to {max(0, room) // _WEIGHT.itemsize}", n)
        table = np.frombuffer(self.data, _WEIGHT, n, at + _CHUNK.size)
        if (table["kind"] > _OF_TRANSITION).any():
            self.fail(f"{field}, kind", "0 or 1", int(table["kind"].max()))
        if (table["target"] >= n_labels).any():
            self.fail(f"{field}, label", f"below {n_labels}", int(table["target"].max()))
        weight = table["weight"]
        if not np.isfinite(weight).all() or (np.abs(weight) > MAX_WEIGHT).any():
            self.fail(f"{field}, a weight", f"a number up to {MAX_WEIGHT:g}", "another")
        return (
            self._of_kind(table, _OF_ATTRIBUTE, "attributes", attribute_lists, n_attributes, 0),
            self._of_kind(
                table, _OF_TRANSITION, "transitions", label_lists, n_labels, _MORE_LABELS
            ),
        )

    # Many parameters: what differs between weights of attributes and of transitions.
    def _of_kind(
        self,
        table: npt.NDArray[np.void],
        kind: int,
        name: str,
        lists_at: int,
        n: int,
        n_more: int,
    ) -> Weights:
        own = np.flatnonzero(table["kind"] == kind)
        source = table["source"][own].astype(np.int64)
        target = table["target"][own].astype(np.int64)
        field = f"weights of {name}"
        if (source >= n).any():
            self.fail(field, f"numbers below {n}", int(source.max()))
        pairs = source * 2**32 + target
        if len(np.unique(pairs)) < len(pairs):
            self.fail(field, "one for each pair", "several")
        listed, members = self._lists(f"lists of {name}", lists_at, n, n_more)
        order, members_order = np.argsort(own), np.argsort(members, kind="stable")
        same = len(members) == len(own) and (members[members_order] == own[order]).all()
        if not (same and (listed[members_order] == source[order]).all()):
            self.fail(f"lists of {name}", "each weight once, where it belongs", "others")
        return Weights(source, target, table["weight"][own].astype(np.float64))

    def _lists(self, field: str, at: int, n: int, n_more: int) -> tuple[Numbers, Numbers]:
        """For each entry of the first n lists, the list and the entry; more lists are empty."""
        kind, _, n_found = self._unpacked(field, _CHUNK, at)
        if kind not in (b"LFRF", b"AFRF"):
            self.fail(field, "LFRF or AFRF", kind)
        first = at + _CHUNK.size
        if n_found != n + n_more or 4 * n_found > len(self.data) - first:
            self.fail(f"{field}, number", n + n_more, n_found)
        starts = np.frombuffer(self.data, "<u4", n, first).astype(np.int64)
        starts = starts[:n]
        if n and starts.max() > len(self.data) - 4:
            self.fail(f"{field}, place", f"below {len(self.data) - 3}", int(starts.max()))
        lengths = self._integers(starts)
        # No weight is in two lists, so that all of them together fit into the file.
        if 4 * int(lengths.sum()) > len(self.data):
            self.fail(f"{field}, length", "that of a list within the file", int(lengths.max()))
        if n and (starts + 4 + 4 * lengths).max() > len(self.data):
            self.fail(f"{field}, length", "that of a list within the file", int(lengths.max()))
        listed = np.repeat(np.arange(n), lengths)
        within = np.arange(len(listed)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return listed, self._integers(starts[listed] + 4 + 4 * within)

    def _integers(self, places: Numbers) -> Numbers:
        """The 32-bit numbers at these places, which are within the file."""
        if not len(places):
            return np.empty(0, np.int64)
        found = self.bytes[places[:, None] + np.arange(4)]
        return np.ascontiguousarray(found).view("<u4")[:, 0].astype(np.int64)

    def _unpacked(self, field: str, layout: struct.Struct, at: int) -> tuple[Any, ...]:
        if at < _HEADER.size or at + layout.size > len(self.data):
            self.fail(f"{field}, place", f"{_HEADER.size} to {len(self.data)}", at)
        return layout.unpack_from(self.data, at)


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return None
