"""Settings: a field with its type, default, range or choices, and one sentence of help.

A class of settings is a frozen dataclass over `SettingsBase` whose fields are made by `integer`,
`number`, `boolean` and `choice`. From such a field follow: checking, the form in a model file,
the arguments of the architectures, the options of the command line, the tables of the
documentation.

Pydantic, which spaCy brings along, would check as well, but its import and a model of 33 fields
take 75 ms where `BoostedCRF()` takes 560 ms in a fresh process, and spaCy allows its versions 1
and 2, which differ. Nor is numpy imported here: the help of the command line needs settings.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from spacy_treecrf.storage.state_reader import StateReader

T = TypeVar("T")
SettingsT = TypeVar("SettingsT", bound="SettingsBase")

_KEY = "setting"  # of the metadata of a dataclass field
_ALWAYS_STORED: Any = object()


def refused(name: str, value: Any, expected: str) -> ValueError:
    """The error of a setting: its name, its value, and what to use instead."""
    return ValueError(f"treecrf: setting {name!r} is {value!r}; use {expected}")


@dataclass(frozen=True)
class Setting(ABC):
    """What values a setting may have, and what it means.

    help: One sentence for people who choose a value.
    older: The value that models have which were stored before there was this setting. Without
        one, a model file that lacks the setting is refused.
    of_the_run: Whether it belongs to a run of the program and changes no prediction. A model file
        holds its default, so that equal models have equal files, and so has a loaded model.
    """

    help: str
    older: Any = dataclasses.field(default=_ALWAYS_STORED, kw_only=True)
    of_the_run: bool = dataclasses.field(default=False, kw_only=True)

    def from_state(self, name: str, reader: StateReader) -> Any:
        """The value out of a model file, which may be older than the setting."""
        if self.older is not _ALWAYS_STORED and not reader.has(name):
            return self.older
        return self.read(name, reader)

    @property
    @abstractmethod
    def type_text(self) -> str:
        """The type as docstrings write it: `int or None`."""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """The values as error messages and tables name them: `an integer from 0 to 4`."""

    @abstractmethod
    def check(self, name: str, value: Any) -> Any:
        """The value as a plain Python object; a wrong one is refused by the setting's name."""

    @abstractmethod
    def parse(self, text: str) -> Any:
        """The value that a text on the command line means; the text itself if it means none."""

    @abstractmethod
    def read(self, name: str, reader: StateReader) -> Any:
        """The value out of a model file that has it."""

    def stored(self, name: str, value: Any) -> dict[str, Any]:
        """The fields of a model file that hold the value."""
        return {name: value}

    def shown(self, value: Any) -> str:
        """The value as docstrings and tables write it."""
        return shown(value)


class Word(NamedTuple):
    """A value that an integer setting may have instead of an integer, such as None or "all".

    means: What the word stands for, in error messages and tables.
    stored: How a model file writes it.
    decided: Whether training decides on an integer, so that no model file ever holds the word.
    """

    value: str | None
    means: str = ""
    stored: int | None = None
    decided: bool = False


@dataclass(frozen=True)
class Integer(Setting):
    """An integer from `low` to `high`, or one of some words."""

    low: int
    high: int
    words: tuple[Word, ...] = ()

    @property
    def type_text(self) -> str:
        return " or ".join(["int", *(shown(word.value) for word in self.words)])

    @property
    def allowed(self) -> str:
        text = f"an integer from {self.low} to {self.high}"
        for word in self.words:
            text += f", or {word.value!r}" + (f" for {word.means}" if word.means else "")
        return text

    def check(self, name: str, value: Any) -> Any:
        if type(value) is int and self.low <= value <= self.high:
            return value
        if value is None or isinstance(value, str):
            if any(value == word.value for word in self.words):
                return value
            raise refused(name, value, self.allowed)
        is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not is_integer or not self.low <= int(value) <= self.high:
            raise refused(name, value, self.allowed)
        return int(value)

    def parse(self, text: str) -> Any:
        for word in self.words:
            if text.lower() == str(word.value).lower():
                return word.value
        return _converted(int, text)

    def read(self, name: str, reader: StateReader) -> Any:
        words = {word.stored: word.value for word in self.words if not word.decided}
        if None in words and reader.is_none(name):
            return words[None]
        low = min([self.low, *(stored for stored in words if stored is not None)])
        value = reader.integer(name, low, self.high)
        return words.get(value, value)

    def stored(self, name: str, value: Any) -> dict[str, Any]:
        for word in self.words:
            if word.value == value and not word.decided:
                return {name: word.stored}
        return {name: value}


@dataclass(frozen=True)
class Number(Setting):
    """A finite number from `low` (or above it) to `high`."""

    low: float
    high: float
    above: bool  # whether `low` itself is refused

    @property
    def type_text(self) -> str:
        return "float"

    @property
    def allowed(self) -> str:
        first = f"a number {'above' if self.above else 'from'} {self.low:g}"
        if self.high == math.inf:
            return first if self.above else first + " on"
        return f"{first} to {self.high:g}"

    def check(self, name: str, value: Any) -> Any:
        plain = value
        if type(value) is not float:
            is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
            plain = _converted(float, value) if is_number else math.nan
        # NaN is within no range. An integer beyond the floats could not be converted.
        good = type(plain) is float and self.low <= plain <= self.high and plain < math.inf
        if not good or (self.above and plain == self.low):
            raise refused(name, value, self.allowed)
        return plain

    def parse(self, text: str) -> Any:
        return _converted(float, text)

    def read(self, name: str, reader: StateReader) -> Any:
        return reader.number(name, self.low, None if self.high == math.inf else self.high)


