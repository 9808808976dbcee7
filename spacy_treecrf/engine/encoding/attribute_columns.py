"""Columns of models that CRFsuite has trained: an attribute is a text, and its value is a weight.

Dicts are read as python-crfsuite reads them: {"word": "x"}, {"word": ["x"]}, {"word": {"x": True}}
and ["word:x"] all are the attribute "word:x". What an item says twice counts twice, and a number is
the value of an attribute.

Sequences hold features and no values. So an attribute that may have any value has further features
behind all attributes, one for each binary digit of a value and each sign, whose weights are the
attribute's weight times the digit: 2.5 is the digits 2 and 0.5. A value is rounded to a multiple of
the smallest digit, 2**-32, and one that is rounded to 0 has no feature. Other attributes may have
whole values: their feature is then repeated in the row.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.cached import cached
from spacy_treecrf.engine.encoding.columns import (
    BLOCK_BYTES,
    PAST_ALL_SLOTS,
    Columns,
    EncodedSequences,
)
from spacy_treecrf.engine.encoding.feature_dicts import (
    ITEMS,
    NUMBERS,
    VALUES,
    Events,
    iterate,
    narrow_ranges,
)
from spacy_treecrf.engine.encoding.missing_methods import ABSENT_METHOD
from spacy_treecrf.engine.encoding.stored_events import kept_events
from spacy_treecrf.engine.row_storage import IN_MEMORY, RowStorage
from spacy_treecrf.engine.sequences import ABSENT
from spacy_treecrf.storage.state_reader import StateReader

SEPARATOR = ":"
LEAST_EXPONENT, EXPONENTS = -32, 44
# What the digits stand for, negative ones behind the others. shape: (n_digits,)
DIGITS = np.concatenate([s * 2.0 ** np.arange(EXPONENTS) for s in (1, -1)]) * 2.0**LEAST_EXPONENT
N_DIGITS = len(DIGITS)
VALUE_LIMIT = 2.0 ** (LEAST_EXPONENT + EXPONENTS)
MAX_REPEATS = 1000
ANY_COUNT = 2**31 - 1  # how often an attribute was seen is not known: often enough for any test
# Attributes without a separator that are columns of their own; of more, all are one column.
MAX_FLAG_COLUMNS = 1024
NUMBER_FIELD = "number_attributes"


@dataclass(frozen=True)
class AttributeColumns(Columns):
    """The attributes of a CRFsuite model as features, and the digits of those with any value."""

    # shape: (n_numbers,), rising: the attributes whose digits are features
    number_attributes: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))

    @property
    def n_attributes(self) -> int:
        return len(self.feature_names) - N_DIGITS * len(self.number_attributes)

    def encode_blocks(
        self, X: Iterable[Iterable[Any]], name: str = "X"
    ) -> Iterator[EncodedSequences]:
        """What `encode` returns, block by block, with repeated features for repeated attributes.

        `encode`, which is for training, has each feature of a row once.
        """
        events = self.item_ids.read(X, name)
        for first, last in narrow_ranges(events, 0, BLOCK_BYTES // 4):
            part = events.part(first, last)
            widths = np.diff(part.ends)
            slots = np.arange(int(widths.max(initial=0)))
            feature_ids = np.full((part.n_rows, len(slots)), ABSENT, np.int32)
            feature_ids[slots < widths[:, None]] = part.ids
            yield part.offsets, feature_ids, np.empty((part.n_rows, 0), np.uint8)

    def read(
        self, X: Iterable[Iterable[Any]], name: str = "X", storage: RowStorage = IN_MEMORY
    ) -> Events:
        return kept_events(storage, self.item_ids.read(X, name))

    @cached
    def item_ids(self) -> AttributeIds:  # type: ignore[override]
        n = self.n_attributes
        digits = {a: n + N_DIGITS * j for j, a in enumerate(self.number_attributes.tolist())}
        return AttributeIds({a: i for i, a in enumerate(self.feature_names[:n])}, digits)


def attribute_columns(
    attributes: list[str], number_attributes: npt.NDArray[np.int32]
) -> AttributeColumns:
    """The columns of these attributes.

    number_attributes: (n_numbers,), rising: the attributes that may have any value.
    """
    digits = [f"{attributes[a]} × {digit:g}" for a in number_attributes for digit in DIGITS]
    columns: dict[str, int] = {}
    keys = keys_of(attributes)
    column_of = [columns.setdefault(key, len(columns)) for key in keys]
    n_features = len(attributes) + len(digits)
    slots = np.tile(np.array([0, PAST_ALL_SLOTS], np.int32), (n_features, 1))
    own = np.array(column_of, np.int32)
    return AttributeColumns(
        feature_names=[*attributes, *digits],
        counts=np.full(n_features, ANY_COUNT, np.int64),
        column_of=np.concatenate([own, np.repeat(own[number_attributes], N_DIGITS)]),
        slot_range=slots,
        slot_keys=[],
        n_shared_slots=min(1, n_features),
        column_names=list(columns),
        numeric_names=[],
        bin_edges=[],
        bin_values=np.empty((0, 256)),
        number_attributes=number_attributes,
    )


def keys_of(attributes: list[str]) -> list[str]:
    """The key that each attribute is probably a value of, or the attribute itself if of none.

    Keys and values may both hold separators. Of the ways to cut an attribute, the one whose key
    most attributes have before their last separator is taken.
    """
    n_with: dict[str, int] = {}
    for attribute in attributes:
        key, separator, _ = attribute.rpartition(SEPARATOR)
        if separator:
            n_with[key] = n_with.get(key, 0) + 1
    keys = [_likeliest_key(attribute, n_with) for attribute in attributes]
    if sum(key is attribute for key, attribute in zip(keys, attributes, strict=True)) > (
        MAX_FLAG_COLUMNS
    ):
        pairs = zip(keys, attributes, strict=True)
        return ["" if key is attribute else key for key, attribute in pairs]
    return keys


def _likeliest_key(attribute: str, n_with: dict[str, int]) -> str:
    best, most = attribute, 1  # the only value of its key is more likely none
    cut = attribute.find(SEPARATOR)
    while cut >= 0:
        n = n_with.get(attribute[:cut], 0)
        if n > most:
            best, most = attribute[:cut], n
        cut = attribute.find(SEPARATOR, cut + 1)
    return best


def columns_from_state(state: dict[str, Any]) -> Columns:
    """The columns of a stored CRF, of either kind; every field is checked."""
    if not isinstance(state, dict) or NUMBER_FIELD not in state:
        return Columns.from_state(state)
    reader = StateReader({NUMBER_FIELD: state[NUMBER_FIELD]}, path="columns")
    rest = {name: value for name, value in state.items() if name != NUMBER_FIELD}
    checked = Columns.from_state(rest)
    if checked.slot_keys or checked.numeric_names or checked.missing != ABSENT_METHOD:
        reader.fail(NUMBER_FIELD, "no keys, numeric columns and treatment of gaps beside it", "one")
    most = len(checked.feature_names)
    numbers = reader.array(NUMBER_FIELD, np.int32, (None,), low=0, high=max(0, most - 1))
    n_attributes = most - N_DIGITS * len(numbers)
    if n_attributes < 0 or (len(numbers) and int(numbers.max()) >= n_attributes):
        reader.fail(NUMBER_FIELD, f"attributes before {N_DIGITS} digits for each", "others")
    if (np.diff(numbers) <= 0).any():
        reader.fail(NUMBER_FIELD, "rising numbers", "others")
    own = {name: getattr(checked, name) for name in checked.__dataclass_fields__}
    return AttributeColumns(**own, number_attributes=numbers)


@dataclass(frozen=True)
class AttributeIds:
    """The id of every attribute, and the id of the first digit of those that have digits."""

    known: dict[str, int]
    digits: dict[int, int]

    def read(self, X: Iterable[Iterable[Any]], name: str) -> Events:
        """Read every item of X once; errors call X by the name. Ids of a row rise."""
        ids, widths, lengths = array("i"), array("q"), array("q")
        for s, sequence in enumerate(iterate(X, name, name)):
            n_rows = 0
            try:
                for item in iterate(sequence, f"{name}[{s}]", name):
                    found = self._read_item(item)
                    ids.fromlist(found)
                    widths.append(len(found))
                    n_rows += 1
            except _Refused as refused:
                message = f"treecrf: {name}[{s}][{n_rows}] {refused}"
                raise refused.kind(message) from None
            except RecursionError:
                message = f"treecrf: {name}[{s}][{n_rows}] is nested too deep; flatten it"
                raise ValueError(message) from None
            lengths.append(n_rows)
        return Events(
            offsets=np.array(list(accumulate(lengths, initial=0)), np.int64),
            ends=np.array(list(accumulate(widths, initial=0)), np.int64),
            ids=np.array(ids, np.int32),
            values=np.empty(0),
        )

    def _read_item(self, item: object) -> list[int]:
        """The ids of an item, rising; an attribute of value 1 is one id, others are several."""
        found: list[int] = []
        values: list[tuple[int, float]] = []
        known = self.known

        def add(attribute: str, value: float) -> None:
            i = known.get(attribute)
            if i is None and "\0" in attribute:  # where CRFsuite's texts end
                i = known.get(attribute.partition("\0")[0])
            if i is None:
                return
            if value == 1.0:
                found.append(i)
            else:
                values.append((i, value))

        if type(item) is dict:
            for key, value in item.items():
                if type(value) is str and type(key) is str:
                    i = known.get(f"{key}:{value}")
                    if i is not None:
                        found.append(i)
                        continue
                _read_entry(key, value, "", add)
        else:
            _read_collection(item, "", add)
        if not values and len(set(found)) == len(found):
            found.sort()
            return found
        return self._with_values(found, values)

    def _with_values(self, found: list[int], values: list[tuple[int, float]]) -> list[int]:
        """The ids of attributes of these values, and of those that were found with value 1."""
        total: dict[int, float] = {}
        for i in found:
            total[i] = total.get(i, 0.0) + 1.0
        for i, value in values:
            total[i] = total.get(i, 0.0) + value
        ids: list[int] = []
        for i, value in total.items():
            if value == 1.0:
                ids.append(i)
            elif i in self.digits:
                ids += self._digits_of(i, value)
            elif value.is_integer() and 0.0 <= value <= MAX_REPEATS:
                ids += [i] * int(value)
            else:
                raise _Refused(ValueError, self._no_number(i, value))
        return sorted(ids)

    def _digits_of(self, i: int, value: float) -> list[int]:
        if abs(value) >= VALUE_LIMIT:
            problem = (
                f"gives {self._name(i)!r} the value {value:g}; this model takes values below "
                f"{VALUE_LIMIT:g}: scale it down in training, or train a new model"
            )
            raise _Refused(ValueError, problem)
        first = self.digits[i] + (EXPONENTS if value < 0.0 else 0)
        # Scores have 24 bits, so that more of a value would not be seen in them.
        bits = round(abs(float(np.float32(value))) * 2.0**-LEAST_EXPONENT)
        bits = min(bits, 2**EXPONENTS - 1)
        return [first + k for k in range(bits.bit_length()) if bits >> k & 1]

    def _no_number(self, i: int, value: float) -> str:
        return (
            f"gives {self._name(i)!r} the value {value:g}; the model was read for whole values of "
            f"this attribute from 0 to {MAX_REPEATS}: read it with "
            f"BoostedCRF.from_crfsuite(path, numbers=[{self._name(i)!r}])"
        )

    def _name(self, i: int) -> str:
        return next(name for name, own in self.known.items() if own == i)


class _Refused(Exception):
    """Something in an item that cannot be read; `read` adds the place."""

    def __init__(self, kind: type[Exception], problem: str) -> None:
        super().__init__(problem)
        self.kind = kind


Add = Callable[[str, float], None]


def _read_entry(key: object, value: object, before: str, add: Add) -> None:
    """Add the attributes of one entry of a dict; before: the keys above it, each with its ":"."""
    name = before + _text(key)
    if isinstance(value, (str, bytes)):
        add(f"{name}:{_text(value)}", 1.0)
    elif value is None:
        pass
    elif isinstance(value, (bool, np.bool_, *NUMBERS)):
        number = _number(name, value)
        if number:
            add(name, number)
    elif isinstance(value, (dict, list, tuple, set, frozenset)):
        _read_collection(value, name + SEPARATOR, add)
    else:
        raise _Refused(TypeError, f"[{name!r}] is of type {type(value).__name__}; {VALUES}")


def _read_collection(item: object, before: str, add: Add) -> None:
    """Add the attributes of a dict or a list of texts; before: as in `_read_entry`."""
    if isinstance(item, dict):
        for key, value in item.items():
            _read_entry(key, value, before, add)
    elif isinstance(item, (list, tuple, set, frozenset)):
        for text in item:
            add(before + _text(text), 1.0)
    else:
        raise _Refused(TypeError, f"is of type {type(item).__name__}; {ITEMS}")


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise _Refused(ValueError, f"[{name!r}] is {value}; give a finite number")
    return number


def _text(value: object) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="surrogateescape")
    raise _Refused(
        TypeError, f"holds {value!r} of type {type(value).__name__}; keys and texts must be str"
    )
