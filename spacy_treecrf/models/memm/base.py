"""The base of all MEMMs: P(y_t | previous labels, x), normalised at each position."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting.potentials import Potentials
from spacy_treecrf.engine.chain.chain import Chain, Mask
from spacy_treecrf.engine.chain.constraints import Masks
from spacy_treecrf.engine.encoding.columns import Columns
from spacy_treecrf.engine.future.future_potentials import FuturePotentials
from spacy_treecrf.engine.memm.beam_search import Beams
from spacy_treecrf.engine.memm.label_history import LabelHistory
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.memm.decoding import MEMMDecoder
from spacy_treecrf.models.memm.settings import LocalSettings, LocalSettingsT
from spacy_treecrf.models.model import Recipe, SequenceModel
from spacy_treecrf.models.stored_parts import masks_state, new_masks, read_masks, wider_masks
from spacy_treecrf.storage.state_reader import StateReader

ModelT = TypeVar("ModelT", bound="MEMMBase")
RecipeT = TypeVar("RecipeT", bound="MEMMBaseRecipe")


@dataclass(frozen=True)
class MEMMBase(SequenceModel):
    """A learned MEMM: its potentials see the features of `LabelHistory`, then those of columns."""

    settings: LocalSettings
    labels: list[str]
    columns: Columns
    masks: Masks  # start, transition and end: 0, or -inf where forbidden
    potentials: Potentials | FuturePotentials

    @property
    @abstractmethod
    def decoder(self) -> MEMMDecoder: ...

    @abstractmethod
    def _wider_potentials(
        self, old: LabelHistory, wide: LabelHistory
    ) -> Potentials | FuturePotentials:
        """The potentials for more labels than were learned; nothing is known of the new ones."""

    @property
    def rounds(self) -> int:
        return self.potentials.rounds

    @property
    def history(self) -> LabelHistory:
        return LabelHistory(len(self.labels), self.settings.order)

    @property
    def chain(self) -> Chain:
        return self.decoder.chain

    @property
    def score_bytes(self) -> int:
        n_labels, width = len(self.labels), self.decoder.width
        if width:
            return 16 * n_labels + 4 * width
        return int(4 * n_labels ** (self.settings.order + 1))

    @property
    def searches(self) -> bool:
        return self.decoder.width > 0

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
            potentials=self._wider_potentials(
                self.history, LabelHistory(len(names), settings.order)
            ),
        )

    def common_state(self, kind: str) -> dict[str, Any]:
        """The part of the state that all MEMMs have; `read_common` reads it."""
        return {
            "kind": kind,
            "settings": self.settings.to_state(),
            "labels": self.labels,
            "columns": self.columns.to_state(),
            "masks": masks_state(self.masks),
        }


def read_common(
    reader: StateReader, kind: str, settings_type: type[LocalSettingsT]
) -> tuple[LocalSettingsT, list[str], Columns, Masks]:
    """Settings, labels, columns and masks, as `common_state` stores them."""
    reader.string("kind", choices=(kind,))
    settings = settings_type.from_state(reader.nested("settings"))
    labels = reader.strings("labels", unique=True)
    if not labels:
        reader.fail("labels", "at least one label", "none")
    columns = Columns.from_state(reader.table("columns"))
    if columns.missing != settings.missing:
        reader.fail("columns", f"missing={settings.missing!r}", "another")
    masks = read_masks(reader.nested("masks"), len(labels))
    try:
        settings.check_labels(len(labels))
    except ValueError as error:
        reader.fail("labels", "few enough for the order", str(error))
    return settings, labels, columns, masks


@dataclass(frozen=True)
class MEMMBaseRecipe(Recipe):
    """How to make a MEMM with these settings."""

    settings: LocalSettings
    model_type: ClassVar[type[MEMMBase]]
    name: ClassVar[str]  # what error messages call the model

    @abstractmethod
    def untrained(
        self, settings: Any, labels: list[str], columns: Columns, masks: Masks
    ) -> MEMMBase: ...

    def changed(self: RecipeT, **settings: Any) -> RecipeT:
        return replace(self, settings=replace(self.settings, **settings))

    def new(self, labels: list[str], columns: Columns, data: Sequences) -> MEMMBase:
        settings = self.settings.resolved(len(labels))
        settings.check_labels(len(labels))
        masks = new_masks(settings.constraints, labels, settings.order, data)
        return self.untrained(settings, labels, columns, masks)

    def continued(self, model: SequenceModel) -> MEMMBase:
        """The model with these settings, except for those in `KEPT`."""
        if not isinstance(model, self.model_type):
            raise ValueError(
                f"treecrf: only {self.name} can be trained on as one; train a new model"
            )
        kept = {name: getattr(model.settings, name) for name in model.settings.KEPT}
        settings = replace(self.settings, **kept).resolved(len(model.labels))
        settings.check_labels(len(model.labels))
        return replace(model, settings=settings)
