"""Values kept for docs as long as somebody else keeps the docs."""

from __future__ import annotations

from typing import Generic, TypeVar
from weakref import ref

from spacy.tokens import Doc

Value = TypeVar("Value")

FEW = 64  # values that are not worth a search for docs that are gone


class DocTable(Generic[Value]):
    """A value for each of some docs, which it does not keep alive.

    Unlike in a `WeakKeyDictionary`, no code runs when a doc goes: Python would lose an interrupt
    that comes just then. Values of docs that are gone are dropped when the table has doubled.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[ref[Doc], Value]] = {}
        self._most = FEW

    def __len__(self) -> int:
        """How many values are kept, also of docs that went since the last search."""
        return len(self._entries)

    def get(self, doc: Doc) -> Value | None:
        entry = self._entries.get(id(doc))
        # Another doc may have got the number of one that is gone.
        return entry[1] if entry is not None and entry[0]() is doc else None

    def __setitem__(self, doc: Doc, value: Value) -> None:
        if len(self._entries) >= self._most:
            kept = {key: entry for key, entry in self._entries.items() if entry[0]() is not None}
            self._entries, self._most = kept, max(FEW, 2 * len(kept))
        self._entries[id(doc)] = ref(doc), value

    def clear(self) -> None:
        self._entries = {}
