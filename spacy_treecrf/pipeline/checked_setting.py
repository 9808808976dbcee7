"""Settings of a pipe that may be changed at any time, and are checked whenever they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spacy_treecrf.pipeline.evidence.document_evidence import is_weight
from spacy_treecrf.pipeline.tasks.task import Task

Check = Callable[[str, Any, Task], None]


class CheckedSetting:
    """An attribute whose values a function of its name, a value and the pipe's task may refuse.

    Numbers are kept as float, also those of numpy. The pipe must have its task before. Reading the
    attribute costs what any other does.
    """

    def __init__(self, check: Check) -> None:
        self._check = check

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __set__(self, pipe: Any, value: Any) -> None:
        self._check(self._name, value, pipe.task)
        pipe.__dict__[self._name] = None if value is None else float(value)

    if TYPE_CHECKING:

        def __get__(self, pipe: Any, owner: type) -> Any: ...


def share() -> CheckedSetting:
    """A number from 0 to 1."""
    return CheckedSetting(_check_share)


def share_of_spans() -> CheckedSetting:
    """A number from 0 to 1, and 0 for a task without spans."""
    return CheckedSetting(_check_share_of_spans)


def weight() -> CheckedSetting:
    """A weight of evidence, see `Weights`; 0 or None for a task without spans."""
    return CheckedSetting(_check_weight)


def _check_share(name: str, value: Any, task: Task) -> None:
    if not is_weight(value):
        raise ValueError(f"treecrf: setting {name!r} is {value}; use 0 to 1")


def _check_share_of_spans(name: str, value: Any, task: Task) -> None:
    _check_share(name, value, task)
    if value and task.constraints != "biluo":
        raise ValueError(f"treecrf: setting {name!r} is {value}, and the task has no spans; use 0")


def _check_weight(name: str, value: Any, task: Task) -> None:
    if value is None:
        return
    if not is_weight(value):
        raise ValueError(f"treecrf: setting {name!r} is {value}; use 0 to 1, or null")
    if value and task.constraints != "biluo":
        raise ValueError(
            f"treecrf: setting {name!r} is {value}, and the task has no spans; use 0 or null"
        )
