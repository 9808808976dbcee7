"""The training of a student: a config of spaCy on a teacher's lessons."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy import util
from spacy.language import DEFAULT_CONFIG, Language
from spacy.tokens import Doc, DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import DIR_MODEL_BEST, DIR_MODEL_LAST, train
from thinc.api import Config

from spacy_treecrf.corpora.readers import EXTENSION
from spacy_treecrf.corpora.splitting import hash_share
from spacy_treecrf.distillation.corpus_blocks import corpus_blocks
from spacy_treecrf.labels.doc_keys import WEIGHT
from spacy_treecrf.pipeline.architectures import DEFAULT_ARCHITECTURE

FACTORY = "treecrf"
EXT_TASK = "ext:"
# The share of the lessons that choose the best step where there is no held-out data.
HELD_OUT = 0.1


@dataclass(frozen=True)
class StudentFiles:
    """What a student is trained on, as .spacy files."""

    train: Path
    dev: Path


def load_config(path: Path, overrides: dict[str, Any]) -> Config:
    """The config of a student; its treecrf pipe takes weights as a teacher's distribution."""
    try:
        config = util.load_config(path, overrides=overrides, interpolate=False)
    except OSError as error:
        raise ValueError(f"treecrf: cannot read the config {path}: {error}") from error
    except ValueError as error:
        raise ValueError(f"treecrf: {path} is not a config of spaCy: {error}") from error
    config = DEFAULT_CONFIG.merge(config)  # as training does; blocks that are left out are there
    components = config.get("components", {})
    pipes = [name for name, block in components.items() if block.get("factory") == FACTORY]
    if not pipes:
        raise ValueError(
            f"treecrf: {path} has no component of the factory {FACTORY!r}, which is what a student "
            "needs; `spacy-treecrf init` writes configs"
        )
    for name in pipes:
        model = components[name].setdefault("model", {"@architectures": DEFAULT_ARCHITECTURE})
        model["soft_labels"] = "distill"
    corpus_blocks(config)  # so that what cannot read lessons is refused before any work
    return config


def extensions_read(config: Config) -> set[str]:
    """The extensions that a student reads: its labels, its weights, and inputs of its readers."""
    filled = config.interpolate()
    found = {WEIGHT}
    for block in filled["components"].values():
        task = block.get("task")
        if isinstance(task, dict) and "attr" in task:
            found.add(task["attr"])
        elif isinstance(task, str) and task.startswith(EXT_TASK):
            found.add(task.removeprefix(EXT_TASK))
    blocks = corpus_blocks(filled)
    inputs = (*blocks.train.get("inputs", ()), *blocks.dev.get("inputs", ()))
    return found | {name[len(EXTENSION) :] for name in inputs if name.startswith(EXTENSION)}


def write_lessons(
    docs: Sequence[Doc], gold: Sequence[Doc], dev: Path | None, folder: Path
) -> StudentFiles:
    """Write lessons and annotated docs for training; without dev, a part is held out."""
    files = StudentFiles(folder / "train.spacy", dev or folder / "dev.spacy")
    is_held_out = [dev is None and hash_share(doc.text, "lessons") < HELD_OUT for doc in docs]
    kept = [doc for doc, own in zip(docs, is_held_out, strict=True) if not own]
    held_out = [doc for doc, own in zip(docs, is_held_out, strict=True) if own]
    if dev is None and (not kept or not held_out):
        raise ValueError(
            f"treecrf: {len(docs)} texts are too few to hold out a part of them; name held-out "
            "data by --dev"
        )
    _write(files.train, [*gold, *kept])
    if dev is None:
        _write(files.dev, held_out)
    return files


def new_student(config: Config, files: StudentFiles) -> Language:
    """The pipeline of a config, initialised with what it will be trained on."""
    blocks = corpus_blocks(config)
    for block, path in ((blocks.train, files.train), (blocks.dev, files.dev)):
        block["path"] = str(path)
        if "join" in block:  # lattices and weights are those of a doc
            block["join"] = 1
    paths = config.setdefault("paths", {})
    paths["train"], paths["dev"] = str(files.train), str(files.dev)
    return init_nlp(config)


def train_student(nlp: Language, output: Path) -> None:
    """Train as `spacy train` does; output gets model-best and model-last.

    Those that are there are deleted first. If training stops, model-last has the steps so far.
    """
    output.mkdir(parents=True, exist_ok=True)
    train(nlp, output, stdout=sys.stdout, stderr=sys.stderr)


def held_models(output: Path) -> list[str]:
    """Which of the models that training writes are in the output."""
    return [name for name in (DIR_MODEL_BEST, DIR_MODEL_LAST) if (output / name).is_dir()]


def _write(path: Path, docs: Sequence[Doc]) -> None:
    DocBin(docs=docs, store_user_data=True).to_disk(path)
