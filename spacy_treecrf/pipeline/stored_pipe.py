"""How a pipe is stored, in parts as those of spaCy: written whole, read field by field.

spaCy and thinc trust what they read. Here every part is checked before it changes anything, and
every error is a ValueError that names the file and the field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import srsly
from spacy.pipeline import TrainablePipe
from spacy.vocab import Vocab
from thinc.api import Model

from spacy_treecrf.pipeline.evidence.document_evidence import WEIGHTS, is_weight
from spacy_treecrf.storage import container
from spacy_treecrf.storage.msgpack_parts import packed_parts
from spacy_treecrf.storage.state_reader import StateReader, describe_value

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11

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
    for name in WEIGHTS:
        weight = cfg.get(name, 0.0)
        if not is_weight(weight):
            raise ValueError(
                f"treecrf: {source} field {name!r}: expected a number from 0 to 1, found "
                f"{describe_value(weight)}; {REMEDY}"
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


class StoredPipe(TrainablePipe):  # type: ignore[misc]
    """A pipe of a model and settings (cfg) that are stored in files of its own."""

    vocab: Vocab
    model: Model[Any, Any]
    name: str
    cfg: dict[str, Any]

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the pipe to a folder; each file is replaced as a whole or not at all."""
        folder = Path(path)
        folder.mkdir(exist_ok=True)
        if "cfg" not in exclude:
            write_cfg(folder / "cfg", self.cfg)
        if "vocab" not in exclude:
            self.vocab.to_disk(folder / "vocab", exclude=exclude)
        if "model" not in exclude:
            # What model.to_bytes() gives, which would hold three copies of it at a time.
            container.write(folder / "model", *packed_parts(self.model.to_dict()))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Take over what `to_disk` wrote; a ValueError names the file and field that is wrong."""
        folder = Path(path)
        cfg: dict[str, Any] = {}
        if "cfg" not in exclude and (file := folder / "cfg").exists():
            cfg = parse_cfg(read_file(file), str(file))
        if "vocab" not in exclude:
            with reading_of_spacy(str(folder / "vocab")):
                self.vocab.from_disk(folder / "vocab", exclude=exclude)
        if "model" not in exclude:
            file = folder / "model"
            read_model(self.model, read_file(file), str(file))
        if "cfg" not in exclude:
            self._take_over(cfg)
        return self

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Take over what `to_bytes` made; a ValueError names the field that is wrong."""
        source = f"the bytes of the pipe {self.name!r}"
        parts = StateReader(container.unpack(bytes_data, source), source)
        stored = {key: parts.value(key) for key in ("cfg", "vocab", "model") if parts.has(key)}
        parts.done()
        stored = {key: data for key, data in stored.items() if key not in exclude}
        cfg = parse_cfg(stored.get("cfg", "{}"), f"{source} field 'cfg'")
        if "vocab" in stored:
            with reading_of_spacy(f"{source} field 'vocab'"):
                self.vocab.from_bytes(stored["vocab"], exclude=exclude)
        if "model" in stored:
            read_model(self.model, stored["model"], f"{source} field 'model'")
        if "cfg" not in exclude:
            self._take_over(cfg)
        return self

    def _take_over(self, cfg: dict[str, Any]) -> None:
        for name in WEIGHTS:
            self.cfg.pop(name, None)  # a pipe that was stored without it does without it
        self.cfg.update(cfg)
