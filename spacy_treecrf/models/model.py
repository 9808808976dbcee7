"""What every learned labeller is, whatever it learned: scores of rows, and a chain over them.

Labels, marginals, n-best lists and span probabilities follow from these two, so that the
estimators, the pipe and the command line treat all models alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.rounds import Callback, RoundsInterrupted
from spacy_treecrf.engine.chain.chain import Chain, Mask
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.memm.beam_search import Beams
from spacy_treecrf.engine.row_storage import IN_MEMORY, RowStorage
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.quick_prediction import FirstRows, QuickPredictor, QuickRows


class ModelSettings(Protocol):
    """Settings that every model has; each kind of model has more."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def order(self) -> int: ...
    @property
    def rounds(self) -> int | None: ...
    @property
    def min_count(self) -> int: ...
    @property
    def max_bins(self) -> int: ...
    @property
    def missing(self) -> str: ...
    @property
    def constraints(self) -> str: ...
    @property
    def predictor(self) -> str: ...
    @property
    def threads(self) -> int: ...
    def to_dict(self) -> dict[str, Any]: ...


class SequenceModel(ABC):
    """A learned model. It never changes: training makes another one.

    labels: by id. columns: what its features mean.
    """

    settings: ModelSettings
    labels: list[str]
    columns: Columns

    @property
    @abstractmethod
    def chain(self) -> Chain:
        """Scores of transitions; -inf where they are forbidden."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many rounds it has learned."""

    @abstractmethod
    def scores(self, data: Sequences, workers: Workers) -> npt.NDArray[np.float32]:
        """Scores of every label after every context. shape: (n_rows, n_contexts, n_labels)"""

    @property
    def first_rows(self) -> FirstRows | None:
        """The model prepared for few encoded rows, without kernels; None: it needs kernels."""
        return None

    @property
    def quick_rows(self) -> QuickRows | None:
        """The model prepared for few encoded rows; None if there is no quicker way."""
        return None

    @property
    def quick(self) -> QuickPredictor | None:
        """The model prepared for short inputs; None if there is no quicker way than the usual."""
        return None

    @property
    def score_bytes(self) -> int:
        """About what it takes to score one row, which decides how many are scored at once."""
        return 4 * len(self.labels)

    @property
    def searches(self) -> bool:
        """Whether the model finds label sequences by itself, in `search`."""
        return False

    def search(
        self, data: Sequences, workers: Workers, allowed: Mask | None = None
    ) -> Beams | None:
        """Label sequences that the model found by itself; None: its scores and chain decide.

        allowed: uint8 (n_rows, n_labels), 0 where a label is ruled out.
        """
        return None

    @abstractmethod
    def trainer(
        self, data: Sequences, workers: Workers, held_out: Sequences | None = None
    ) -> Trainer:
        """Training that goes on from this model."""

    @abstractmethod
    def with_labels(self, labels: list[str]) -> SequenceModel:
        """The same model with further labels, improbable until more rounds learn them."""

    def with_columns(self, columns: Columns) -> SequenceModel:
        """The same model with columns that have grown, whose new features count nothing yet."""
        raise ValueError(
            f"treecrf: a {type(self).__name__} cannot take in new features; train a new model on "
            "all data"
        )

    @property
    def temperature(self) -> float:
        """What calibration has divided the scores by; 1.0: nothing."""
        return 1.0

    @property
    def uncurved(self) -> SequenceModel:
        """The model whose calibration is one temperature for all rows; itself where it is so."""
        return self

    @property
    def is_compact(self) -> bool:
        """Whether it was made for prediction alone, and is stored in few bytes."""
        return False

    def compacted(self) -> SequenceModel:
        """The model for prediction alone; itself where nothing can be left out."""
        return self

    @abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Plain values and arrays; "kind" tells which model it is."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: dict[str, Any]) -> SequenceModel:
        """Rebuild a model; every index, shape and value is checked before a kernel can see it."""


class Trainer(ABC):
    """One training on one data set, round by round."""

    data: Sequences
    n_annotated: int  # rows

    @property
    @abstractmethod
    def model(self) -> SequenceModel:
        """The model as far as it has learned, also after Ctrl-C."""

    @property
    @abstractmethod
    def log_likelihood(self) -> float:
        """Training log-likelihood per annotated row."""

    def train(self, rounds: int, callback: Callback | None = None) -> SequenceModel:
        """Go on until `rounds` rounds are done in all; with held-out data, return the best.

        Ctrl-C raises `TrainingInterrupted`, with the same of the rounds that are done.
        """
        try:
            return self._with(self._boost(rounds, callback))
        except RoundsInterrupted as interrupt:
            raise TrainingInterrupted(self._with(interrupt.kept)) from interrupt
        except KeyboardInterrupt as interrupt:  # before the first round
            raise TrainingInterrupted(self.model) from interrupt

    @abstractmethod
    def _boost(self, rounds: int, callback: Callback | None) -> Any:
        """Run the rounds; returns what was learned."""

    def _with(self, learned: Any) -> SequenceModel:
        """The model that has learned this; by default, what was learned is a model."""
        model: SequenceModel = learned
        return model


class Recipe(ABC):
    """How to make a model: what a config or an estimator's parameters say."""

    settings: ModelSettings

    @property
    def storage(self) -> RowStorage:
        """Where a training keeps the arrays of its rows."""
        return IN_MEMORY

    @abstractmethod
    def changed(self, **settings: Any) -> Recipe:
        """The same with some settings of `ModelSettings` changed."""

    @abstractmethod
    def new(self, labels: list[str], columns: Columns, data: Sequences) -> SequenceModel:
        """A model that has learned nothing yet; of `data` only the labels are looked at."""

    @abstractmethod
    def continued(self, model: SequenceModel) -> SequenceModel:
        """A model, perhaps made by another recipe, with those settings that may still change."""


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C during training; `model` is what was learned until then."""

    def __init__(self, model: SequenceModel) -> None:
        super().__init__(f"after {model.rounds} rounds")
        self.model = model
