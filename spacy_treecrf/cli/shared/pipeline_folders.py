"""Folders of pipelines that commands write: whole, or as they were before."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from spacy_treecrf.storage.files import check_target, keep_owner_and_mode

if TYPE_CHECKING:
    from spacy.language import Language


def refuse_folder(output: Path, force: bool, models: list[str]) -> None:
    """Refuse an output that exists, or one that is, holds or lies in one of the pipelines."""
    if output.exists() and not (force and output.is_dir()):
        raise ValueError(f"treecrf: {output} exists; name another folder, or replace it by --force")
    target = output.resolve()
    for path in target.rglob("*"):
        if path.is_file():
            check_target(path)
    for model in models:
        given = Path(model).resolve()
        if given.exists() and (target in (given, *given.parents) or given in target.parents):
            raise ValueError(
                f"treecrf: the output {output} and the pipeline {model} lie in each other; name "
                "another folder"
            )


def write_pipeline(nlp: Language, output: Path) -> None:
    """Write a pipeline beside the output and then move it, so that it is whole or as before.

    A folder that is there is replaced only if it holds nothing that the new one does not.
    """
    target = output.resolve()  # through links, which stay
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".treecrf-") as folder:
        new, old = Path(folder, "new"), Path(folder, "old")
        nlp.to_disk(new)
        if target.exists():
            held = _contents(target)
            others = sorted(held - _contents(new))
            if others:
                raise ValueError(
                    f"treecrf: {output} also holds {others[0]}, which is no part of the new "
                    "pipeline; name another folder, or delete it yourself"
                )
            for name in ("", *held):
                keep_owner_and_mode(new / name, (target / name).stat())
            target.rename(old)
        try:
            new.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise


def _contents(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
