"""Loading of the model that a user names: a file or folder, or a spaCy pipeline."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy_treecrf.columnar.model import KIND, ColumnModel, model_file
from spacy_treecrf.evaluation.tagger import Tagger
from spacy_treecrf.models.model import SequenceModel
from spacy_treecrf.models.model_kinds import KINDS as MODEL_KINDS
from spacy_treecrf.models.model_kinds import model_from_state
from spacy_treecrf.storage import container
from spacy_treecrf.taggers.column_tagger import ColumnTagger

if TYPE_CHECKING:
    from spacy.language import Language

    from spacy_treecrf.pipeline.pipe import TreeCRF

# The folders that `spacy train` writes.
DIR_BEST, DIR_LAST = "model-best", "model-last"
JSON_FILES = ("meta.json", "vocab/strings.json")


def load_tagger(
    model: str, *, pipe: str | None = None, threads: int = 0, as_text: bool = False
) -> Tagger:
    """The tagger of a model file or folder, or of a spaCy pipeline by folder or package name.

    pipe: The name of the treecrf pipe, where a pipeline has several. as_text: Whether a pipeline
    reads docs for their text alone, as `spacy evaluate` does.
    """
    path = model_file(model)
    if path.is_file():
        if as_text:
            raise ValueError(
                f"treecrf: {path} is a model for column files, which have their tokens; leave "
                "--as-text out, or pass a spaCy pipeline"
            )
        state = container.read(path)
        if state.get("kind") in MODEL_KINDS:
            raise ValueError(
                f"treecrf: {path} was saved by an estimator: only the program that made its "
                "features can make them again; train with `spacy-treecrf train`, or use "
                "the estimator's load there"
            )
        return ColumnTagger(_column_model(state, path), model, threads)
    # Importing spaCy takes a while, and a model for column files does without it.
    from spacy_treecrf.taggers.pipeline_tagger import PipelineTagger

    nlp, found = load_pipe(model, pipe)
    if threads:
        found.shim.recipe = found.shim.recipe.changed(threads=threads)
    return PipelineTagger(nlp, found, model, threads, as_text=as_text)


def load_model(model: str, *, pipe: str | None = None) -> tuple[SequenceModel, ColumnModel | None]:
    """A learned model of any kind; and the ColumnModel that it belongs to, if there is one."""
    path = model_file(model)
    if not path.is_file():
        return load_pipe(model, pipe)[1].shim.trained, None
    state = container.read(path)
    if state.get("kind") in MODEL_KINDS:
        return model_from_state(state), None
    loaded = _column_model(state, path)
    return loaded.crf, loaded


def load_pipe(model: str, pipe: str | None) -> tuple[Language, TreeCRF]:
    """A spaCy pipeline, and its treecrf pipe of this name."""
    from spacy_treecrf.pipeline.pipe import TreeCRF

    nlp = load_pipeline(model)
    found = {name: own for name, own in nlp.pipeline if isinstance(own, TreeCRF)}
    if pipe is None and len(found) == 1:
        return nlp, next(iter(found.values()))
    if pipe in found:
        return nlp, found[pipe]
    names = ", ".join(found) or "none"
    raise ValueError(
        f"treecrf: the pipeline {model} has these treecrf pipes: {names}; name one by --pipe"
        + ("" if found else ", in a pipeline that has one")
    )


def load_pipeline(model: str) -> Language:
    """The pipeline of this name; of a `model-best` that cannot be read, the one it is a copy of.

    `spacy train` writes `model-last` and, if it is the best so far, copies it to `model-best` file
    by file: killed meanwhile, it leaves half a copy, and the whole model beside it.
    """
    try:
        return _read_pipeline(model)
    except ValueError as error:
        last = Path(model).with_name(DIR_LAST)
        if Path(model).name != DIR_BEST or not last.is_dir():
            raise
        try:
            nlp = _read_pipeline(str(last))
        except ValueError:
            raise error from None
        message = str(error).removeprefix("treecrf: ")
        warnings.warn(
            f"treecrf: used {last} instead of {model}, which training that was killed may have "
            f"left half written ({message})",
            stacklevel=3,
        )
        return nlp


def _read_pipeline(model: str) -> Language:
    import spacy

    is_path = os.sep in model or model.endswith(".treecrf") or Path(model).name == DIR_BEST
    if not Path(model).exists() and is_path:
        raise ValueError(f"treecrf: there is no model {model}; check the path")
    try:
        return spacy.load(model)
    except MemoryError:
        raise
    except Exception as error:  # spaCy, srsly, thinc and confection raise many kinds
        message = str(error)
        if message.startswith("treecrf: "):
            raise ValueError(message) from error
        if isinstance(error, OSError) and not Path(model, "config.cfg").exists():
            raise ValueError(
                f"treecrf: {model} is neither a model of `spacy-treecrf train` nor a spaCy "
                f"pipeline ({message}); check the path, or install the package"
            ) from error
        raise ValueError(
            f"treecrf: cannot load the pipeline {model} ({_described(model, error)}); copy or "
            "save it again, or train it again"
        ) from error


def _described(model: str, error: Exception) -> str:
    """The error in a line, with the file where it came from if that can be told."""
    message = " ".join(str(error).split())
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    damaged = [name for name in JSON_FILES if not _is_json(Path(model, name))]
    return f"{', '.join(damaged)} is damaged; {text}" if damaged else text


def _is_json(path: Path) -> bool:
    try:
        return not path.is_file() or isinstance(json.loads(path.read_bytes()), dict | list)
    except (OSError, ValueError, RecursionError):
        return False


def _column_model(state: dict[str, Any], path: Path) -> ColumnModel:
    if state.get("kind") != KIND:
        raise ValueError(
            f"treecrf: {path} holds a {state.get('kind')!r}, not a model for column files; pass "
            "the folder of the spaCy pipeline that it belongs to"
        )
    return ColumnModel.from_state(state)
