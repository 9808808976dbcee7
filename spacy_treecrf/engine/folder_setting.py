"""The setting that names a folder for the time of a run; no model file ever holds it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spacy_treecrf.engine.setting import Setting, made, refused

if TYPE_CHECKING:
    from spacy_treecrf.storage.state_reader import StateReader


@dataclass(frozen=True)
class Folder(Setting):
    """The path of a folder, or None for none. Whether there is one is asked when it is used."""

    @property
    def type_text(self) -> str:
        return "str or None"

    @property
    def allowed(self) -> str:
        return "the path of a folder, or None for none"

    def check(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
        if not isinstance(path, str) or not path or "\0" in path:
            raise refused(name, value, self.allowed)
        return str.__str__(path)

    def parse(self, text: str) -> Any:
        return None if text.lower() == "none" else text

    def read(self, name: str, reader: StateReader) -> Any:
        reader.fail(name, "no such field", "one")

    def stored(self, name: str, value: Any) -> dict[str, Any]:
        """Nothing: it belongs to a run."""
        return {}


def folder_field(help: str) -> str | None:
    """The field of a setting that names a folder; none by default."""
    return made(Folder(help, older=None, of_the_run=True), None)