@dataclass(frozen=True)
class Boolean(Setting):
    """True or False."""

    @property
    def type_text(self) -> str:
        return "bool"

    @property
    def allowed(self) -> str:
        return "True or False"

    def check(self, name: str, value: Any) -> Any:
        if type(value) is bool:
            return value
        numpy = sys.modules.get("numpy")  # a value can be numpy's only if it is loaded
        if numpy is not None and isinstance(value, numpy.bool_):
            return bool(value)
        raise refused(name, value, self.allowed)

    def parse(self, text: str) -> Any:
        return {"true": True, "false": False}.get(text.lower(), text)

    def read(self, name: str, reader: StateReader) -> Any:
        return reader.boolean(name)


@dataclass(frozen=True)
class Choice(Setting):
    """One of some texts."""

    choices: tuple[str, ...]

    @property
    def type_text(self) -> str:
        return "{" + ", ".join(map(shown, self.choices)) + "}"

    @property
    def allowed(self) -> str:
        return "one of " + ", ".join(map(repr, self.choices))

    def check(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and value in self.choices:
            return str(value)
        raise refused(name, value, self.allowed)

    def parse(self, text: str) -> Any:
        return text

    def read(self, name: str, reader: StateReader) -> Any:
        return reader.string(name, self.choices)


# The makers of fields return a dataclass field, but say, as dataclasses.field does, that they
# return the default: so a type checker compares its type with the annotation.


def made(setting: Setting, default: T) -> T:
    """The field of a setting."""
    return dataclasses.field(default=default, metadata={_KEY: setting})


def integer(
    default: T,
    help: str,
    *,
    low: int,
    high: int,
    words: Sequence[Word] = (),
    older: Any = _ALWAYS_STORED,
    of_the_run: bool = False,
) -> T:
    setting = Integer(help, low, high, tuple(words), older=older, of_the_run=of_the_run)
    return made(setting, default)


def number(
    default: float,
    help: str,
    *,
    low: float,
    high: float = math.inf,
    above: bool = False,
    older: Any = _ALWAYS_STORED,
) -> float:
    return made(Number(help, low, high, above, older=older), default)


def boolean(default: bool, help: str, *, older: Any = _ALWAYS_STORED) -> bool:
    return made(Boolean(help, older=older), default)


def choice(default: str, help: str, choices: Sequence[str], *, older: Any = _ALWAYS_STORED) -> str:
    return made(Choice(help, tuple(choices), older=older), default)


def like(of: type[SettingsBase], name: str, *, default: Any = None, **changes: Any) -> Any:
    """The field of the same name in other settings, but for what is given here."""
    setting, old = of.settings()[name], of.defaults()[name]
    return made(dataclasses.replace(setting, **changes), old if default is None else default)


@dataclass(frozen=True)
class SettingsBase:
    """Settings that know how to check, read and store themselves."""

    def __post_init__(self) -> None:
        values = self.__dict__
        for name, setting in _settings_of(type(self)).items():
            value = values[name]
            plain = setting.check(name, value)
            if plain is not value:
                object.__setattr__(self, name, plain)

    @classmethod
    def settings(cls) -> dict[str, Setting]:
        """What each setting may be and means, by name, in the order of model files."""
        return dict(_settings_of(cls))

    @classmethod
    def names(cls) -> list[str]:
        return list(_settings_of(cls))

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        return {field.name: field.default for field in fields(cls)}

    @classmethod
    def of(cls: type[SettingsT], values: object) -> SettingsT:
        """Settings from the attributes of the same names."""
        return cls(**{name: getattr(values, name) for name in _settings_of(cls)})

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _settings_of(type(self))}

    def to_state(self) -> dict[str, Any]:
        """The settings as a model file holds them."""
        state: dict[str, Any] = {}
        defaults = self.defaults()
        for name, setting in _settings_of(type(self)).items():
            value = defaults[name] if setting.of_the_run else getattr(self, name)
            state |= setting.stored(name, value)
        return state

    @classmethod
    def from_state(cls: type[SettingsT], reader: StateReader) -> SettingsT:
        """Settings out of a model file; a value that is wrong or too much is refused by name."""
        settings = _settings_of(cls)
        values = {name: setting.from_state(name, reader) for name, setting in settings.items()}
        reader.done()
        defaults = cls.defaults()
        values |= {name: defaults[name] for name, own in settings.items() if own.of_the_run}
        return cls(**values)

    @classmethod
    def parsed(cls, name: str, text: str) -> Any:
        """The value of one setting, written as text; one that is wrong is refused with its help."""
        setting = _settings_of(cls)[name]
        try:
            return setting.check(name, setting.parse(text))
        except ValueError as error:
            raise ValueError(f"{error}. {setting.help}") from None


_SETTINGS: dict[type[SettingsBase], dict[str, Setting]] = {}  # of classes that were asked for


def _settings_of(cls: type[SettingsBase]) -> dict[str, Setting]:
    found = _SETTINGS.get(cls)
    if found is None:
        found = _SETTINGS[cls] = {field.name: field.metadata[_KEY] for field in fields(cls)}
    return found


def shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _converted(kind: type[int] | type[float], value: Any) -> Any:
    """The value as a number, or as it is where it is none."""
    try:
        return kind(value)
    except (ValueError, OverflowError):
        return value
