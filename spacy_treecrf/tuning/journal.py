"""The journal of a search, a line for each training, so that the search can go on later."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spacy_treecrf.tuning.space import Settings, key_of

KIND = "spacy-treecrf tune"


@dataclass(frozen=True)
class Result:
    """The result of one training."""

    settings: Settings
    fold: int
    score: float | None  # None: these settings cannot be trained
    scores: dict[str, float]  # all scores of the best step
    step: int | None
    seconds: float
    error: str | None = None


class Journal:
    """A JSONL file of results; its first line says what the search is about.

    It is written with the first score: a search that fails before leaves no journal, and a journal
    without a score belongs to no search, so that it stands in the way of none.
    """

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path = path
        self._about = about
        self._results: dict[tuple[str, int], Result] = {}
        self._unwritten: list[Result] = []  # failures before the first score
        self._is_begun = False
        if path.exists() and path.stat().st_size:
            self._read()

    def __len__(self) -> int:
        return len(self._results)

    def find(self, settings: Settings, fold: int) -> Result | None:
        return self._results.get((key_of(settings), fold))

    def add(self, result: Result) -> None:
        self._results[key_of(result.settings), result.fold] = result
        self._unwritten.append(result)
        if result.score is None and not self._is_begun:
            return
        lines = [asdict(own) for own in self._unwritten]
        if not self._is_begun:
            lines.insert(0, {"kind": KIND, **self._about})
        # Until there is a score, the file holds nothing that is worth keeping.
        with self.path.open("a" if self._is_begun else "w", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._is_begun, self._unwritten = True, []

    def _read(self) -> None:
        """Take over the results of a file that belongs to this search; another one is refused."""
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        lines = data[:whole].split(b"\n")[:-1]
        if not lines:
            raise ValueError(
                f"treecrf: {self.path} is not a journal of `tune`; name another --journal"
            )
        about: dict[str, Any] = {}
        results = []
        for number, line in enumerate(lines, start=1):
            try:
                value = json.loads(line)
                if number > 1:
                    results.append(Result(**value))
                elif value.pop("kind") != KIND:
                    raise ValueError("another kind")
                else:
                    about = value
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise ValueError(
                    f"treecrf: {self.path}:{number}: expected a line of a journal of `tune`, found "
                    f"{line[:60]!r}; name another --journal, or delete the file"
                ) from error
        if all(result.score is None for result in results):
            return
        if about != self._about:
            names = sorted({*about, *self._about})
            changed = [name for name in names if about.get(name) != self._about.get(name)]
            raise ValueError(
                f"treecrf: the journal {self.path} belongs to another search (different: "
                f"{', '.join(changed)}); name another --journal, or delete it"
            )
        self._results = {(key_of(own.settings), own.fold): own for own in results}
        self._is_begun = True
        if whole < len(data):  # the machine stopped in the middle of a line
            os.truncate(self.path, whole)
