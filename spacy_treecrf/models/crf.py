"""The boosted CRF on encoded sequences: made, trained further, and its stored form."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from spacy_treecrf.engine.boosting import Booster, Callback, make_chain
from spacy_treecrf.engine.chain import Chain
from spacy_treecrf.engine.columns import Columns
from spacy_treecrf.engine.conjugate import Direction
from spacy_treecrf.engine.constraints import Masks
from spacy_treecrf.engine.fields import Fields
from spacy_treecrf.engine.forest import Forest
from spacy_treecrf.engine.linear import LinearWeights
from spacy_treecrf.engine.missing import IN_TREES, in_trees
from spacy_treecrf.engine.potentials import Potentials, Scorer
from spacy_treecrf.engine.sequences import Sequences
from spacy_treecrf.engine.settings import BOOLEANS, CHOICES, INTEGERS, NUMBERS, Settings
from spacy_treecrf.engine.threads import Workers
from spacy_treecrf.models.model import Recipe, SequenceModel, Trainer
from spacy_treecrf.models.new_labels import add_labels
from spacy_treecrf.models.parts import (
    MAX_WEIGHT,
    masks_state,
    new_masks,
    read_masks,
    read_sparse,
    sparse_state,
)


@dataclass(frozen=True)
class CRF(SequenceModel):
    """A learned model: labels by id, what its columns mean, hard constraints, and potentials."""

    settings: Settings
    labels: list[str]
    columns: Columns
    masks: Masks  # start, transition and end: 0, or -inf where forbidden
    potentials: Potentials

    @property
    def chain(self) -> Chain:
        settings = self.settings
        return make_chain(self.potentials.edges, self.masks, settings.order, settings.beam)

    @cached_property
    def scorer(self) -> Scorer:
        incomplete = in_trees(self.columns.missing, self.columns.map)
        order = self.settings.context_order
        return Scorer(self.potentials, self.columns.bin_values, order, incomplete)

    @property
    def rounds(self) -> int:
        return self.potentials.rounds

    def scores(self, data: Sequences, workers: Workers) -> npt.NDArray[np.float32]:
        return self.scorer.score(data, workers)

    def trainer(
        self, data: Sequences, workers: Workers, held_out: Sequences | None = None
    ) -> CRFTrainer:
        return CRFTrainer(self, data, workers, held_out)

    def boosted(
        self,
        data: Sequences,
        rounds: int,
        workers: Workers,
        held_out: Sequences | None = None,
        callback: Callback | None = None,
    ) -> CRF:
        """This model after boosting on `data` until it has `rounds` rounds."""
        return self.trainer(data, workers, held_out).train(rounds, callback)

    def with_labels(self, labels: list[str]) -> CRF:
        return add_labels(self, labels)

    def to_state(self) -> dict[str, Any]:
        potentials = self.potentials
        previous = potentials.previous_linear
        if potentials.rounds >= self.settings.linear_rounds:  # no linear round will ask for it
            previous = LinearWeights.zeros(*previous.shape)
        forest = potentials.as_grown
        if self.columns.missing in IN_TREES:
            forest = forest.with_detours()
        return {
            "kind": "crf",
            "settings": asdict(self.settings),
            "labels": self.labels,
            "columns": self.columns.to_state(),
            "masks": masks_state(self.masks),
            "edges": potentials.edges,
            "linear": sparse_state(potentials.linear),
            "previous_linear": sparse_state(previous),
            "forest": forest.to_state(),
            "rounds": potentials.rounds,
            "direction": potentials.direction.to_state() if potentials.direction else {},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> CRF:
        """Rebuild a model; every index, shape and value is checked before a kernel can see it."""
        fields = Fields(state)
        fields.string("kind", choices=("crf",))
        settings = read_settings(fields.fields("settings"))
        labels = fields.strings("labels", unique=True)
        if not labels:
            fields.fail("labels", "at least one label", "none")
        columns = Columns.from_state(fields.table("columns"))
        n_labels, n_features, n_numeric = (
            len(labels),
            len(columns.counts),
            len(columns.numeric_names),
        )
        masks = read_masks(fields.fields("masks"), n_labels)
        if settings.missing != columns.missing:
            fields.fail("settings", f"missing={columns.missing!r}, as in columns", "another")
        if settings.family == "auto":
            fields.fail("settings", "a decided family", "'auto'")
        try:
            settings.check_labels(n_labels)
        except ValueError as error:
            fields.fail("labels", "few enough for the order", str(error))
        forest = Forest.from_state(
            fields.fields("forest"),
            n_labels,
            n_features,
            n_numeric,
            settings.context_order,
            with_detours=columns.missing in IN_TREES,
        )
        n_rounds = int(forest.tree_round[-1]) + 1 if forest.n_trees else 0
        direction = fields.table("direction")
        potentials = Potentials(
            edges=fields.array(
                "edges", np.float32, (n_labels + 1, n_labels), low=-MAX_WEIGHT, high=MAX_WEIGHT
            ),
            linear=read_sparse(fields.fields("linear"), n_features, n_numeric, n_labels),
            previous_linear=read_sparse(
                fields.fields("previous_linear"), n_features, n_numeric, n_labels
            ),
            forests=(forest,),
            rounds=fields.integer("rounds", n_rounds, 2**31 - 1),
            direction=Direction.from_state(direction, forest.n_trees, n_labels)
            if direction
            else None,
        )
        fields.done()
        return cls(settings, labels, columns, masks, potentials)


def new_crf(settings: Settings, labels: list[str], columns: Columns, data: Sequences) -> CRF:
    """A model that has learned nothing yet; `data` tells which transitions occur."""
    settings = settings.resolved(len(labels))
    settings.check_labels(len(labels))
    if settings.missing != columns.missing:
        raise ValueError(
            f"treecrf: setting 'missing' is {settings.missing!r}, but the columns were fitted for "
            f"{columns.missing!r}; fit them with the same"
        )
    masks = new_masks(settings.constraints, labels, settings.order, data)
    potentials = Potentials.zeros(len(labels), len(columns.counts), len(columns.numeric_names))
    return CRF(settings, labels, columns, masks, potentials)


class CRFTrainer(Trainer):
    """Boosts a CRF."""

    def __init__(
        self, crf: CRF, data: Sequences, workers: Workers, held_out: Sequences | None
    ) -> None:
        self._crf = crf
        self._booster = Booster(
            data,
            crf.columns,
            len(crf.labels),
            crf.masks,
            crf.settings,
            workers,
            crf.potentials,
            held_out,
        )
        self.data = self._booster.train.data
        self.n_annotated = self._booster.n_annotated

    @property
    def model(self) -> CRF:
        return replace(self._crf, potentials=self._booster.potentials)

    @property
    def log_likelihood(self) -> float:
        return self._booster.log_likelihood

    def train(self, rounds: int, callback: Callback | None = None) -> CRF:
        return replace(self._crf, potentials=self._booster.boost(rounds, callback))


@dataclass(frozen=True)
class CRFRecipe(Recipe):
    """A boosted CRF with these settings."""

    settings: Settings

    def changed(self, **settings: Any) -> CRFRecipe:
        return CRFRecipe(replace(self.settings, **settings))

    def new(self, labels: list[str], columns: Columns, data: Sequences) -> CRF:
        return new_crf(self.settings, labels, columns, data)

    def continued(self, model: SequenceModel) -> CRF:
        """What the model is stays as it is: its family, order, missing values, constraints."""
        if not isinstance(model, CRF):
            raise ValueError(
                "treecrf: only a boosted CRF can be boosted further; train a new model"
            )
        was = model.settings
        settings = replace(
            self.settings,
            family=was.family,
            order=was.order,
            missing=was.missing,
            constraints=was.constraints,
        )
        return replace(model, settings=settings.resolved(len(model.labels)))


def read_settings(fields: Fields) -> Settings:
    values: dict[str, Any] = {}
    for name in CHOICES:
        values[name] = fields.string(name)
    for name in INTEGERS:
        values[name] = fields.integer(name)
    values["rounds"] = fields.integer("rounds")
    values["beam"] = None if fields.is_none("beam") else fields.integer("beam")
    for name in NUMBERS:
        values[name] = fields.number(name)
    for name in BOOLEANS:
        values[name] = fields.boolean(name)
    fields.done()
    return Settings(**values)
