"""The parts of a stored pipe, as spaCy's pipes store them: written whole, read field by field.

spaCy and thinc trust what they read. Here every part is checked before it changes anything, and
every error is a ValueError that names the file and the field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import srsly
from thinc.api import Model

from spacy_treecrf.storage import container
from spacy_treecrf.storage.state_reader import StateReader, describe_value

REMEDY = "copy or save the pipeline again"


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "not enough memory"
        raise ValueError(f"treecrf: cannot read {path}: {reason}; {REMEDY}") from error


def write_cfg(path: Path, cfg: dict[str, Any]) -> None:
    container.write(path, srsly.json_dumps(cfg, indent=2).encode("utf8"))


def parse_cfg(text: str | bytes, source: str) -> dict[str, Any]:
    """The table of plain values that a pipe may keep beside its model."""
    try:
        cfg = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"treecrf: {source} is not JSON ({error}); {REMEDY}") from error
    if not isinstance(cfg, dict):
        raise ValueError(
            f"treecrf: {source}: expected a table, found {describe_value(cfg)}; {REMEDY}"
        )
    return cfg


def read_model(model: Model[Any, Any], data: bytes, source: str) -> None:
    """Take over what `model.to_bytes()` stored: one node, whose only part is a shim's bytes."""
    reader = StateReader(container.unpack(data, source), source)
    (node,) = reader.nested_list("nodes", 1)
    node.integer("index", 0, 0)
    name = node.string("name")
    node.nested("dims")
    node.nested("refs")
    reader.nested_list("attrs", 1)
    reader.nested_list("params", 1)
    shims = reader.value("shims")
    match shims:
        case [[bytes() as learned]]:
            pass
        case _:
            reader.fail("shims", "a list of a list of the bytes of one model", _outline(shims))
    reader.done()
    with naming(source):
        model.shims[0].from_bytes(learned)
    model.name = name


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Make errors name the source."""
    try:
        yield
    except ValueError as error:
        message = str(error).removeprefix("treecrf: ")
        raise ValueError(f"treecrf: {source}: {message}") from error


@contextmanager
def reading_of_spacy(source: str) -> Iterator[None]:
    """Tell every error of a part that spaCy reads as damage of the source."""
    try:
        yield
    except Exception as error:  # spaCy, srsly and thinc raise many kinds
        raise ValueError(
            f"treecrf: {source} is damaged ({type(error).__name__}: {error}); {REMEDY}"
        ) from error


def _outline(value: Any) -> str:
    if isinstance(value, list) and len(value) == 1:
        return f"a list of {_outline(value[0])}"
    return describe_value(value)
