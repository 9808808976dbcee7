"""Typed, checked reading of a stored state: no kernel ever sees a value it did not expect."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

ScalarT = TypeVar("ScalarT", bound=np.generic)

_REMEDY = "the model is damaged, edited or of another version: save or train it again"
_SHOWN_CHARACTERS = 60


class StateReader:
    """A reader of one table (dict) of a state; every wrong field is a ValueError that names it.

    Read each field once with the method of its type, then call `done()` on the outermost table.

    state: The table, as `to_state` made it or as it came out of a file.
    where: What the state belongs to; error messages start with it.
    path: Dotted name of this table inside the state, empty for the outermost.
    """

    def __init__(self, state: Any, where: str = "model", path: str = "") -> None:
        self.where = where
        self.path = path
        self._read: set[str] = set()
        self._nested: list[StateReader] = []
        if not isinstance(state, dict):
            subject = f"{where} field {path!r}" if path else where
            found = describe_value(state)
            raise ValueError(
                f"treecrf: {subject}: expected a table of fields, found {found}; {_REMEDY}"
            )
        self._state: dict[str, Any] = state

    def integer(self, name: str, low: int | None = None, high: int | None = None) -> int:
        """An integer from low to high, both included."""
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not _within(value, low, high):
            self.fail(name, "an integer" + _range_text(low, high), describe_value(value))
        return value

    def number(self, name: str, low: float | None = None, high: float | None = None) -> float:
        """A finite number from low to high, both included."""
        value = self._get(name)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not _is_finite(value)
            or not _within(value, low, high)
        ):
            self.fail(name, "a finite number" + _range_text(low, high), describe_value(value))
        return float(value)

    def string(self, name: str, choices: Sequence[str] | None = None) -> str:
        """A text, one of `choices` if they are given."""
        value = self._get(name)
        if not isinstance(value, str) or (choices is not None and value not in choices):
            expected = "a text" if choices is None else "one of " + ", ".join(map(repr, choices))
            self.fail(name, expected, describe_value(value))
        return value

    def boolean(self, name: str) -> bool:
        """True or False."""
        value = self._get(name)
        if not isinstance(value, bool):
            self.fail(name, "true or false", describe_value(value))
        return value

    def strings(self, name: str, length: int | None = None, unique: bool = False) -> list[str]:
        """A list of texts, of the given length, without repetition if `unique`."""
        values = self._list(name, "texts", length)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                self.fail(name, "a list of texts", f"{describe_value(value)} at [{index}]")
        if unique and len(set(values)) < len(values):
            repeated = Counter(values).most_common(1)[0][0]
            self.fail(
                name, "a list of different texts", f"{describe_value(repeated)} more than once"
            )
        return values

    def array(
        self,
        name: str,
        dtype: type[ScalarT],
        shape: Sequence[int | None],
        low: float | None = None,
        high: float | None = None,
        finite: bool = True,
    ) -> npt.NDArray[ScalarT]:
        """An array, C-contiguous and writable, copied only if it is not yet.

        dtype: The exact type of the elements; nothing is converted.
        shape: The exact shape, with None for any size.
        low, high: Bounds of every element, both included. NaN is within no bounds.
        finite: Refuse infinities and NaN.
        """
        value = self._get(name)
        if not isinstance(value, np.ndarray) or value.dtype != np.dtype(dtype):
            self.fail(name, f"an array of {np.dtype(dtype)}", describe_value(value))
        if value.ndim != len(shape) or any(
            wanted is not None and wanted != size
            for wanted, size in zip(shape, value.shape, strict=True)
        ):
            self.fail(name, f"an array of shape {_shape_text(shape)}", f"shape {value.shape}")
        if finite and value.dtype.kind == "f" and not (good := np.isfinite(value)).all():
            self._fail_at(name, value, int(good.argmin()), "finite values")
        if value.size and (low is not None or high is not None):
            self._check_range(name, value, low, high)
        array = np.require(value, requirements=["C_CONTIGUOUS", "ALIGNED", "WRITEABLE"])
        return array.astype(dtype, copy=False)

    def nested(self, name: str) -> StateReader:
        """A reader of a nested table, whose unknown fields are found by this table's `done()`."""
        nested = StateReader(self._get(name), self.where, self._dotted(name))
        self._nested.append(nested)
        return nested

    def nested_list(self, name: str, length: int | None = None) -> list[StateReader]:
        """Readers of a list of nested tables."""
        nested = [
            StateReader(table, self.where, f"{self._dotted(name)}[{index}]")
            for index, table in enumerate(self._list(name, "tables", length))
        ]
        self._nested.extend(nested)
        return nested

    def table(self, name: str) -> dict[str, Any]:
        """A nested table as it is, for a reader that checks it by itself."""
        value = self._get(name)
        if not isinstance(value, dict):
            self.fail(name, "a table of fields", describe_value(value))
        return value

    def value(self, name: str) -> Any:
        """A field as it is, for a caller that checks it and calls `fail`."""
        return self._get(name)

    def has(self, name: str) -> bool:
        """Whether the field is there: files of older versions lack what came later."""
        return name in self._state

    def is_none(self, name: str) -> bool:
        """Whether an optional field, which must be there all the same, is empty."""
        return self._get(name) is None

    def done(self) -> None:
        """Refuse fields that nobody has read, here and in the nested tables."""
        unknown = [name for name in self._state if name not in self._read]
        if unknown:
            names = ", ".join(repr(self._dotted(str(name))) for name in unknown[:5])
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            raise ValueError(f"treecrf: {self.where} has unknown fields: {names}{more}; {_REMEDY}")
        for nested in self._nested:
            nested.done()

    def fail(self, name: str, expected: str, found: str) -> NoReturn:
        """Raise the error of a field; also for the checks that only the model can make."""
        raise ValueError(
            f"treecrf: {self.where} field {self._dotted(name)!r}: "
            f"expected {expected}, found {found}; {_REMEDY}"
        )

    def _get(self, name: str) -> Any:
        self._read.add(name)
        if name not in self._state:
            self.fail(name, "a value", "no such field")
        return self._state[name]

    def _list(self, name: str, of: str, length: int | None) -> list[Any]:
        values = self._get(name)
        if not isinstance(values, list):
            self.fail(name, f"a list of {of}", describe_value(values))
        if length is not None and len(values) != length:
            self.fail(name, f"a list of {length} {of}", describe_value(values))
        return values

    def _check_range(
        self, name: str, value: npt.NDArray[Any], low: float | None, high: float | None
    ) -> None:
        with np.errstate(invalid="ignore"):
            # Both find NaN if there is one.
            lowest, highest = int(value.argmin()), int(value.argmax())
        for index in (lowest, highest):
            # Compared as a Python number, which does not overflow.
            if not _within(value.flat[index].item(), low, high):
                self._fail_at(name, value, index, f"values{_range_text(low, high)}")

    def _fail_at(self, name: str, value: npt.NDArray[Any], index: int, expected: str) -> NoReturn:
        place = [int(i) for i in np.unravel_index(index, value.shape)]
        self.fail(name, expected, f"{value.flat[index].item()} at {place}")

    def _dotted(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def describe_value(value: Any) -> str:
    """A value in a few words for an error message, however large or strange it is."""
    if value is None:
        return "nothing (None)"
    if isinstance(value, np.ndarray):
        kind = "an array" if type(value) is np.ndarray else f"a {type(value).__name__}"
        return f"{kind} of {value.dtype}, shape {value.shape}"
    if isinstance(value, dict):
        return f"a table of {len(value)} fields"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, str):
        if len(value) > _SHOWN_CHARACTERS:
            return f"the text {value[:_SHOWN_CHARACTERS]!r}... of {len(value)} characters"
        return f"the text {value!r}"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, bool | int | float):
        return repr(value)
    return f"a value of type {type(value).__name__}"


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond the range of a double
        return False


def _range_text(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {low} to {high}"
    if low is not None:
        return f" of at least {low}"
    return "" if high is None else f" of at most {high}"


def _shape_text(shape: Sequence[int | None]) -> str:
    sizes = ["any" if size is None else str(size) for size in shape]
    return "(" + ", ".join(sizes) + ("," if len(sizes) == 1 else "") + ")"
