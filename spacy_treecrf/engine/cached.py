"""Attributes that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class cached(Generic[Value]):
    """A property that is computed once and then kept in the object.

    `functools.cached_property` holds a lock while it computes, on Python below 3.12. A process
    that was forked meanwhile would wait for that lock for ever. Here there is none: threads that
    ask at the same time may each compute the value, and all get the one that was kept first.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> cached[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> cached[Value] | Value:
        if instance is None:
            return self
        # Not by setattr: the object may be a frozen dataclass.
        kept: Value = vars(instance).setdefault(self._name, self._compute(instance))
        return kept
