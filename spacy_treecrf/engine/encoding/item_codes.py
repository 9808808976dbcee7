"""Flat feature dicts as numbers: one lookup for each value, and one for the keys of each dict.

A value has the same code under all keys, so that dicts are read without looking at their keys one
by one: those of a whole dict are its shape, which few kinds of dicts have in common. A kernel then
makes an id of each code and key (`resolving`). What has no code, as a number other than 0 and 1,
is looked up by itself. Mostly a kernel reads dicts by itself, and there are no codes
(`dict_reading`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

# Codes of values; texts that training saw under keys with slots follow.
UNKNOWN_TEXT, ONE, ZERO, NONE, OTHER, FIRST_TEXT = range(6)
NOTHING = -1  # the id of what training did not see
ASK = -2  # instead of an id: what is to be looked up by itself
NO_SLOT = -1
MAX_SHAPES = 256  # that are kept
MAX_SHAPE_KEYS = 1024

Shape = npt.NDArray[np.int32]  # (n_keys, 4): the slot of texts, the ids of ONE, ZERO and NONE


class TextIds(NamedTuple):
    """The features of texts, by code; each text has one for each slot that it occurs in."""

    first: npt.NDArray[np.int32]  # shape: (n_codes + 1,)
    slot: npt.NDArray[np.int32]
    feature: npt.NDArray[np.int32]


class CodedItems(NamedTuple):
    """The codes of the values of some dicts, one dict after the other, and their shapes."""

    codes: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int64]  # shape: (n_items + 1,), the codes before each dict
    shape_of: npt.NDArray[np.int64]  # shape: (n_items,), where its shape begins in `shapes`
    shapes: Shape


class _Codes(dict[Any, int]):
    """Codes of values. Whatever equals 1, as True and 1.0, has the code of 1, and so on."""

    __slots__ = ()

    def __missing__(self, value: object) -> int:
        return UNKNOWN_TEXT if type(value) is str else OTHER


@dataclass(frozen=True)
class ItemCodes:
    """Codes of values and shapes of dicts under learned columns.

    new_shape: Makes the shape of keys, which are texts.
    """

    codes: _Codes
    text_ids: TextIds
    new_shape: Callable[[tuple[str, ...]], Shape]
    kept: dict[tuple[str, ...], Shape]

    def coded(self, items: Sequence[dict[str, Any]]) -> CodedItems:
        """The codes and shapes of dicts; raises some exception where one is not flat."""
        n = len(items)
        keys = list(map(tuple, items))
        if n and keys.count(keys[0]) == n:
            shapes = self.shape(keys[0])
            shape_of = np.zeros(n, np.int64)
        else:
            shapes, shape_of = self._shapes(keys)
        ends = np.zeros(n + 1, np.int64)
        np.cumsum(np.fromiter(map(len, items), np.int64, n), out=ends[1:])
        values = chain.from_iterable(map(dict.values, items))
        codes = np.fromiter(map(self.codes.__getitem__, values), np.int32, int(ends[-1]))
        return CodedItems(codes, ends, shape_of, shapes)

    def shape(self, keys: tuple[str, ...]) -> Shape:
        """The shape of dicts with these keys; raises TypeError where one is no text."""
        shape = self.kept.get(keys)
        if shape is None:
            if len(keys) > MAX_SHAPE_KEYS or not all(type(key) is str for key in keys):
                raise TypeError
            shape = self.new_shape(keys)
            if len(self.kept) >= MAX_SHAPES:
                self.kept.clear()
            self.kept[keys] = shape
        return shape

    def _shapes(self, keys: list[tuple[str, ...]]) -> tuple[Shape, npt.NDArray[np.int64]]:
        """The different shapes, one behind the other, and where the shape of each dict begins."""
        places = dict.fromkeys(keys, 0)
        if len(places) > MAX_SHAPES:
            raise TypeError
        shapes, n = [np.empty((0, 4), np.int32)], 0
        for own in places:
            places[own] = n
            shapes.append(self.shape(own))
            n += len(own)
        found = np.fromiter(map(places.__getitem__, keys), np.int64, len(keys))
        return np.concatenate(shapes), found


def item_codes(
    texts: dict[str, dict[Any, int]], new_shape: Callable[[tuple[str, ...]], Shape]
) -> ItemCodes:
    """Codes for values of learned columns. texts: By key, in the order of slots, then by value."""
    codes = _Codes({1: ONE, 0: ZERO, None: NONE})
    add = codes.setdefault
    used: list[int] = []
    slots: list[int] = []
    features: list[int] = []
    for slot, table in enumerate(texts.values()):
        own = [text for text in table if type(text) is str]
        used += [add(text, len(codes) + FIRST_TEXT - 3) for text in own]
        slots += [slot] * len(own)
        features += map(table.__getitem__, own)
    order = np.argsort(np.array(used, np.int32), kind="stable")
    counts = np.bincount(used, minlength=len(codes) + FIRST_TEXT - 3)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    text_ids = TextIds(first, np.array(slots, np.int32)[order], np.array(features, np.int32)[order])
    return ItemCodes(codes, text_ids, new_shape, {})
