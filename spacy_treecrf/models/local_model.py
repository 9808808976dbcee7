"""Models that are locally normalised: P(y_t | previous labels, x), position by position."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.beam_search import Beams
from spacy_treecrf.engine.chain import Chain, Mask
from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.engine.constraints import Masks
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.future_boosting import FuturePotentials
from spacy_treecrf.engine.history import History
from spacy_treecrf.engine.potentials import Potentials
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.local_decoding import LocalDecoder
from spacy_treecrf.models.local_settings import (
    LocalSettings,
    SettingsT,
    read_settings,
    settings_state,
)
from spacy_treecrf.models.model import Recipe, SequenceModel
from spacy_treecrf.models.parts import masks_state, new_masks, read_masks, wider_masks

ModelT = TypeVar("ModelT", bound="LocalModel")
RecipeT = TypeVar("RecipeT", bound="LocalRecipe")


@dataclass(frozen=True)
class LocalModel(SequenceModel):
    """A learned model. potentials: over the features of `History`, then those of the columns."""

    settings: LocalSettings
    labels: list[str]
    columns: Columns
    masks: Masks  # start, transition and end: 0, or -inf where forbidden
    potentials: Potentials | FuturePotentials

    @property
    @abstractmethod
    def decoder(self) -> LocalDecoder: ...

    @abstractmethod
    def _wider_potentials(self, old: History, wide: History) -> Potentials | FuturePotentials:
        """The same for more labels, of which nothing is known."""

    @property
    def rounds(self) -> int:
        return self.potentials.rounds

    @property
    def history(self) -> History:
        return History(len(self.labels), self.settings.order)

    @property
    def chain(self) -> Chain:
        return self.decoder.chain

    def scores(self, data: Sequences, workers: Workers) -> npt.NDArray[np.float32]:
        return self.decoder.scores(data, workers)

    def search(
        self, data: Sequences, workers: Workers, allowed: Mask | None = None
    ) -> Beams | None:
        return self.decoder.search(data, workers, allowed)

    def with_labels(self: ModelT, labels: list[str]) -> ModelT:
        new = [label for label in dict.fromkeys(labels) if label not in self.labels]
        if not new:
            return self
        names = [*self.labels, *new]
        settings = self.settings
        settings.check_labels(len(names))
        return replace(
            self,
            labels=names,
            masks=wider_masks(self.masks, settings.constraints, names, settings.order),
            potentials=self._wider_potentials(self.history, History(len(names), settings.order)),
        )

    def common_state(self, kind: str) -> dict[str, Any]:
        """What all of them have in their files; `read_common` reads it."""
        return {
            "kind": kind,
            "settings": settings_state(self.settings),
            "labels": self.labels,
            "columns": self.columns.to_state(),
            "masks": masks_state(self.masks),
        }


def read_common(
    fields: Fields, kind: str, settings_type: type[SettingsT]
) -> tuple[SettingsT, list[str], Columns, Masks]:
    fields.string("kind", choices=(kind,))
    settings = read_settings(fields.fields("settings"), settings_type)
    labels = fields.strings("labels", unique=True)
    if not labels:
        fields.fail("labels", "at least one label", "none")
    columns = Columns.from_state(fields.table("columns"))
    masks = read_masks(fields.fields("masks"), len(labels))
    try:
        settings.check_labels(len(labels))
    except ValueError as error:
        fields.fail("labels", "few enough for the order", str(error))
    return settings, labels, columns, masks


@dataclass(frozen=True)
class LocalRecipe(Recipe):
    """A model with these settings."""

    settings: LocalSettings
    model_type: ClassVar[type[LocalModel]]
    name: ClassVar[str]  # in messages

    @abstractmethod
    def untrained(
        self, settings: Any, labels: list[str], columns: Columns, masks: Masks
    ) -> LocalModel: ...

    def changed(self: RecipeT, **settings: Any) -> RecipeT:
        return replace(self, settings=replace(self.settings, **settings))

    def new(self, labels: list[str], columns: Columns, data: Sequences) -> LocalModel:
        settings = self.settings.resolved(len(labels))
        settings.check_labels(len(labels))
        masks = new_masks(settings.constraints, labels, settings.order, data)
        return self.untrained(settings, labels, columns, masks)

    def continued(self, model: SequenceModel) -> LocalModel:
        """What the model is stays as it is: `KEPT` of its settings."""
        if not isinstance(model, self.model_type):
            raise ValueError(
                f"treecrf: only {self.name} can be trained on as one; train a new model"
            )
        kept = {name: getattr(model.settings, name) for name in model.settings.KEPT}
        settings = replace(self.settings, **kept).resolved(len(model.labels))
        settings.check_labels(len(model.labels))
        return replace(model, settings=settings)
