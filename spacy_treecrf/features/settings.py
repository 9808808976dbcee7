"""Checks of the settings of features; each error names the setting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from spacy_treecrf.features.patterns import WordPattern
from spacy_treecrf.features.source import Window

MAX_OFFSET = 64
_NAME = re.compile(r"\w[\w-]*")


def refused(setting: str, found: Any, expected: str) -> ValueError:
    return ValueError(f"treecrf: setting {setting!r} is {found!r}; use {expected}")


def checked_window(setting: str, offsets: Any, may_be_empty: bool = False) -> Window:
    """The offsets of a window, in rising order."""
    expected = f"different whole numbers from -{MAX_OFFSET} to {MAX_OFFSET}, such as [-1, 0, 1]"
    if not isinstance(offsets, list | tuple) or not (offsets or may_be_empty):
        raise refused(setting, offsets, expected)
    if not all(_is_integer(o) and -MAX_OFFSET <= o <= MAX_OFFSET for o in offsets):
        raise refused(setting, offsets, expected)
    if len(set(offsets)) < len(offsets):
        raise refused(setting, offsets, expected)
    return tuple(sorted(int(o) for o in offsets))


def checked_windows(setting: str, windows: Any) -> dict[str, Window]:
    """The windows, by name."""
    if not isinstance(windows, dict):
        raise refused(setting, windows, 'names with their windows, such as {"name": [-1, 0, 1]}')
    return {
        name: checked_window(f"{setting}.{name}", window)
        for name, window in _named(setting, windows)
    }


def checked_lengths(setting: str, lengths: Any, low: int, high: int) -> list[int]:
    expected = f"a list of different whole numbers from {low} to {high}; [] for none"
    if not isinstance(lengths, list | tuple):
        raise refused(setting, lengths, expected)
    if not all(_is_integer(n) and low <= n <= high for n in lengths):
        raise refused(setting, lengths, expected)
    if len(set(lengths)) < len(lengths):
        raise refused(setting, lengths, expected)
    return [int(n) for n in lengths]


def checked_choices(setting: str, values: Any, choices: Sequence[str]) -> list[str]:
    expected = "a list of " + ", ".join(map(repr, choices)) + ", each at most once"
    if not isinstance(values, list | tuple) or len(set(map(str, values))) < len(values):
        raise refused(setting, values, expected)
    if not all(isinstance(value, str) and value in choices for value in values):
        raise refused(setting, values, expected)
    return list(values)


def checked_patterns(setting: str, patterns: Any) -> dict[str, WordPattern]:
    if not isinstance(patterns, dict):
        raise refused(
            setting, patterns, 'names with regular expressions: {"year": "^[0-9]{4}\\\\Z"}'
        )
    compiled = {}
    for name, pattern in _named(setting, patterns):
        try:
            compiled[name] = WordPattern(pattern)
        except (re.error, TypeError, ValueError, OverflowError, RecursionError) as error:
            expected = f"a regular expression of Python's re that ends in time ({error})"
            raise refused(f"{setting}.{name}", pattern, expected) from error
    return compiled


def checked_groups(setting: str, groups: Any) -> dict[str, list[str]]:
    """The groups of each grouping, as strings of their characters."""
    expected = 'names with groups of characters, each in one of them: {"charge": ["kr", "de"]}'
    if not isinstance(groups, dict):
        raise refused(setting, groups, expected)
    checked: dict[str, list[str]] = {}
    for name, members in _named(setting, groups):
        if not isinstance(members, list | tuple) or not members:
            raise refused(f"{setting}.{name}", members, expected)
        if not all(isinstance(group, str) and group for group in members):
            raise refused(f"{setting}.{name}", members, expected)
        characters = "".join(members)
        if len(set(characters)) < len(characters):
            raise refused(f"{setting}.{name}", members, expected)
        checked[name] = list(members)
    return checked


def checked_gazetteers(setting: str, lists: Any) -> dict[str, list[str] | Path]:
    expected = 'names with phrases, {"city": ["New York", ...]}, or with the path of a text file'
    if not isinstance(lists, dict):
        raise refused(setting, lists, expected)
    checked: dict[str, list[str] | Path] = {}
    for name, phrases in _named(setting, lists):
        if isinstance(phrases, str | Path) and str(phrases).strip():
            checked[name] = Path(phrases)
        elif isinstance(phrases, list | tuple) and all(isinstance(p, str) for p in phrases):
            checked[name] = list(phrases)
        else:
            raise refused(f"{setting}.{name}", phrases, expected)
    return checked


def checked_integer(setting: str, value: Any, allowed: Iterable[int], expected: str) -> int:
    if not _is_integer(value) or value not in allowed:
        raise refused(setting, value, expected)
    return int(value)


def _named(setting: str, table: dict[Any, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in table.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise refused(setting, name, "names of letters, digits, '_' and '-'")
        yield name, value


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
