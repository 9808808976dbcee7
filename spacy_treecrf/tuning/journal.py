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
    """A JSONL file of results; its first line says what the search is about."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path = path
        self._results: dict[tuple[str, int], Result] = {}
        if path.exists() and path.stat().st_size:
            self._read(about)
        else:
            self._append({"kind": KIND, **about})

    def __len__(self) -> int:
        return len(self._results)

    def find(self, settings: Settings, fold: int) -> Result | None:
        return self._results.get((key_of(settings), fold))

    def add(self, result: Result) -> None:
        self._append(asdict(result))
        self._results[key_of(result.settings), result.fold] = result

    def _append(self, value: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _read(self, about: dict[str, Any]) -> None:
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        lines = data[:whole].split(b"\n")[:-1]
        for number, line in enumerate(lines, start=1):
            try:
                value = json.loads(line)
                if number > 1:
                    result = Result(**value)
                    self._results[key_of(result.settings), result.fold] = result
                elif value.pop("kind") != KIND:
                    raise ValueError("another kind")
                elif value != about:
                    changed = sorted(
                        key for key in {*value, *about} if value.get(key) != about.get(key)
                    )
                    raise ValueError(
                        f"treecrf: the journal {self.path} belongs to another search (different: "
                        f"{', '.join(changed)}); name another --journal, or delete it"
                    )
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                if str(error).startswith("treecrf"):
                    raise
                raise ValueError(
                    f"treecrf: {self.path}:{number}: expected a line of a journal of `tune`, found "
                    f"{line[:60]!r}; name another --journal, or delete the file"
                ) from error
        if not lines:
            raise ValueError(
                f"treecrf: {self.path} is not a journal of `tune`; name another --journal"
            )
        if whole < len(data):  # the machine stopped in the middle of a line
            os.truncate(self.path, whole)
