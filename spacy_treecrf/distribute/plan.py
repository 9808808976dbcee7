"""What a config asks of a cluster: the pipe to train and the parts to read; the rest is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.training.corpus import walk_corpus
from spacy.util import dot_to_object, get_sourced_components
from thinc.api import Config

from spacy_treecrf.dask.estimator import refuse_settings
from spacy_treecrf.dask.parts import file_paths
from spacy_treecrf.features.extractor import Extractor
from spacy_treecrf.models.crf import CRFRecipe
from spacy_treecrf.pipeline.pipe import TreeCRF

WHOLE_CORPUS = "spacy_treecrf.WholeCorpus.v1"
# Settings of readers by which a corpus is more than its files one after the other.
PLAIN = {"limit": 0, "join": 1, "augmenter": None, "shuffle": False}


@dataclass(frozen=True)
class DocPart:
    """A file of docs, or a share of them."""

    path: str
    share: tuple[int, int] = (0, 1)  # which of how many equal shares of its docs

    @property
    def name(self) -> str:
        i, n = self.share
        return self.path if n == 1 else f"{self.path} (share {i + 1} of {n})"

    def shares(self, n: int) -> list[DocPart]:
        return [replace(self, share=(i, n)) for i in range(n)]


class Site(NamedTuple):
    """What a worker needs to read docs as the driver would."""

    config: str  # interpolated
    code: str | None  # a Python file with registered functions
    pipe: str
    corpus: str  # the dotted name of the block that reads training docs
    others: tuple[str, ...]  # pipes that are initialized beside it
    annotators: tuple[str, ...]  # pipes that annotate docs before the pipe sees them


def plan_of(nlp: Language, code: Path | None) -> Site:
    """What is trained, and what workers need for it; what a cluster cannot do is refused."""
    config = nlp.config.interpolate()
    training = config["training"]
    _refuse_training(training)
    name = _trained_pipe(nlp, config, training["frozen_components"])
    pipe = nlp.get_pipe(name)
    assert isinstance(pipe, TreeCRF)
    _refuse_pipe(name, pipe)
    _refuse_corpus(training["train_corpus"], dot_to_object(config, training["train_corpus"]))
    before = nlp.pipe_names[: nlp.pipe_names.index(name)]
    frozen = training["frozen_components"]
    return Site(
        config.to_str(),
        None if code is None else str(code.resolve()),
        name,
        training["train_corpus"],
        tuple(other for other in nlp.pipe_names if other != name and other not in frozen),
        tuple(other for other in before if other in training["annotating_components"]),
    )


def parts_of(config: Config) -> list[DocPart]:
    """The files of the training corpus, in the order in which one reader would read them."""
    corpus = config["training"]["train_corpus"]
    path = str(dot_to_object(config, corpus)["path"])
    if "://" not in path and Path(path).is_dir():
        # Workers may have another working directory.
        files = [str(file.absolute()) for file in walk_corpus(path, ".spacy")]
        if not files:
            raise ValueError(f"treecrf: {path} holds no .spacy file; name another folder")
    else:
        files = [file.removeprefix("file://") for file in file_paths([path], f"[{corpus}] path")]
    return [DocPart(file) for file in files]


def _refuse_training(training: dict[str, Any]) -> None:
    batcher = training["batcher"].get("@batchers")
    if batcher != WHOLE_CORPUS:
        raise _refused("[training.batcher] @batchers", batcher, f'use "{WHOLE_CORPUS}"')
    if training["accumulate_gradient"] != 1:
        raise _refused("[training] accumulate_gradient", training["accumulate_gradient"], "use 1")
    if training["max_epochs"] < 0:
        raise _refused("[training] max_epochs", training["max_epochs"], "use 0 or more")


def _trained_pipe(nlp: Language, config: Config, frozen: Sequence[str]) -> str:
    """The name of the one pipe that learns."""
    learning = [
        name
        for name, pipe in nlp.pipeline
        if name not in frozen and getattr(pipe, "is_trainable", False)
    ]
    ours = [name for name in learning if isinstance(nlp.get_pipe(name), TreeCRF)]
    if len(ours) != 1 or len(learning) != 1:
        raise ValueError(
            f"treecrf: the pipes that learn are {', '.join(learning) or 'none'}; on a cluster one "
            "treecrf pipe learns at a time: name the others in [training] frozen_components"
        )
    if ours[0] in get_sourced_components(config):
        raise ValueError(
            f"treecrf: the pipe {ours[0]!r} is sourced from another pipeline; a cluster trains "
            "new ones only: give it a factory"
        )
    return ours[0]


def _refuse_pipe(name: str, pipe: TreeCRF) -> None:
    recipe, features = pipe.shim.recipe, pipe.features
    if not isinstance(recipe, CRFRecipe):
        raise ValueError(
            f"treecrf: the model of the pipe {name!r} is no boosted CRF; a cluster trains "
            "spacy_treecrf.BoostedCRF.v1"
        )
    refuse_settings(recipe.settings)
    if not isinstance(features, Extractor):
        raise ValueError(
            f"treecrf: the features of the pipe {name!r} are of a class of your own, which cannot "
            "be learned in parts; use those of spacy_treecrf"
        )
    if any(source.learns_from_tokens for source in features.sources):
        raise ValueError(
            'treecrf: vector_columns = "indicators" is not for clusters; use "numeric"'
        )


def _refuse_corpus(name: str, block: dict[str, Any]) -> None:
    if not block.get("path"):
        raise ValueError(
            f'treecrf: [{name}] has no path; name .spacy files by --paths.train "corpus/*.spacy"'
        )
    for setting, plain in PLAIN.items():
        if block.get(setting, plain) != plain:
            raise _refused(f"[{name}] {setting}", block[setting], f"use {plain!r}")


def _refused(setting: str, value: Any, remedy: str) -> ValueError:
    return ValueError(f"treecrf: {setting} is {value!r}, which is not for clusters; {remedy}")
