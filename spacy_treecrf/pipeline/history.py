"""What a pipe keeps of its training: the loss before each step, by the rounds learned until then.

It stands in the pipe's cfg, which is stored with it, and `spacy-treecrf report` draws it.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

KEY = "history"  # in the pipe's cfg: a list of pairs [rounds, loss]
DIGITS = 6  # behind the point: stored JSON keeps no more than 10 in all


class History:
    """The history in a pipe's cfg. Batches that find the same rounds make one entry, their mean."""

    def __init__(self, cfg: dict[str, Any]) -> None:
        self._cfg = cfg
        self._batches: list[float] = []  # losses of the last entry

    def clear(self) -> None:
        self._cfg.pop(KEY, None)

    def add(self, rounds: int, loss: float) -> None:
        """Keep the loss per token of examples under a model of so many rounds, if it is finite."""
        if not isfinite(loss):
            return
        if not history_of(self._cfg):  # there is none, or something else in its place
            self._cfg[KEY] = []
        entries: list[list[float]] = self._cfg[KEY]
        if not entries or entries[-1][0] != rounds:
            self._batches = []
            entries.append([rounds, loss])
        self._batches.append(loss)
        entries[-1][1] = round(sum(self._batches) / len(self._batches), DIGITS)


def history_of(cfg: dict[str, Any]) -> list[tuple[float, float]]:
    """Rounds and loss of the steps; what is stored and is no history counts as none."""
    entries = cfg.get(KEY)
    if not isinstance(entries, list):
        return []
    found = []
    for entry in entries:
        numbers = isinstance(entry, list) and len(entry) == 2
        if not numbers or not all(isinstance(value, int | float) for value in entry):
            return []
        found.append((float(entry[0]), float(entry[1])))
    return found
