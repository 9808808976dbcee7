"""Values that users bring: extension attributes of tokens, and a function of the doc."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc, Token
from spacy.vocab import Vocab

from spacy_treecrf.features.batch import Batch
from spacy_treecrf.features.lexemes import PRESENT
from spacy_treecrf.features.source import Reading, Source, Texts, Window, column_name

FeatureFunction = Callable[[Doc], Sequence[Mapping[str, Any]]]
VALUES = "use a str, bool, finite number, None, or a list or vector of numbers"
_NUMBERS = (int, float, np.integer, np.floating)


class CustomSource(Source):
    """Values of any kind under a prefix; the kinds are found as the values are read.

    A str is a category, True a flag (False is absent), a number a numeric column, a vector a
    numeric column for each dimension. None and NaN are missing.
    """

    cached = False
    reads_annotations = True
    prefix: str
    window: Window

    def window_of(self, column: str) -> Window | None:
        return self.window if column.startswith(self.prefix) else None

    def read(self, batch: Batch, positions: npt.NDArray[np.int64]) -> Reading:
        """The values of all tokens: this source has no keys, so `positions` holds every token."""
        collected = _Collected(batch.n_tokens)
        i = 0
        for d, doc in enumerate(batch.docs):
            for values in self._values(doc, d):
                for key, value in values.items():
                    collected.add(i, key, value)
                i += 1
        return collected.reading(self.prefix)

    @abstractmethod
    def _values(self, doc: Doc, d: int) -> Sequence[Mapping[str, Any]]:
        """A dict of values for each token of the d-th doc."""


class ExtensionSource(CustomSource):
    """The extension attribute token._.name."""

    def __init__(self, name: str, window: Window) -> None:
        self.extension = name
        self.name = self.prefix = f"_.{name}"
        self.window = window

    def window_of(self, column: str) -> Window | None:
        rest = column.removeprefix(self.prefix)
        own = rest != column and (not rest or (rest[0] == "." and rest[1:].isdecimal()))
        return self.window if own else None

    def check(self, vocab: Vocab) -> None:
        if not Token.has_extension(self.extension):
            raise ValueError(
                f"treecrf: setting 'extensions' names token._.{self.extension}, which does not "
                f"exist; call Token.set_extension({self.extension!r}, default=None) before"
            )

    def _values(self, doc: Doc, d: int) -> Sequence[Mapping[str, Any]]:
        self.check(doc.vocab)
        return [{"": token._.get(self.extension)} for token in doc]


class FunctionSource(CustomSource):
    """A function from a doc to a dict of values for each token."""

    name = "function"
    prefix = "function."

    def __init__(self, function: FeatureFunction, window: Window) -> None:
        self.function = function
        self.window = window

    def _values(self, doc: Doc, d: int) -> Sequence[Mapping[str, Any]]:
        values = self.function(doc)
        try:
            dicts = list(values)
        except TypeError:
            dicts = []
        if len(dicts) != len(doc) or not all(isinstance(value, Mapping) for value in dicts):
            raise ValueError(
                f"treecrf: the function of setting 'function' must return a list with a dict of "
                f"values for each of the {len(doc)} tokens of a doc; it returned "
                f"{type(values).__name__} with {len(dicts)} items"
            )
        return dicts


class _Collected:
    """Values of tokens by column, as they come."""

    def __init__(self, n_tokens: int) -> None:
        self.n_tokens = n_tokens
        self.texts: dict[str, list[str | None]] = {}
        self.numbers: dict[str, npt.NDArray[np.float64]] = {}
        self.missing: dict[str, list[int]] = {}

    def add(self, i: int, key: Any, value: Any) -> None:
        if not isinstance(key, str):
            raise ValueError(f"treecrf: a feature has the name {key!r}; names are texts")
        if value is None:
            self.missing.setdefault(key, []).append(i)
        elif isinstance(value, str):
            self._text(i, key, value)
        elif isinstance(value, bool | np.bool_):
            if value:
                self._text(i, key, PRESENT)
        elif isinstance(value, _NUMBERS):
            self._number(i, key, value)
        elif isinstance(value, list | tuple | np.ndarray):
            self._vector(i, key, value)
        else:
            raise _bad(key, value)

    def reading(self, prefix: str) -> Reading:
        texts: dict[str, Texts] = {
            prefix + column_name(key): values for key, values in self.texts.items()
        }
        numbers = {prefix + column_name(key): values for key, values in self.numbers.items()}
        missing = {
            prefix + column_name(key): np.isin(np.arange(self.n_tokens), where)
            for key, where in self.missing.items()
        }
        return Reading(texts, numbers, missing)

    def _text(self, i: int, key: str, value: str) -> None:
        column = self.texts.get(key)
        if column is None:
            column = self.texts[key] = [None] * self.n_tokens
        column[i] = value

    def _number(self, i: int, key: str, value: Any) -> None:
        column = self.numbers.get(key)
        if column is None:
            column = self.numbers[key] = np.full(self.n_tokens, np.nan)
        try:
            number = float(value)
        except OverflowError as error:  # an int beyond the range of a double
            raise _bad(key, value) from error
        if math.isinf(number):
            raise _bad(key, value)
        if math.isnan(number):
            self.missing.setdefault(key, []).append(i)
        column[i] = number

    def _vector(self, i: int, key: str, value: Any) -> None:
        for d, number in enumerate(value):
            if isinstance(number, bool | np.bool_) or not isinstance(number, _NUMBERS):
                raise _bad(key, value)
            self._number(i, f"{key}.{d}", number)


def _bad(key: Any, value: Any) -> ValueError:
    try:
        shown = repr(value)
    except ValueError:  # Python writes no int of more than 4,300 digits
        shown = f"<{type(value).__name__}>"
    shown = shown if len(shown) < 60 else shown[:60] + "..."
    where = f" of {key!r}" if key else ""
    return ValueError(f"treecrf: a token has the value {shown}{where} as a feature; {VALUES}")
