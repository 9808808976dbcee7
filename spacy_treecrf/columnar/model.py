"""The model for column files: a boosted CRF, the template of its features, its training curve."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from spacy_treecrf.columnar.files import ColumnFile, Row
from spacy_treecrf.columnar.template import Template
from spacy_treecrf.columnar.word_features import WordFeatures
from spacy_treecrf.engine.boosting.rounds import RoundInfo
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.models.crf import CRF
from spacy_treecrf.storage import container
from spacy_treecrf.storage.state_reader import StateReader

KIND = "columns"
FILE_IN_FOLDER = "model.treecrf"


@dataclass(frozen=True)
class TrainingCurve:
    """How training went: lists with a value for each round.

    Some lists may begin at a later round than the others; all end with the last round.
    """

    log_likelihood: list[float] = field(default_factory=list)  # per token of the training data
    held_out_log_likelihood: list[float] = field(default_factory=list)  # empty without such data
    held_out_accuracy: list[float] = field(default_factory=list)
    held_out_f1: list[float] = field(default_factory=list)  # empty where labels spell no spans
    seconds: list[float] = field(default_factory=list)  # of this run, not of the model

    def add(self, info: RoundInfo) -> None:
        self.log_likelihood.append(info.log_likelihood)
        self.seconds.append(info.seconds)
        if info.held_out_log_likelihood is not None and info.held_out_accuracy is not None:
            self.held_out_log_likelihood.append(info.held_out_log_likelihood)
            self.held_out_accuracy.append(info.held_out_accuracy)
        if info.held_out_f1 is not None:
            self.held_out_f1.append(info.held_out_f1)

    def at(self, values: list[float], round_: int) -> float | None:
        """The value that one of the lists has for a round, counted from 1."""
        index = round_ - 1 - (len(self.log_likelihood) - len(values))
        return values[index] if 0 <= index < len(values) else None

    def to_state(self) -> dict[str, Any]:
        """The curve without its times, which would make files of equal models differ."""
        kept = {**self.__dict__, "seconds": []}
        return {name: np.array(values, np.float64) for name, values in kept.items()}

    @classmethod
    def from_state(cls, reader: StateReader) -> TrainingCurve:
        names = [name for name in cls.__dataclass_fields__ if name != "held_out_f1"]
        if reader.has("held_out_f1"):  # files of 0.1.0 do not
            names.append("held_out_f1")
        values = {name: reader.array(name, np.float64, (None,)).tolist() for name in names}
        return cls(**{**values, "seconds": []})  # files of 0.1.0 hold times


@dataclass(frozen=True)
class ColumnModel:
    """A trained model for column files."""

    template: Template
    crf: CRF
    curve: TrainingCurve = field(default_factory=TrainingCurve)
    words: WordFeatures | None = None  # clusters, vectors and gazetteers, if it was given any

    def encode(self, sequences: Sequence[Sequence[Row]], file: ColumnFile, first: int) -> Sequences:
        """Rows of fields without the label as the sequences that the model sees.

        first: The number of the first of these sequences in the file, for error messages.
        """
        X = features_of(self.template, self.words, sequences, lambda s, t: file.place(first + s, t))
        return Sequences.unlabelled(*self.crf.columns.encode(X))

    def compacted(self) -> ColumnModel:
        """The model for prediction alone."""
        return ColumnModel(self.template, self.crf.compacted(), words=self.words)

    def save(self, path: str | os.PathLike[str]) -> None:
        state: dict[str, Any] = {
            "kind": KIND,
            "template": self.template.to_state(),
            "history": self.curve.to_state(),
            "crf": self.crf.to_state(),
        }
        if self.words is not None:
            state["words"] = self.words.to_state()
        container.save(path, state, small=self.crf.compact)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ColumnModel:
        reader = StateReader(state)
        reader.string("kind", choices=(KIND,))
        template = Template.from_state(reader.nested("template"))
        curve = TrainingCurve.from_state(reader.nested("history"))
        crf = CRF.from_state(reader.table("crf"))
        words = None
        if reader.has("words"):  # only of models that were given such features
            words = WordFeatures.from_state(reader.nested("words"))
        reader.done()
        return cls(template, crf, curve, words)


def features_of(
    template: Template,
    words: WordFeatures | None,
    sequences: Sequence[Sequence[Row]],
    place: Callable[[int, int], str],
) -> Iterator[list[dict[str, Any]]]:
    """The feature dicts of each sequence of rows without the label.

    place: A function that tells where a row comes from, for error messages.
    """
    features = template.features(sequences, place)
    if words is None:
        return features
    number = template.word_column("--features")
    at = number - 1 - (template.label_field < number - 1)
    return words.add_to(features, [[row[at] for row in rows] for rows in sequences], str(number))


def model_file(path: str | os.PathLike[str]) -> Path:
    """The model file that a path means: a folder, or a path ending in "/", holds FILE_IN_FOLDER."""
    text = os.fspath(path)
    if text.endswith(("/", os.sep)) or Path(text).is_dir():
        return Path(text) / FILE_IN_FOLDER
    return Path(text)
