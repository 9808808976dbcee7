"""Regular expressions that answer in bounded time, whatever the text.

Python's `re` tries one way after the other: for `^(a+)+$` their number doubles with each character.
A flag only asks whether there is a match at all, so all ways can be followed at once, as a set of
states that each character moves on (K. Thompson, "Regular expression search algorithm", 1968):
the time is the length of the text times the size of the pattern. `re` is much faster where it has
few ways to try, so that it answers there, with the same answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

MAX_STEPS = 1e6  # of `re`, about 10 ms
MAX_STATES = 2000
_TYPES = re.ASCII | re.LOCALE | re.UNICODE
_MANY = 2**32 - 1  # how `re` writes "any number of times"

_UNSUPPORTED = {
    "ASSERT": "looking ahead or behind",
    "ASSERT_NOT": "looking ahead or behind",
    "GROUPREF": "a reference to a group",
    "GROUPREF_EXISTS": "a reference to a group",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repetition",
}


class WordPattern:
    """A pattern whose flag tells whether a text has a match anywhere, as `re.search` would."""

    def __init__(self, pattern: str) -> None:
        self.compiled = re.compile(pattern)
        parsed = _parser().parse(pattern)
        n_choices, nested = _choices(parsed)
        # The longest text that is left to `re`: each choice, and the start, has so many places.
        self.longest = -1 if nested else int(MAX_STEPS ** (1 / (n_choices + 1)))
        self.states: list[_State] | None = None
        try:
            self.states = _Builder().build(parsed)
        except _Unsupported as error:
            if nested:
                raise ValueError(
                    f"it repeats something that has repetitions or alternatives, beside {error}: "
                    "its time could double with each character"
                ) from error

    def __reduce__(self) -> tuple[type[WordPattern], tuple[str]]:
        return WordPattern, (self.compiled.pattern,)

    def found_in(self, text: str) -> bool:
        """Whether there is a match; none in a text too long for a pattern that only `re` knows."""
        if len(text) <= self.longest:
            return self.compiled.search(text) is not None
        return self.states is not None and _reaches_end(self.states, text)


class _Unsupported(Exception):
    """A part of a pattern that depends on more than the position in the text."""


@dataclass
class _State:
    """A state; a test is a compiled pattern of one character or of none.

    test: What has to match to go on to `after`; None for a state that is passed at no cost.
    width: Characters that the test takes: 0 or 1.
    """

    test: re.Pattern[str] | None
    width: int
    after: list[int]


def _reaches_end(states: list[_State], text: str) -> bool:
    """Follow all ways through the states at once; the last state is the end, 0 the beginning."""
    end = len(states) - 1
    known: dict[tuple[int, str], bool] = {}
    current: set[int] = set()
    for at in range(len(text) + 1):
        current.add(0)  # a match may begin anywhere
        waiting: list[int] = []
        todo, seen = list(current), set(current)
        while todo:
            number = todo.pop()
            if number == end:
                return True
            state = states[number]
            if state.width:
                waiting.append(number)
            elif state.test is None or state.test.match(text, at):
                fresh = [n for n in state.after if n not in seen]
                seen.update(fresh)
                todo.extend(fresh)
        if at == len(text):
            return False
        character = text[at]
        current = set()
        for number in waiting:
            key = (number, character)
            if key not in known:
                test = states[number].test
                known[key] = test is not None and test.match(character) is not None
            if known[key]:
                current.update(states[number].after)
    return False


class _Builder:
    """Turns a pattern as `re` has parsed it into states."""

    def __init__(self) -> None:
        self.states: list[_State] = []

    def build(self, parsed: Any) -> list[_State]:
        first = self._new(None, 0)
        last = self._sequence(parsed, first, parsed.state.flags)
        self.states[last].after.append(self._new(None, 0))
        return self.states

    def _new(self, test: re.Pattern[str] | None, width: int) -> int:
        if len(self.states) >= MAX_STATES:
            raise _Unsupported(f"more than {MAX_STATES} states")
        self.states.append(_State(test, width, []))
        return len(self.states) - 1

    def _sequence(self, nodes: Any, before: int, flags: int) -> int:
        """Add states for the nodes behind the state `before`; returns the last one."""
        for node in nodes:
            before = self._node(node, before, flags)
        return before

    def _node(self, node: tuple[Any, Any], before: int, flags: int) -> int:
        kind, value = str(node[0]), node[1]
        if kind in ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT"):
            return self._test(node, before, flags, width=int(kind != "AT"))
        if kind == "SUBPATTERN":
            _, more, fewer, inner = value
            if more & _TYPES:  # (?a:...) takes the place of the unicode that is the default
                flags &= ~_TYPES
            return self._sequence(inner, before, (flags | more) & ~fewer)
        if kind == "BRANCH":
            join = self._new(None, 0)
            for inner in value[1]:
                start = self._free(before)
                self.states[self._sequence(inner, start, flags)].after.append(join)
            return join
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, inner = value
            return self._repeat(low, int(high), inner, before, flags)
        raise _Unsupported(_UNSUPPORTED.get(kind, kind))

    def _test(self, node: tuple[Any, Any], before: int, flags: int, width: int) -> int:
        number = self._new(_compile([node], flags), width)
        self.states[before].after.append(number)
        return self._free(number)

    def _free(self, before: int) -> int:
        number = self._new(None, 0)
        self.states[before].after.append(number)
        return number

    def _repeat(self, low: int, high: int, inner: Any, before: int, flags: int) -> int:
        for _ in range(low):
            before = self._sequence(inner, self._free(before), flags)
        join = self._new(None, 0)
        self.states[before].after.append(join)
        if high >= _MANY:
            start = self._free(join)
            self.states[self._sequence(inner, start, flags)].after.append(join)
            return join
        for _ in range(high - low):
            before = self._sequence(inner, self._free(before), flags)
            self.states[before].after.append(join)
        return join


def _choices(nodes: Any, repeated: bool = False) -> tuple[int, bool]:
    """How many choices a pattern has, and whether one of them is within something repeated."""
    count, nested = 0, False
    for kind, value in nodes:
        parts, inside = _parts(str(kind), value), repeated
        if "REPEAT" in str(kind):
            low, high, _ = value
            inside = repeated or int(high) > 1
            count += low != high
            nested = nested or (repeated and low != high)
        elif str(kind) == "BRANCH":
            count += 1
            nested = nested or repeated
        for part in parts:
            more, deeper = _choices(part, inside)
            count, nested = count + more, nested or deeper
    return count, nested


def _parts(kind: str, value: Any) -> list[Any]:
    """The patterns within a node."""
    if kind == "BRANCH":
        return list(value[1])
    if kind in ("ASSERT", "ASSERT_NOT"):
        return [value[1]]
    if kind == "GROUPREF_EXISTS":
        return [part for part in value[1:] if part is not None]
    if kind == "ATOMIC_GROUP":
        return [value]
    return [value[-1]] if kind == "SUBPATTERN" or "REPEAT" in kind else []


def _parser() -> Any:
    try:
        from re import _parser as parser  # type: ignore[attr-defined]
    except ImportError:  # Python 3.10
        import sre_parse as parser
    return parser


def _compile(nodes: list[Any], flags: int) -> re.Pattern[str]:
    """Nodes of a parsed pattern as a pattern of their own."""
    try:
        from re import _compiler as compiler  # type: ignore[attr-defined]
    except ImportError:  # Python 3.10
        import sre_compile as compiler
    parser = _parser()
    parsed = parser.SubPattern(parser.State(), nodes)
    compiled: re.Pattern[str] = compiler.compile(parsed, flags)
    return compiled
