"""A boosted CRF with what its columns mean and how its training went, in one file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from spacy_treecrf.columnar.files import ColumnFile, Row
from spacy_treecrf.columnar.template import Template
from spacy_treecrf.engine.boosting import RoundInfo
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.sequences import UNKNOWN_LABEL, Sequences
from spacy_treecrf.models import storage
from spacy_treecrf.models.crf import CRF

KIND = "columns"
FILE_IN_FOLDER = "model.treecrf"


@dataclass(frozen=True)
class History:
    """The learning curve: a value for each round; curves may begin late, and end together."""

    log_likelihood: list[float] = field(default_factory=list)  # of the training data, per token
    held_out_log_likelihood: list[float] = field(default_factory=list)  # empty without such data
    held_out_accuracy: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, info: RoundInfo, seconds_before: float = 0.0) -> None:
        self.log_likelihood.append(info.log_likelihood)
        self.seconds.append(seconds_before + info.seconds)
        if info.held_out_log_likelihood is not None and info.held_out_accuracy is not None:
            self.held_out_log_likelihood.append(info.held_out_log_likelihood)
            self.held_out_accuracy.append(info.held_out_accuracy)

    def at(self, curve: list[float], round_: int) -> float | None:
        """The value of one of the curves after a round, from 1."""
        index = round_ - 1 - (len(self.log_likelihood) - len(curve))
        return curve[index] if 0 <= index < len(curve) else None

    def to_state(self) -> dict[str, Any]:
        return {name: np.array(values, np.float64) for name, values in self.__dict__.items()}

    @classmethod
    def from_state(cls, fields: Fields) -> History:
        names = cls.__dataclass_fields__
        return cls(*(fields.array(name, np.float64, (None,)).tolist() for name in names))


@dataclass(frozen=True)
class ColumnModel:
    """A trained model for column files."""

    template: Template
    crf: CRF
    history: History = field(default_factory=History)

    def encode(self, sequences: Sequence[Sequence[Row]], file: ColumnFile, first: int) -> Sequences:
        """Rows (without the label column) as the model sees them; first: number in the file."""
        X = self.template.features(sequences, lambda s, t: file.place(first + s, t))
        return encoded(self.crf, X)

    def save(self, path: str | os.PathLike[str]) -> None:
        state = {
            "kind": KIND,
            "template": self.template.to_state(),
            "history": self.history.to_state(),
            "crf": self.crf.to_state(),
        }
        storage.save(path, state)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ColumnModel:
        fields = Fields(state)
        fields.string("kind", choices=(KIND,))
        template = Template.from_state(fields.fields("template"))
        history = History.from_state(fields.fields("history"))
        crf = CRF.from_state(fields.table("crf"))
        fields.done()
        return cls(template, crf, history)


def encoded(crf: CRF, X: Iterable[Iterable[Any]]) -> Sequences:
    offsets, codes, numeric = crf.columns.encode(X)
    n = int(offsets[-1])
    labels = np.full(n, UNKNOWN_LABEL, np.int32)
    return Sequences(offsets, codes, numeric, labels, np.ones(n, np.float32))


def model_file(path: str | os.PathLike[str]) -> Path:
    """The file meant by an output: `model/` and folders that exist hold a file of fixed name."""
    text = os.fspath(path)
    if text.endswith(("/", os.sep)) or Path(text).is_dir():
        return Path(text) / FILE_IN_FOLDER
    return Path(text)
